"""Hunks are given their places in a file, by whole lines and only where there is one answer.

A hunk's old lines are looked for exactly, then with more and more of their form ignored (`LEVELS`). One place found:
there. Several exact ones: the one at the stated line number, or the one under the text behind @@; otherwise the hunk
is a `Misfit` that says what was found. Nothing here reads or writes a file: text and hunks in, new text out.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from mini_agent.tools.apply_patch.file_text import (
    EXACT,
    FOLDED,
    LEVELS,
    SHIFTED,
    WHITE_SPACE,
    FileText,
    compared,
    indentation,
)
from mini_agent.tools.apply_patch.hunk import Hunk

MOST_PLACES = 10  # of an ambiguous block: enough to name them


@dataclass(frozen=True)
class Placement:
    """Where a hunk goes."""

    hunk: Hunk
    start: int  # index of the file's line where the old lines begin
    level: int = EXACT
    stands: bool = False  # the new lines are there already: nothing is to be done


@dataclass(frozen=True)
class Misfit:
    """A hunk that has no place, or no single one."""

    hunk: Hunk
    reason: str  # absent, ambiguous, no_place, beyond_end, overlap
    lines: tuple[int, ...] = ()  # 1-based: the places found, where the new lines stand, or the line in question
    other: Hunk | None = None  # overlap: the hunk that changes the same line


@dataclass(frozen=True)
class Edit:
    """One run of lines of the file, and what comes in its stead."""

    start: int  # half-open range of line indexes
    end: int
    lines: tuple[str, ...]
    hunk: Hunk
    fitted: bool  # the lines were given the file's line ending


# ---- placing ------------------------------------------------------------------------------------------------------


def place_hunks(hunks: Sequence[Hunk], file: FileText) -> tuple[list[Placement], list[Misfit]]:
    """Return where each hunk goes, and those that go nowhere; both in the order of the hunks' numbers."""
    placements: list[Placement] = []
    misfits: list[Misfit] = []
    moved = 0  # lines by which the stated numbers are off here,
    grown = 0  # beyond those by which the hunks that stand already have made the file longer
    for hunk in _in_stated_order(hunks):
        outcome = _place(hunk, file, moved, grown)
        if isinstance(outcome, Misfit):
            misfits.append(outcome)
            continue
        placements.append(outcome)
        if hunk.old_start is not None and hunk.old:
            moved = outcome.start - (hunk.old_start - 1) - grown
        if outcome.stands:
            grown += len(hunk.new) - len(hunk.old)
    misfits += _overlaps(placements, file)
    return sorted(placements, key=lambda placed: placed.hunk.number), sorted(misfits, key=lambda bad: bad.hunk.number)


def _in_stated_order(hunks: Sequence[Hunk]) -> list[Hunk]:
    """Sort by the lines that are stated; a hunk that states none stays behind the one before it."""
    stated = accumulate(hunks, lambda last, hunk: last if hunk.old_start is None else hunk.old_start, initial=0)
    return [hunk for _, hunk in sorted(zip(islice(stated, 1, None), hunks), key=lambda pair: pair[0])]


def _place(hunk: Hunk, file: FileText, moved: int, grown: int) -> Placement | Misfit:
    if not hunk.old:
        return _place_insertion(hunk, file, moved, grown)
    expected = None if hunk.old_start is None else hunk.old_start - 1 + moved + grown
    if expected is not None:
        if file.matches_at(hunk.old, expected, EXACT, hunk.old_has_last_newline):
            return _placed(hunk, file, expected, EXACT)
        stands = file.matches_at(hunk.new, expected, EXACT, hunk.new_has_last_newline)
        if stands and _adds_content(hunk) and _has_context(hunk):
            return Placement(hunk, expected, stands=True)
    for level in LEVELS:
        most = len(file.lines) if level == EXACT and (hunk.anchors or hunk.at_end) else MOST_PLACES
        starts = file.find(hunk.old, level, hunk.old_has_last_newline, most)
        if len(starts) > 1 and level == EXACT:
            starts = _chosen(hunk, file, starts) or starts
        if len(starts) > 1:
            return Misfit(hunk, "ambiguous", tuple(start + 1 for start in starts[:MOST_PLACES]))
        if starts and _can_be_shifted(hunk, file, starts[0], level):
            return _placed(hunk, file, starts[0], level)
    return _standing_without_old(hunk, file, expected)


def _can_be_shifted(hunk: Hunk, file: FileText, start: int, level: int) -> bool:
    """Tell whether every added line has the indentation that is to be taken off it."""
    off, _ = file.shift(hunk.old, start, level)
    return all(text.startswith(off) for tag, text in hunk.lines if tag == "+" and text.strip())


