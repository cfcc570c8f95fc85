"""A hunk: lines that stand together in a file, some to be removed, some to be added, and how they are read.

Models write hunks from memory, so lines are believed and numbers are not: a hunk is what its lines say, whatever its
`@@` counts. A context line that lost its space is read as one; the file will prove or disprove it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

_HEADER = re.compile(
    r"@@[ \t]*(?:-([0-9]{1,9})(,[0-9]+)?)?[ \t]*(?:\+([0-9]{1,9})(?:,[0-9]+)?)?[ \t]*(?:@@)?(.*)", re.S
)


@dataclass(frozen=True)
class Hunk:
    """What a patch says about one place of a file."""

    number: int  # 1-based, within the patch of its file
    patch_line: int  # 1-based line of the patch where it begins
    lines: tuple[tuple[str, str], ...]  # (" ", "-" or "+", text without its LF)
    old_start: int | None = None  # 1-based line number that the patch states, if it states one
    inserts_behind: int | None = None  # where all of its lines are added: the line number behind which they come
    anchors: tuple[str, ...] = ()  # the texts after @@, outermost first: lines that stand above the place
    old_has_last_newline: bool = True  # False: the old side ends in "\\ No newline at end of file"
    new_has_last_newline: bool = True
    at_end: bool = False  # the envelope's "*** End of File"

    @cached_property
    def old(self) -> list[str]:
        """The lines as they are to be found."""
        return [text for tag, text in self.lines if tag != "+"]

    @cached_property
    def new(self) -> list[str]:
        """The lines as they are to be."""
        return [text for tag, text in self.lines if tag != "-"]

    @property
    def changes_something(self) -> bool:
        """Tell whether any line is added or removed."""
        return any(tag != " " for tag, _ in self.lines)


def read_hunk(
    number: int, patch_line: int, headers: Sequence[str], body: Sequence[str], is_of_new_file: bool, at_end: bool
) -> Hunk:
    """Read a hunk from its @@ lines, of which several may be stacked, and the lines below them."""
    lines, old_ends, new_ends = _read_body(body, is_of_new_file)
    return Hunk(number, patch_line, lines, *_read_headers(headers), old_ends, new_ends, at_end)


def _read_headers(headers: Sequence[str]) -> tuple[int | None, int | None, tuple[str, ...]]:
    """Return the line numbers of the last header that has any, and the texts of all."""
    old_start = inserts_behind = None
    anchors: list[str] = []
    for header in headers:
        match = _HEADER.fullmatch(header)
        assert match is not None  # everything behind the @@ is optional
        if match[1]:
            old_start = inserts_behind = int(match[1])
            if match[2] != ",0" and match[3] and int(match[3]) <= old_start:
                inserts_behind -= 1  # "-5 +5": line 5 is to be an added one; but "-5,0 +5" is git's "behind line 5"
        anchor = match[4].strip().removesuffix("@@").rstrip()
        if re.search(r"\w", anchor):
            anchors.append(anchor)
    return old_start, inserts_behind, tuple(anchors)


def tag_of(line: str) -> str:
    """Return what kind of hunk line this is: " ", "-", "+", "\\" (the marker of a missing newline), "" for none."""
    if line[:1] in ("+", "-", " "):
        return line[0]
    if not line.strip():
        return " "  # a blank context line that lost its space
    return "\\" if line.startswith("\\ ") else ""


def _read_body(lines: Sequence[str], is_of_new_file: bool) -> tuple[tuple[tuple[str, str], ...], bool, bool]:
    """Return the tagged lines, and whether their old and their new side end in a newline."""
    end = len(lines)
    while end and not lines[end - 1].strip() and lines[end - 1][:1] != " ":
        end -= 1  # space between hunks, and not a context line without its space
    lines = lines[:end]
    spaces_are_lost = "" in map(tag_of, lines) and not any(re.match(r" [^ \t]", line) for line in lines)
    tagged: list[tuple[str, str]] = []
    old_ends = new_ends = True
    for line in lines:
        tag = tag_of(line)
        if tag == "\\":
            last = tagged[-1][0] if tagged else ""
            old_ends, new_ends = old_ends and last not in (" ", "-"), new_ends and last not in (" ", "+")
            continue
        if line[:1] not in ("+", "-", " ") or (tag == " " and spaces_are_lost):  # a line without its tag
            tagged.append(("+" if is_of_new_file and not line.strip() else " ", line))
        else:
            tagged.append((tag, line[1:]))
        old_ends, new_ends = old_ends or tagged[-1][0] != "+", new_ends or tagged[-1][0] != "-"
    return tuple(tagged), old_ends, new_ends
