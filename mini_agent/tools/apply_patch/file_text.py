"""A file's text as lines, and how lines are compared: exactly, then with more and more of their form ignored.

Lines are found by an index (line → where it stands), made once per level, so that the work grows with file plus patch
and not with their product.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import islice

EXACT, ENDS, SHIFTED, FOLDED = range(4)
LEVELS = {
    EXACT: "exactly",
    ENDS: "ignoring white space at line ends",
    SHIFTED: "with another indentation",
    FOLDED: "taking typographic quotes, dashes and spaces for plain ones",
}

WHITE_SPACE = " \t\r\f\v"
_SPACES = "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_PLAIN = str.maketrans("‘’‚‛′“”„‟″‐‑‒–—―−" + _SPACES, "'" * 5 + '"' * 5 + "-" * 7 + " " * len(_SPACES))


class FileText:
    """A file's text as lines, with an index of them for each level."""

    def __init__(self, text: str) -> None:
        """Split at LF only; a CR belongs to its line."""
        self.lines = text.split("\n")
        self.ends_with_newline = self.lines[-1] == ""  # so does an empty file: nothing is missing there
        if self.ends_with_newline:
            self.lines.pop()
        self._keys: dict[int, list[str]] = {EXACT: self.lines}
        self._positions: dict[int, dict[str, list[int]]] = {}

    @cached_property
    def uses_crlf(self) -> bool:
        """Tell whether every line that has an ending ends in CRLF."""
        terminated = self.lines if self.ends_with_newline else self.lines[:-1]
        return bool(terminated) and all(line.endswith("\r") for line in terminated)

    def keys(self, level: int) -> list[str]:
        """Return the lines as they are compared at a level."""
        if level not in self._keys:
            self._keys[level] = compared(self.lines, level)
        return self._keys[level]

    def positions(self, level: int) -> dict[str, list[int]]:
        """Return for each compared line the indexes where it stands, ascending."""
        if level not in self._positions:
            index: dict[str, list[int]] = {}
            for at, key in enumerate(self.keys(level)):
                index.setdefault(key, []).append(at)
            self._positions[level] = index
        return self._positions[level]

    def matches_at(
        self,
        block: Sequence[str],
        start: int,
        level: int,
        has_last_newline: bool = True,
        block_keys: Sequence[str] | None = None,
    ) -> bool:
        """Tell whether a block stands at a line index, compared at a level (`block_keys`: already made for that)."""
        end = start + len(block)
        keys = compared(block, level) if block_keys is None else block_keys
        if start < 0 or end > len(self.lines) or self.keys(level)[start:end] != keys:
            return False
        if level == EXACT:  # a missing "\\ No newline" is no difference, one too many is
            return has_last_newline or (end == len(self.lines) and not self.ends_with_newline)
        return level < SHIFTED or _shift_of(block, self.lines[start:end], level) is not None

    def find(self, block: Sequence[str], level: int, has_last_newline: bool = True, most: int = 2) -> list[int]:
        """Return the line indexes where a block stands, at most `most` of them."""
        positions, keys = self.positions(level), compared(block, level)
        rarest = min(range(len(keys)), key=lambda at: len(positions.get(keys[at], ())))
        starts = (position - rarest for position in positions.get(keys[rarest], ()))
        return list(islice((at for at in starts if self.matches_at(block, at, level, has_last_newline, keys)), most))

    def shift(self, block: Sequence[str], start: int, level: int) -> tuple[str, str]:
        """Return the change of indentation by which a block stands at a line index: white space taken off, put on."""
        there = self.lines[start : start + len(block)]
        return (level >= SHIFTED and _shift_of(block, there, level)) or ("", "")


def compared(lines: Sequence[str], level: int) -> list[str]:
    """Return lines as they are compared at a level."""
    if level == EXACT:
        return list(lines)
    if level == ENDS:
        return [line.rstrip(WHITE_SPACE) for line in lines]
    if level == SHIFTED:
        return [line.strip(WHITE_SPACE) for line in lines]
    return [line.translate(_PLAIN).strip(WHITE_SPACE) for line in lines]


def _shift_of(block: Sequence[str], there: Sequence[str], level: int) -> tuple[str, str] | None:
    """Return the one change of indentation between a block and the lines it stands for, None if there is none.

    It is a pair (taken off, put on) of white space, one of them empty.
    """
    if level == FOLDED:
        block, there = ([line.translate(_PLAIN) for line in lines] for lines in (block, there))
    pairs = ((written, found) for written, found in zip(block, there) if written.strip(WHITE_SPACE))
    changes = {_change(indentation(written), indentation(found)) for written, found in pairs} or {("", "")}
    return changes.pop() if len(changes) == 1 else None


def _change(written: str, found: str) -> tuple[str, str] | None:
    if found.endswith(written):
        return "", found[: len(found) - len(written)]
    return (written[: len(written) - len(found)], "") if written.endswith(found) else None


def indentation(line: str) -> str:
    """Return the white space in front of a line."""
    return line[: len(line) - len(line.lstrip(" \t"))]