def _placed(hunk: Hunk, file: FileText, start: int, level: int) -> Placement:
    """Place a hunk whose old lines stand at `start`, unless its new lines stand there as well.

    They do where lines were added behind lines that are still there (an append must not be made twice), and where a
    hunk changes only what the level ignores. A removal is not seen this way: the lines that it leaves may be there
    because they come first.
    """
    growth = len(hunk.new) - len(hunk.old)
    for closer in range(level + 1 if growth > 0 else level if growth == 0 else 0):
        if file.matches_at(hunk.new, start, closer, hunk.new_has_last_newline):
            return Placement(hunk, start, closer, stands=True)
    return Placement(hunk, start, level)


def _chosen(hunk: Hunk, file: FileText, starts: list[int]) -> list[int]:
    """Choose among several exact places by the end of the file, or by the lines behind @@."""
    if hunk.at_end:
        return [start for start in starts if start + len(hunk.old) == len(file.lines)]
    under: set[int] = set()
    for top in _anchor_positions(hunk.anchors, file):
        below = bisect_right(starts, top)
        if below < len(starts):
            inside = starts[below : bisect_left(starts, _block_end(top, file))]
            under.update(inside or [starts[below]])
        if len(under) > 1:
            break
    return sorted(under)


def _anchor_positions(anchors: Sequence[str], file: FileText) -> list[int]:
    """Return where the last anchor stands, each one looked for below the one before it."""
    tops = [-1]
    for anchor in anchors:
        keys = file.keys(SHIFTED)
        whole = file.positions(SHIFTED).get(anchor, []) or [at for at, key in enumerate(keys) if key.startswith(anchor)]
        tops = [at for at in whole if at > tops[0]]
        if not tops:
            return []
    return tops if anchors else []


def _block_end(top: int, file: FileText) -> int:
    """Return the index of the first line below `top` that is not indented deeper than it."""
    depth = len(indentation(file.lines[top]).expandtabs())
    for at in range(top + 1, len(file.lines)):
        line = file.lines[at]
        if line.strip() and len(indentation(line).expandtabs()) <= depth:
            return at
    return len(file.lines)


def _standing_without_old(hunk: Hunk, file: FileText, expected: int | None) -> Placement | Misfit:
    """The old lines are nowhere: perhaps because the hunk is applied already."""
    for level in LEVELS if hunk.new else ():
        starts = file.find(hunk.new, level, hunk.new_has_last_newline)
        if len(starts) == 1 and _shows_itself(hunk, file, starts[0], starts[0] == expected):
            return Placement(hunk, starts[0], level, stands=True)
        if starts:
            return Misfit(hunk, "absent", tuple(start + 1 for start in starts))
    return Misfit(hunk, "absent")


def _adds_content(hunk: Hunk) -> bool:
    removed = set(compared([text for tag, text in hunk.lines if tag == "-"], FOLDED))
    added = compared([text for tag, text in hunk.lines if tag == "+"], FOLDED)
    return any(text not in removed and re.search(r"\w", text) for text in added)


def _has_context(hunk: Hunk) -> bool:
    return any(tag == " " and text.strip() for tag, text in hunk.lines)


def _shows_itself(hunk: Hunk, file: FileText, start: int, is_expected: bool) -> bool:
    """Tell whether the new lines at `start` prove that the hunk was applied: they might stand there by chance.

    Proof of an addition is a context line beside it, or the line number. A removal leaves nothing but context: it must
    be there on both sides of what was removed, and be at the stated line or long enough not to have met by chance.
    """
    if not hunk.new_has_last_newline and start + len(hunk.new) < len(file.lines):
        return False  # it would end the file
    if _adds_content(hunk):
        return is_expected or _has_context(hunk)
    changed = [at for at, (tag, _) in enumerate(hunk.lines) if tag != " "]
    above, below = hunk.lines[: changed[0]], hunk.lines[changed[-1] + 1 :]
    enough = 1 if is_expected else 2
    return (start == 0 or sum(bool(text.strip()) for _, text in above) >= enough) and (
        start + len(hunk.new) == len(file.lines) or sum(bool(text.strip()) for _, text in below) >= enough
    )


