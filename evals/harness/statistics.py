"""Two arms, pair by pair: is there a difference, and if none is seen, how many more runs could tell?

A pair is two cells of the same case and repeat. Two things are judged, passing and tokens; seconds never are, since
they measure the machine. Each is judged by an exact sign test over the pairs that differ (for passing this is
McNemar's exact test): a coin, thrown once for each of them, would have to fall as one-sidedly less than once in a
thousand times. That is strict, because people look at many tables, and two identical arms must not come out as two.
Beside it stands a 95 % interval from a bootstrap over cases: repeats of one case are alike, and no new evidence.
"""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evals.harness.results import Record, is_final

ALPHA = 0.001
RESAMPLES = 2000
MOST_TIMES = 50  # that many times the pairs of now is as far as a forecast goes
VERDICTS = ("helped", "regressed", "both passed", "both failed", "not used")


@dataclass(frozen=True)
class Pair:
    """Two cells that differ in the arm alone."""

    case: str
    repeat: int
    treatment: Record
    baseline: Record

    @property
    def verdict(self) -> str:
        """Return one of VERDICTS; where the treatment was not used, no difference can be its doing."""
        used = self.treatment["used"]
        if used is not None and not used["successes"]:
            return "not used"
        passed = self.treatment["passed"], self.baseline["passed"]
        return {(True, False): "helped", (False, True): "regressed", (True, True): "both passed"}.get(
            passed, "both failed"
        )

    @property
    def tokens(self) -> tuple[int, int] | None:
        """Return the tokens, in and out, of both cells; None where either failed (it may have given up early)."""
        cells = self.treatment, self.baseline
        if not all(cell["passed"] and cell["tokens"] for cell in cells):
            return None
        treatment, baseline = (int(cell["tokens"]["in"] + cell["tokens"]["out"]) for cell in cells)
        return treatment, baseline


@dataclass(frozen=True)
class Difference:
    """A paired difference, treatment minus baseline."""

    by_case: tuple[tuple[float, ...], ...]  # a value for each pair, grouped by case

    @property
    def values(self) -> list[float]:
        """Return the value of each pair."""
        return [value for values in self.by_case for value in values]

    @property
    def ups(self) -> int:
        """Return in how many pairs the treatment has more."""
        return sum(value > 0 for value in self.values)

    @property
    def downs(self) -> int:
        """Return in how many pairs the treatment has less."""
        return sum(value < 0 for value in self.values)

    @property
    def mean(self) -> float:
        """Return the mean over all pairs."""
        return statistics.fmean(self.values)

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % interval of the mean; None where there is only one pair."""
        return bootstrap(self.by_case) if len(self.values) > 1 else None

    @property
    def chance(self) -> float:
        """Return how likely equal arms are to differ at least as one-sidedly."""
        return sign_test(self.ups, self.downs)

    @property
    def direction(self) -> int:
        """Return 1 or -1 where there is a difference, 0 where none is seen: the test and the interval must agree."""
        if self.chance > ALPHA or self.interval is None:
            return 0
        low, high = self.interval
        towards = 1 if self.ups > self.downs else -1
        return towards if min(towards * low, towards * high) > 0 else 0

    @property
    def times(self) -> int | None:
        """Return how many times the pairs of now could tell, if it went on like this; None: no number in reach."""
        reach = range(1, MOST_TIMES + 1)
        return next((times for times in reach if sign_test(times * self.ups, times * self.downs) <= ALPHA), None)


def sign_test(ups: int, downs: int) -> float:
    """Return the exact two-sided probability that a fair coin falls at least as one-sidedly; 1 without a throw."""
    thrown = ups + downs
    if thrown > 1000:  # by then the normal distribution is as good, and the sum below takes long
        return math.erfc((abs(ups - downs) - 1) / math.sqrt(2 * thrown))
    tail = sum(math.comb(thrown, count) for count in range(min(ups, downs) + 1))
    return min(1.0, float(2 * tail / 2**thrown))


def pair_up(records: Sequence[Record], treatment: str, baseline: str) -> tuple[list[Pair], int]:
    """Return the pairs of two arms, and how many more there are that say nothing: a server that failed, and such."""
    cells: dict[tuple[str, int], dict[str, Record]] = defaultdict(dict)
    for record in records:
        cells[record["case"], record["repeat"]][record["arm"]] = record
    both = [(key, arms) for key, arms in sorted(cells.items()) if treatment in arms and baseline in arms]
    pairs = [Pair(*key, arms[treatment], arms[baseline]) for key, arms in both]
    telling = [pair for pair in pairs if is_final(pair.treatment) and is_final(pair.baseline)]
    return telling, len(pairs) - len(telling)


def difference(pairs: Sequence[Pair], of: Callable[[Pair], tuple[float, float] | None]) -> Difference | None:
    """Return the difference in what `of` tells of a pair; of those for which it is None nothing is said."""
    by_case: dict[str, list[float]] = defaultdict(list)
    for pair in pairs:
        values = of(pair)
        if values is not None:
            by_case[pair.case].append(values[0] - values[1])
    return Difference(tuple(map(tuple, by_case.values()))) if by_case else None


def passed(pair: Pair) -> tuple[float, float]:
    """Tell of a pair whether its cells passed, as 1 or 0."""
    return float(pair.treatment["passed"]), float(pair.baseline["passed"])


def tokens(pair: Pair) -> tuple[float, float] | None:
    """Tell of a pair what its cells cost."""
    return pair.tokens


def bootstrap(groups: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return a 95 % interval of the mean, by drawing whole groups again (of one group: its values)."""
    drawn_from = [(sum(group), len(group)) for group in groups]
    if len(groups) == 1:
        drawn_from = [(value, 1) for value in groups[0]]
    if len({total / size for total, size in drawn_from}) == 1:
        return (drawn_from[0][0] / drawn_from[0][1],) * 2
    chance = random.Random(1)
    means = []
    for _ in range(RESAMPLES):
        drawn = chance.choices(drawn_from, k=len(drawn_from))
        means.append(sum(total for total, _ in drawn) / sum(size for _, size in drawn))
    means.sort()
    return means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]


def verdict(found: Difference | None, more: str, less: str, repeats: int) -> str:
    """Return in words what a difference comes to.

    more, less: what the treatment does where there is one. repeats: of each case so far.
    """
    if found is None:
        return "nothing to compare"
    chance = f"p = {found.chance:.2g}" if found.chance >= 0.0001 else "p < 0.0001"
    if found.direction:
        return f"{more if found.direction > 0 else less} ({chance})"
    pairs = len(found.values)
    if not found.ups + found.downs:
        # what happens in this share of all pairs or more would have shown itself with a probability of 95 %
        share = 100 * (1 - 0.05 ** (1 / pairs))
        return f"no difference seen: none of {pairs} pairs differs, and of more than {share:.0f} % some would have"
    if found.times is None:
        return f"no difference seen ({chance}); if it goes on like this, no number of repeats in reach will tell"
    if found.times == 1:
        return f"no difference seen ({chance}, but the interval does not agree: too few cases tell it)"
    return (
        f"no difference seen ({chance}); if it went on like this, {(found.times - 1) * repeats} more repeats could tell"
    )


def counts(pairs: Sequence[Pair]) -> dict[str, int]:
    """Return how many pairs have each verdict."""
    found = Counter(pair.verdict for pair in pairs)
    return {name: found[name] for name in VERDICTS}


def spread(values: Sequence[Any]) -> float | None:
    """Return the mean of what is known; None where nothing is."""
    known = [float(value) for value in values if value is not None]
    return statistics.fmean(known) if known else None
