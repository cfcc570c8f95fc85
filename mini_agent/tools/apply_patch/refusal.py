"""What the model is told of a patch that does not fit, so that it can mend it in one try.

It has the patch and may have an older view of the file. So it is told, for each hunk without a place, the first line
that differs, the lines that stand there now, and what to do; and which hunks would have fit.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mini_agent.tools.apply_patch.file_text import ENDS, FOLDED, FileText, compared
from mini_agent.tools.apply_patch.hunk import Hunk
from mini_agent.tools.apply_patch.locate import Misfit, Placement

MOST_EXPLAINED = 5  # misfits told in full
MOST_DIFFERENCES = 3  # told of one hunk
RARE = 20  # a line that stands more often than this says nothing about the place
MOST_PLACES_COMPARED = 10
MOST_COMPARED = 200  # lines of a hunk: difflib's time grows with their square
MOST_SEARCHED = 5000  # lines of the file, for one that is like one of the hunk
LONGEST_SHOWN = 200  # characters of a line


@dataclass(frozen=True)
class FileOutcome:
    """What placing the hunks of one file came to."""

    path: str  # for showing
    file: FileText
    placements: Sequence[Placement]
    misfits: Sequence[Misfit]
    hunk_count: int


def refusal(outcomes: Sequence[FileOutcome]) -> str:
    """Return the text for a patch of which at least one hunk is a misfit."""
    misfits = [(outcome, misfit) for outcome in outcomes for misfit in outcome.misfits]
    parts = [f"The patch does not fit, and nothing was written: {_share(outcomes)}."]
    for outcome, misfit in misfits[:MOST_EXPLAINED]:
        parts.append(_explanation(outcome, misfit))
    if len(misfits) > MOST_EXPLAINED:
        rest = ", ".join(_label(outcome.path, misfit.hunk) for outcome, misfit in misfits[MOST_EXPLAINED:])
        parts.append(f"Nor do these fit: {rest}.")
    fitting = list(filter(None, map(_fitting, outcomes)))
    if fitting:
        parts.append(f"These would have fit: {'; '.join(fitting)}. Send the whole patch again, with the rest mended.")
    return "\n".join(parts)


def _fitting(outcome: FileOutcome) -> str:
    """Return which hunks of a file have their place: "name.py hunks 1, 2, 5"."""
    bad = {misfit.hunk.number for misfit in outcome.misfits}
    numbers = [placed.hunk.number for placed in outcome.placements if placed.hunk.number not in bad]
    told = ", ".join(map(str, numbers))
    return f"{outcome.path} {'hunk' if len(numbers) == 1 else 'hunks'} {told}" if numbers else ""


def _share(outcomes: Sequence[FileOutcome]) -> str:
    bad = sum(len({misfit.hunk.number for misfit in outcome.misfits}) for outcome in outcomes)
    total = sum(outcome.hunk_count for outcome in outcomes)
    if total == 1:
        return "its one hunk has no place"
    return f"{bad} of its {total} hunks {'has' if bad == 1 else 'have'} no place"


def _label(path: str, hunk: Hunk) -> str:
    return f"{path} hunk {hunk.number}"


def _explanation(outcome: FileOutcome, misfit: Misfit) -> str:
    hunk, lines = misfit.hunk, outcome.file.lines
    head = f"{_label(outcome.path, hunk)} (line {hunk.patch_line} of the patch): "
    numbers = ", ".join(map(str, misfit.lines))
    if misfit.reason == "ambiguous":
        anchors = f" ({', '.join(map(repr, hunk.anchors))})" if hunk.anchors else ""
        return (
            f"{head}its old lines stand at several places, beginning in lines {numbers}, and neither its line number "
            f"nor the text behind @@{anchors} says which. Add unchanged lines above or below until there is one."
        )
    if misfit.reason == "overlap" and misfit.other is not None:
        other = misfit.other.number
        return f"{head}it changes line {numbers} of the file, which hunk {other} changes too. Make them one hunk."
    if misfit.reason == "no_place":
        return (
            f"{head}it only adds lines, and nothing says where: the text behind @@ is not enough, and its line number "
            "is missing, or wrong as those of the hunks above. Add the unchanged line above, with a space in front."
        )
    if misfit.reason == "beyond_end":
        return (
            f"{head}it adds lines at line {numbers}, but the file has {len(lines)} lines. Add its last one above them."
        )
    stands = f" (Its new lines stand at line {numbers} already.)" if misfit.lines else ""
    return head + _difference(hunk.old, outcome.file, hunk.old_start) + stands


def _difference(old: Sequence[str], file: FileText, stated: int | None) -> str:
    """Return where `old` differs from the place where it fits best, and the lines that stand there."""
    if not file.lines:
        return "the file is empty."
    wanted, positions = compared(old, FOLDED), file.positions(FOLDED)
    start = _nearest_start(wanted, file, stated)
    differences = _differences(wanted, file.keys(FOLDED)[start:])
    if not differences:  # but for the indentation
        differences = _differences(compared(old, ENDS), file.keys(ENDS)[start:])
    first, *others = differences[:MOST_DIFFERENCES]
    is_known = any(line in positions for line in wanted if line)
    return (
        ("" if is_known else "none of its old lines is in the file, here is the place most like it: ")
        + _told(first, old, file, start)
        + _region(file, min(start + first[1], len(file.lines) - 1))
        + "".join("\nAnd " + _told(other, old, file, start) for other in others)
        + "\nCopy the unchanged and the removed lines from the file as it is now, indentation too, leaving none out."
    )


def _differences(wanted: Sequence[str], there: Sequence[str]) -> list[tuple[int, int]]:
    """Return where lines begin to differ from those of a file, and where they do so again: an index in each."""
    pairs = enumerate(zip(wanted, there))
    same = next((at for at, (one, other) in pairs if one != other), min(len(wanted), len(there)))
    head = wanted[same : same + MOST_COMPARED]
    matcher = difflib.SequenceMatcher(None, head, there[same : same + len(head) + 3], autojunk=False)
    return [
        (same + old_at, same + at)
        for kind, old_at, _, at, _ in matcher.get_opcodes()
        if kind != "equal" and old_at < len(head)  # behind them the file goes on: no difference
    ]


def _told(difference: tuple[int, int], old: Sequence[str], file: FileText, start: int) -> str:
    old_at, at = difference[0], start + difference[1]
    there = _shown(file.lines[at]) if at < len(file.lines) else f"nothing, it ends with line {len(file.lines)}"
    return (
        f"line {at + 1} of the file is not what the hunk says (its old line {old_at + 1} of {len(old)}):"
        f"\n  the patch has: {_shown(old[old_at])}\n  the file has:  {there}"
    )


def _nearest_start(wanted: Sequence[str], file: FileText, stated: int | None) -> int:
    """Return the line index at which the old lines fit best: of the places that share a rare line with them.

    Where there is none: where the longest of them would stand in the place of the line most like it.
    """
    keys, positions = file.keys(FOLDED), file.positions(FOLDED)
    rare = [(at, positions[line]) for at, line in enumerate(wanted) if 0 < len(positions.get(line, ())) <= RARE]
    votes = Counter(place - at for at, places in rare if wanted[at] for place in places if place >= at)

    def fit(start: int) -> float:
        head = wanted[:MOST_COMPARED]
        window = keys[start : start + len(head) + 3]  # some lines may have been left out
        blocks = difflib.SequenceMatcher(None, head, window, autojunk=False).get_matching_blocks()
        return sum(block.size for block in blocks) + 0.5 * (blocks[0].a == blocks[0].b == 0 and blocks[0].size > 0)

    if votes:
        return max((start for start, _ in votes.most_common(MOST_PLACES_COMPARED)), key=fit)
    longest = max(range(len(wanted)), key=lambda at: len(wanted[at]))
    places = {key[:LONGEST_SHOWN]: at for at, key in enumerate(keys[:MOST_SEARCHED])}
    for near in difflib.get_close_matches(wanted[longest][:LONGEST_SHOWN], places, 1, cutoff=0.5):
        return max(places[near] - longest, 0)
    return min(max((stated or 1) - 1, 0), len(keys) - 1)


def _region(file: FileText, at: int) -> str:
    first = max(0, min(at - 2, len(file.lines) - 5))
    shown = file.lines[first : first + 5]
    return "".join(f"\n  {first + offset + 1:>6} | {_cut(line)}" for offset, line in enumerate(shown))


def _shown(line: str) -> str:
    return repr(_cut(line))


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST_SHOWN else line[:LONGEST_SHOWN] + "…"
