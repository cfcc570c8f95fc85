"""The long table of one case, generated: no single read shows it, and no checkout has to hold it."""

from __future__ import annotations

import functools
import random
import re

_BEGINNINGS = (
    "Alt",
    "Birken",
    "Eichen",
    "Fisch",
    "Grün",
    "Hoch",
    "Krumm",
    "Linden",
    "Mühlen",
    "Nieder",
    "Ober",
    "Stein",
)
_ENDINGS = ("au", "bach", "berg", "brück", "dorf", "feld", "hafen", "heim", "mark", "rode", "tal", "werder")
_SIDES = ("Bahnhof", "Markt", "Nord", "Süd", "Werft", "Schule", "Kirche", "Ost", "West")
_MARK = re.compile(rb"^@@STATIONS (\d+)-(\d+)@@\n", re.MULTILINE)


def with_stations(text: bytes) -> bytes:
    """Return a text with each line `@@STATIONS FIRST-LAST@@` replaced by the rows of these stations."""
    return _MARK.sub(lambda mark: _rows(int(mark[1]), int(mark[2])), text)


def _rows(first: int, last: int) -> bytes:
    return "".join(f"    {_row(number)}\n" for number in range(first, last + 1)).encode("utf-8")


@functools.cache
def _row(number: int) -> str:
    choice = random.Random(number)  # a station is the same wherever it stands
    name = f"{choice.choice(_BEGINNINGS)}{choice.choice(_ENDINGS)} {choice.choice(_SIDES)}"
    return f'"KRS-{number:04}": ("{name}", "{choice.choice("ABCDE")}", {choice.randrange(5, 990) / 10}),'
