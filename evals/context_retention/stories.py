"""The four natures of a case: what is told early, what changes midway, what is asked at the end, and its grader.

    note         where a file goes and how it looks: path, first and last line, separator
    limits       numbers, two of them changed, one after the other; a file is written
    exclusions   a list of names that are out, of which one is taken back and another added
    mapping      an id for each name; one gets a new id, and its old one goes to another

The last request names what it is about and repeats no value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable

from evals.harness.drawn import Draw
from evals.harness.facts import grade_facts
from evals.harness.pairs import Pair, grade_pairs, proofs_of
from evals.harness.suite import Grade, Outcome, Proof


@dataclass(frozen=True)
class Story:
    """What a case is about, without its noise."""

    early: str
    changes: tuple[str, ...]
    task: str
    values: tuple[str, ...]  # told early or midway, valid or outdated: each once, and not in the task
    proofs: tuple[Proof, ...]
    details: dict[str, Any] = field(default_factory=dict)  # for the grader


def _said(text: str) -> dict[str, Any]:
    return {"answer": text}


def _written(path: str, text: str) -> dict[str, Any]:
    return {"files": {path: text.encode()}, "answer": "Done."}


def _file_text(outcome: Outcome, path: str) -> str | None:
    """Return what the agent wrote into a file; None where there is no such file, and for a link."""
    file = outcome.workspace / path
    if not file.is_file() or file.is_symlink():
        return None
    return file.read_bytes().decode("utf-8-sig", errors="replace")


# ---------------------------------------------------------------------------------------------------------------- note


DEPOTS = ("harbour", "mill", "station")


def note(draw: Draw) -> Story:
    """Return the case of a note whose place and form were agreed on."""
    path, old_path = (f"notes/{draw.name().lower()}.txt" for _ in range(2))
    first, last = (f"{word} {draw.name()}" for word in ("Note", "End"))
    mark, old_mark = draw.random.sample(["=>", "::", "~>", "||", "%%", "<>", "+=", "@@"], 2)
    form = {"path": path, "old_path": old_path, "first": first, "last": last, "mark": mark, "old_mark": old_mark}

    def text(mark: str = mark, depots: Sequence[str] = DEPOTS, first: str = first, last: str = last) -> str:
        return "\n".join([first, *(f"{depot} {mark} ok" for depot in depots), last]) + "\n"

    right, spaced = text(), text(f"  {mark} ", DEPOTS[::-1]).replace("\n", "\n\n").rstrip()
    return Story(
        early=f"At the very end you will write a note. Remember how I want it. It goes into the file {old_path}. Its "
        f"first line is: {first}\nThen comes a line for each depot: its name, a blank, the mark {old_mark} , a blank, "
        f"its state. Its last line is: {last}",
        changes=(
            f"About the note at the end: its file is to be {path} instead.",
            f"And in the note, the mark between name and state is now {mark} , the other one I do not want any more.",
        ),
        task=f"Now write the note. The depots are {', '.join(DEPOTS)}; the state of each is ok. Keep to all that I "
        "told you about its file and its form, as it stands now. The file holds these lines and no others.",
        values=(path, old_path, first, last, mark, old_mark),
        proofs=(
            Proof("as agreed", True, **_written(path, right)),
            Proof("other order, blank lines", True, **_written(path, spaced)),
            Proof("the outdated file", False, **_written(old_path, right)),
            Proof("both files", False, files={path: right.encode(), old_path: right.encode()}),
            Proof("the outdated mark", False, **_written(path, text(old_mark))),
            Proof("both marks", False, **_written(path, text(mark).replace(last, f"mill {old_mark} ok\n{last}"))),
            Proof("no last line", False, **_written(path, text(last=""))),
            Proof("a first line of its own", False, **_written(path, text(first="Release note"))),
            Proof("a depot left out", False, **_written(path, text(depots=DEPOTS[:2]))),
            Proof("said and not written", False, answer=right),
        ),
        details=form,
    )


def grade_note(form: Mapping[str, str], outcome: Outcome) -> Grade:
    """Look for the file, and in it for the lines, whatever blanks are around and in them."""
    written = _file_text(outcome, form["path"])
    lines = [" ".join(line.split()).casefold() for line in (written or "").splitlines() if line.strip()]
    close = [re.sub(r"\s", "", line) for line in lines]
    found = {
        f"the file {form['path']}": written is not None,
        f"the first line: {form['first']}": lines[:1] == [form["first"].casefold()],
        **{f"{depot} {form['mark']} ok": f"{depot}{form['mark']}ok" in close for depot in DEPOTS},
        f"the last line: {form['last']}": lines[-1:] == [form["last"].casefold()],
    }
    old = {
        f"the file {form['old_path']} (outdated)": (outcome.workspace / form["old_path"]).exists(),
        f"the mark {form['old_mark']} (outdated)": form["old_mark"] in (written or ""),
        "lines that nobody asked for": len(lines) > len(DEPOTS) + 2,
    }
    missing, forbidden = [name for name, is_there in found.items() if not is_there], [n for n in old if old[n]]
    return Grade(not missing and not forbidden, 1 - len(missing) / len(found), tuple(missing), tuple(forbidden))


# -------------------------------------------------------------------------------------------------------------- limits


LIMITS_FILE = "limits.conf"


def limits(draw: Draw) -> Story:
    """Return the case of numbers, two of which changed."""
    names = draw.random.sample(["retry", "burst", "queue", "grace", "batch"], 4)
    pairs = [Pair(name, draw.digits(), draw.digits() if place < 2 else "") for place, name in enumerate(names)]
    told = ", ".join(f"{pair.label} {pair.outdated or pair.value}" for pair in sorted(pairs, key=lambda p: p.label))
    return Story(
        early=f"Remember these limits, you will need them at the very end: {told}.",
        changes=tuple(f"One of the limits changes: {pair.label} is now {pair.value}." for pair in pairs[:2]),
        task=f"Now write the file {LIMITS_FILE}: a line `name = value` for each of the limits {', '.join(names)}, with "
        "the value that holds now, and nothing else: no comments, no former values.",
        values=tuple(value for pair in pairs for value in pair.told),
        proofs=(
            *proofs_of(pairs, lambda text: _written(LIMITS_FILE, text)),
            Proof("said and not written", False, answer="\n".join(f"{pair.label} = {pair.value}" for pair in pairs)),
        ),
        details={"pairs": pairs, "file": LIMITS_FILE},
    )


# ------------------------------------------------------------------------------------------------------------- mapping


def mapping(draw: Draw) -> Story:
    """Return the case of an id for each name, two of which changed hands."""
    names, codes = [draw.name() for _ in range(5)], [draw.code() for _ in range(6)]
    moved, heir, *rest = names
    pairs = [Pair(moved, codes[5], codes[0]), Pair(heir, codes[0], codes[1])]
    pairs += [Pair(name, code) for name, code in zip(rest, codes[2:])]
    told = ", ".join(f"{name} {code}" for name, code in draw.random.sample(list(zip(names, codes)), 5))
    asked = draw.random.sample(pairs, 5)
    return Story(
        early=f"Remember the code of each project, you will need them at the very end: {told}.",
        changes=(
            f"A change of the projects' codes: {moved} gets the new code {codes[5]}.",
            f"One more: the code that {moved} had before goes to {heir}.",
        ),
        task=f"Now tell me the code that each project has now: {', '.join(pair.label for pair in asked)}. A line each, "
        "`project: code`. Leave out codes that a project had before. Do not change any file.",
        values=tuple(codes),
        proofs=proofs_of(asked, _said),
        details={"pairs": asked},
    )


def grade_values(details: Mapping[str, Any], outcome: Outcome) -> Grade:
    """Look for the pairs in the file that was asked for, or in the answer."""
    text = (_file_text(outcome, details["file"]) or "") if "file" in details else outcome.answer
    return grade_pairs(text, details["pairs"])


# ---------------------------------------------------------------------------------------------------------- exclusions


def exclusions(draw: Draw) -> Story:
    """Return the case of names that are out; one comes back, another one goes."""
    hosts = [draw.name() for _ in range(9)]
    back, added, *rest = hosts
    out, stay = rest[:3], rest[3:]
    early = draw.random.sample([back, *out], 4)
    wanted, forbidden = sorted([back, *stay]), sorted([added, *out])
    return Story(
        early=f"At the very end there will be an update of all hosts but these. Remember them: {', '.join(early)}.",
        changes=(
            f"About the hosts without the update: {back} may have it after all.",
            f"But {added} must not have the update, just like the ones I named at first.",
        ),
        task=f"These are all hosts: {', '.join(draw.random.sample(hosts, 9))}. Which of them get the update? Answer "
        "with their names, one per line, and do not name any other host. Do not change any file.",
        values=(),  # the names are in the task; what was told of them is not
        proofs=(
            Proof("a line each", True, answer="\n".join(wanted)),
            Proof("in a sentence", True, answer=f"The update goes to **{'**, **'.join(reversed(wanted))}**."),
            Proof("as it was at first", False, answer="\n".join(sorted([*stay, added]))),
            Proof("the one back, the other not out", False, answer="\n".join([*wanted, added])),
            Proof("the one out, the other not back", False, answer="\n".join(stay)),
            Proof("all hosts", False, answer="\n".join(hosts)),
            Proof("the others", False, answer="\n".join(forbidden)),
            Proof("half of them", False, answer="\n".join(wanted[: len(wanted) // 2])),
            Proof("both lists", False, answer=f"They get it: {', '.join(wanted)}. Not: {', '.join(forbidden)}."),
        ),
        details={"wanted": wanted, "forbidden": forbidden},
    )


def grade_names(details: Mapping[str, Any], outcome: Outcome) -> Grade:
    """Look for the names in the answer."""
    return grade_facts(outcome.answer, details["wanted"], details["forbidden"])


NATURES: dict[str, tuple[Callable[[Draw], Story], Callable[[Mapping[str, Any], Outcome], Grade]]] = {
    "note": (note, grade_note),
    "limits": (limits, grade_values),
    "mapping": (mapping, grade_values),
    "exclusions": (exclusions, grade_names),
}