def _place_insertion(hunk: Hunk, file: FileText, moved: int, grown: int) -> Placement | Misfit:
    """Place added lines without any context: the stated line number is all there is."""
    if hunk.at_end or not file.lines:
        end = len(file.lines)
        tail = max(0, end - len(hunk.new))
        return Placement(hunk, tail, stands=True) if file.matches_at(hunk.new, tail, EXACT) else Placement(hunk, end)
    if hunk.inserts_behind is None or moved:  # the line numbers are known to be wrong here
        return Misfit(hunk, "no_place")
    start = hunk.inserts_behind + grown
    if not 0 <= start <= len(file.lines):
        return Misfit(hunk, "beyond_end", (start + 1,))
    return Placement(hunk, start, stands=file.matches_at(hunk.new, start, EXACT, hunk.new_has_last_newline))


# ---- editing ------------------------------------------------------------------------------------------------------


def edits_of(placement: Placement, file: FileText) -> list[Edit]:
    """Return a hunk's changes at its place; its context lines change nothing."""
    if placement.stands:
        return []
    edits: list[Edit] = []
    at = start = placement.start
    added: list[str] = []
    shift = file.shift(placement.hunk.old, start, placement.level)
    for tag, text in (*placement.hunk.lines, (" ", "")):
        if tag == "+":
            added.append(_fitted(text, placement, file, start, shift))
        elif tag == "-":
            at += 1
        else:
            if added or at > start:
                edits.append(Edit(start, at, tuple(added), placement.hunk, not _is_as_written(placement, file)))
            at += 1
            start, added = at, []
    return edits


def _is_as_written(placement: Placement, file: FileText) -> bool:
    """Tell whether a hunk's old lines matched exactly, and had a line ending by which to know the file's."""
    reaches_end = placement.start + len(placement.hunk.old) == len(file.lines)
    terminated = len(placement.hunk.old) - (reaches_end and not file.ends_with_newline)
    return placement.level == EXACT and terminated > 0


def _fitted(text: str, placement: Placement, file: FileText, at: int, shift: tuple[str, str]) -> str:
    """Return an added line as the file has its lines.

    Where the old lines matched exactly, it is taken as it is: a patch may change line endings on purpose. Otherwise
    it takes the ending of the line in whose place it comes, and the indentation by which the old lines differed.
    """
    if _is_as_written(placement, file):
        return text
    text = text.rstrip("\r") if placement.hunk.old else text
    if text.strip(WHITE_SPACE):
        off, on = shift
        text = on + text[len(off) :]
    neighbour = min(at, placement.start + len(placement.hunk.old) - 1)
    has_cr = file.uses_crlf or (placement.hunk.old and file.lines[neighbour].endswith("\r"))
    return text + "\r" if has_cr and not text.endswith("\r") else text


def _overlaps(placements: Sequence[Placement], file: FileText) -> list[Misfit]:
    """Return the hunks that change what another one changes; the same change twice is taken for one."""
    misfits = []
    edits = _sorted_edits(placements, file)
    for before, after in zip(edits, edits[1:]):
        is_same_gap = before.start == before.end == after.start == after.end
        if before.end > after.start or is_same_gap:
            misfits.append(Misfit(after.hunk, "overlap", (after.start + 1,), before.hunk))
    return misfits


def _sorted_edits(placements: Sequence[Placement], file: FileText) -> list[Edit]:
    unique = {(edit.start, edit.end, edit.lines): edit for placed in placements for edit in edits_of(placed, file)}
    return [edit for _, edit in sorted(unique.items(), key=lambda item: item[0][:2])]


def edited(placements: Sequence[Placement], file: FileText) -> str:
    """Return the file's text with the hunks applied."""
    lines: list[str] = []
    at = 0
    edits = _sorted_edits(placements, file)
    for edit in edits:
        lines += file.lines[at : edit.start]
        if edit.start == len(file.lines) and not file.ends_with_newline and file.uses_crlf:
            lines[-1] += "\r"  # the last line had no ending, and now one follows
        lines += edit.lines
        at = edit.end
    lines += file.lines[at:]
    if not _ends_with_newline(placements, file):
        text = "\n".join(lines)
        return text.removesuffix("\r") if edits and edits[-1].fitted and at == len(file.lines) else text
    return "\n".join([*lines, ""]) if lines else ""


def _ends_with_newline(placements: Sequence[Placement], file: FileText) -> bool:
    """Tell whether the new text ends in a newline: as the file does, unless a hunk reaches its end and says so."""
    for placed in placements:
        hunk = placed.hunk
        if placed.stands or placed.start + len(hunk.old) < len(file.lines):
            continue
        if not hunk.old:
            return file.ends_with_newline and hunk.new_has_last_newline
        if placed.level == EXACT and hunk.old_has_last_newline == file.ends_with_newline:
            return hunk.new_has_last_newline or not hunk.new
    return file.ends_with_newline
