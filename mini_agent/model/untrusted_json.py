"""JSON that someone else wrote, read so that nothing in it can hurt later.

What was read here can be logged and sent back: it is nested no deeper than Python writes it without recursion
trouble, and it holds no number that Python would write as something that is not JSON (NaN, 1e999) or not at all
(5,000 digits): such a number becomes its own text, which no check for a number then takes.
"""

from __future__ import annotations

import json
import math
from typing import Any

DEEPEST_NESTING = 100
LONGEST_NUMBER_CHARACTERS = 400


def parse_json(text: str) -> Any:
    """Return the value that `text` holds; raise ValueError, saying what is wrong, for all else."""
    value, end = parse_first_json(text)
    if text[end:].strip():
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def parse_first_json(text: str) -> tuple[Any, int]:
    """Return the value that `text` begins with, and the position after it; raise ValueError where there is none.

    Raw control characters inside of strings are taken: small models write newlines so.
    """
    start = len(text) - len(text.lstrip(" \t\r\n"))
    try:
        value, end = _DECODER.raw_decode(text, start)
    except RecursionError as error:
        raise ValueError(f"it is nested over {DEEPEST_NESTING} levels deep") from error
    _check_depth(value)
    return value, end


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST_NESTING + 1):
        level = [inner for outer in level if isinstance(outer, (dict, list)) for inner in _items(outer)]
        if not level:
            return
    raise ValueError(f"it is nested over {DEEPEST_NESTING} levels deep")


def _items(outer: Any) -> Any:
    return outer.values() if isinstance(outer, dict) else outer


def _whole_number(digits: str) -> int | str:
    return int(digits) if len(digits) <= LONGEST_NUMBER_CHARACTERS else digits


def _fraction(digits: str) -> float | str:
    number = float(digits)
    return number if math.isfinite(number) else digits


_DECODER = json.JSONDecoder(parse_int=_whole_number, parse_float=_fraction, parse_constant=str, strict=False)
