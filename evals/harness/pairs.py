"""Labels with a value each, in an answer or a file: what an outdated value, half the facts or a hedge is worth.

A value counts where it is said of its label: on the label's line (or part of a line, up to a comma, a semicolon or an
"and"), or after it, up to the next label. An outdated value fails wherever it stands, and so does the value of one
label said of another: who names both the old and the new has not said which holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable

from evals.harness.facts import plain, states
from evals.harness.suite import Grade, Proof

_PARTS = re.compile(r"\n|;|,(?!\d{3}(?!\d))|\band\b")


@dataclass(frozen=True)
class Pair:
    """What is asked for: the valid value of a label, and, where it was changed, the one before."""

    label: str
    value: str
    outdated: str = ""

    @property
    def told(self) -> tuple[str, ...]:
        """Return the values that the case must tell."""
        return tuple(filter(None, (self.value, self.outdated)))


def grade_pairs(text: str, pairs: Sequence[Pair]) -> Grade:
    """Grade a text by what it says of each label; the score is the share of the pairs that it has right."""
    said = _said_of([pair.label for pair in pairs], text)
    valid = {pair.value for pair in pairs}
    missing, forbidden, right = [], [], 0
    for pair in pairs:
        own, there = said[pair.label], f"{pair.label}: "
        is_stated = states(own, pair.value)
        wrong = [there + value for value in sorted(valid - {pair.value}) if states(own, value)]
        if pair.outdated and pair.outdated not in valid and states(text, pair.outdated):
            wrong.append(f"{there}{pair.outdated} (outdated)")
        missing += [] if is_stated else [there + pair.value]
        forbidden += wrong
        right += is_stated and not wrong
    return Grade(not missing and not forbidden, right / len(pairs), tuple(missing), tuple(forbidden))


def _said_of(labels: Sequence[str], text: str) -> dict[str, str]:
    """Return for each label the parts of the text that speak of it: that begin with it, or else that name it."""
    said = dict.fromkeys(labels, "")
    about: list[str] = []
    for part in _PARTS.split(text):
        named = {label: place for label in labels if (place := _place(part, label)) is not None}
        about = [label for label, place in named.items() if place == 0] or list(named) or about
        for label in about:
            said[label] += part + "\n"
    return said


def _place(text: str, label: str) -> int | None:
    """Return where a text names a label, 0 at its first word; pool_size and "pool size" are the same."""
    wanted, given = (re.sub("[_-]", " ", plain(words)) for words in (label, text))
    match = re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", re.sub(r"^[\W\d]+(?=\D)", "", given))
    return match.start() if match else None


def proofs_of(pairs: Sequence[Pair], lay: Callable[[str], dict[str, Any]]) -> tuple[Proof, ...]:
    """Return right and wrong ways to say pairs. lay: makes of a text what Proof takes, an answer or files."""
    changed = [pair for pair in pairs if pair.outdated]
    before = [(pair.label, pair.outdated or pair.value) for pair in pairs]
    now = [(pair.label, pair.value) for pair in pairs]
    half_old = [(pair.label, pair.outdated if pair is changed[-1] else pair.value) for pair in pairs]
    exchanged = [(label, value) for (label, _), (_, value) in zip(now, [*now[1:], now[0]])]
    table = [f"| **{label.upper()}** | `{_grouped(value)}` |" for label, value in reversed(now)]
    sentence = f"It is so: {', '.join(f'{label} is {value}' for label, value in now)}."
    both = [f"{p.label}: {p.value}" + (f" (it was {p.outdated} before)" if p.outdated else "") for p in pairs]
    return (
        Proof("a line each", True, **lay(_lines(now))),
        Proof("a table in another order", True, **lay("\n".join(["| what | value |", "| --- | --- |", *table]))),
        Proof("one sentence", True, **lay(sentence)),
        Proof("the outdated values", False, **lay(_lines(before))),
        Proof("one outdated value", False, **lay(_lines(half_old))),
        Proof("only half", False, **lay(_lines(now[: len(now) // 2]))),
        Proof("the values exchanged", False, **lay(_lines(exchanged))),
        Proof("the valid and the outdated values", False, **lay("\n".join(both))),
        Proof("digits more", False, **lay(_lines([(label, value + "7") for label, value in now]))),
        Proof("no values", False, **lay("It is all as it was agreed on.")),
    )


def _lines(rows: Sequence[tuple[str, str]]) -> str:
    return "".join(f"{label}: {value}\n" for label, value in rows)


def _grouped(value: str) -> str:
    """Return a whole number as people write it, 5412 as 5,412; any other value as it is."""
    return f"{int(value):,}" if value.isdigit() else value
