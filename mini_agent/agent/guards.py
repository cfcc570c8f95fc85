"""What ends a turn that would not end by itself."""

from __future__ import annotations

from dataclasses import dataclass

TOLD_AT = 3  # the model is told when the same call came to the same result this many times running
ENDS_AT = 5  # and here the turn ends


@dataclass(frozen=True)
class TurnLimits:
    """How much one turn may take."""

    max_rounds: int = 40
    max_tokens: int | None = None  # read and written together, over all rounds; None: no ceiling


class RepeatGuard:
    """Count in how many rounds running the same call came to the same result.

    Rounds and not calls: the model cannot learn from a result before its next reply.
    """

    def __init__(self) -> None:
        self._before: dict[tuple[str, str], int] = {}  # canonical call and result → rounds, up to the last round
        self._now: dict[tuple[str, str], int] = {}

    def next_round(self) -> None:
        """Take what was counted as the round before."""
        self._before, self._now = self._now, {}

    def times(self, canonical_call: str, result: str) -> int:
        """Take in one call of this round with its result; return for how many rounds running it has been just this."""
        pair = (canonical_call, result)
        self._now[pair] = self._before.get(pair, 0) + 1
        return self._now[pair]
