"""Text in columns: what a terminal can print, and how wide it is there. Pure functions."""

from __future__ import annotations

import unicodedata


def encodable(text: str, encoding: str) -> str:
    """Return `text` with what `encoding` has no bytes for written out, so that printing it cannot fail."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def width(text: str) -> int:
    """Return how many columns safe text takes: East Asian wide characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(_character_width(character) for character in text)


def _character_width(character: str) -> int:
    if unicodedata.combining(character) or character in "\u200c\u200d\ufe0e\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, columns: int) -> str:
    """Return one line of safe text in at most `columns` columns; one that is cut ends in `...`."""
    if width(text) <= columns:
        return text
    left = columns - 3
    for position, character in enumerate(text):
        left -= _character_width(character)
        if left < 0:
            return text[:position] + "..."[:columns]
    return text
