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
    """Count how often the same call came to the same result, one time right after the other."""

    def __init__(self) -> None:
        self._last: tuple[str, str] | None = None
        self._times = 0

    def times(self, canonical_call: str, result: str) -> int:
        """Take in one more call with its result; return how many times running it has been just this."""
        self._times = self._times + 1 if self._last == (canonical_call, result) else 1
        self._last = (canonical_call, result)
        return self._times
