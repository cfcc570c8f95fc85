"""Random patches of random files, whole or damaged as models damage them, each with what must become of it.

The truth is known without applying anything: the new text is made first, and the patch from it by difflib. A harmless
damage leaves one reading, so the patch must be applied, or, where its lines stand more than once, may be refused; a
harmful one leaves none. Any other content of a file is a wrong result.
"""

from __future__ import annotations

import difflib
import random
from dataclasses import dataclass, field

_WORDS = ["alpha", "beta", "gamma", "delta", "}", "return None", 'say("hi")', "-- note", "++ more", "it's", "", "\ttab"]
_CUT = "\0"
_MARKER = "\\ No newline at end of file"


@dataclass
class RandomHunk:
    old_start: int  # 1-based as git counts
    new_start: int
    lines: list[list[str]]  # tag, text; _CUT at its end where no newline follows

    def header(self) -> str:
        old, new = (sum(tag != skipped for tag, _ in self.lines) for skipped in "+-")
        return f"@@ -{self.old_start},{old} +{self.new_start},{new} @@"


@dataclass
class RandomFile:
    name: str
    before: list[str]  # without LF
    after: list[str]
    ends: bool  # with a newline
    hunks: list[RandomHunk] = field(default_factory=list)

    def text(self, lines: list[str]) -> str:
        return "\n".join(lines) + ("\n" if lines and self.ends else "")


@dataclass
class RandomCase:
    before: dict[str, str]
    after: dict[str, str]
    patch: str
    may_refuse: bool
    must_refuse: bool
    story: list[str]  # the damages, for the message of a failing test


def _random_line(chance: random.Random, variety: int) -> str:
    word = chance.choice(_WORDS)
    indent = "    " * chance.randrange(3) if word else ""
    number = chance.randrange(variety)
    return indent + (f"{word} {number}" if word and chance.random() < 0.8 else word)


def _random_file(chance: random.Random, name: str) -> RandomFile:
    variety = chance.choice([3, 30, 10_000])
    before = [_random_line(chance, variety) for _ in range(chance.randrange(1, 60))]
    after = list(before)
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(after) + 1)
        new = [_random_line(chance, variety) for _ in range(chance.randrange(4))]
        after[at : at + chance.randrange(4)] = new
    ends = chance.random() < 0.8 or before[-1] == "" or after[-1:] == [""]  # no text ends in an empty line without LF
    return RandomFile(name, before, after, ends)


def _make_hunks(file: RandomFile, context: int) -> None:
    before, after = list(file.before), list(file.after)
    for lines in (before, after):
        if lines and not file.ends:
            lines[-1] += _CUT  # so that it differs from the same line with a newline, as for git
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes(context) if context else [[op] for op in matcher.get_opcodes()]:
        hunk: list[list[str]] = []
        for tag, a, b, c, d in group:
            if tag == "equal":
                hunk += [[" ", text] for text in before[a:b]]
            else:
                hunk += [["-", text] for text in before[a:b]] + [["+", text] for text in after[c:d]]
        if any(tag != " " for tag, _ in hunk):
            first, last = group[0], group[-1]
            old_start = first[1] + (last[2] > first[1])
            file.hunks.append(RandomHunk(old_start, first[3] + (last[4] > first[3]), hunk))


def _old(hunk: RandomHunk) -> list[str]:
    return [text.rstrip(_CUT) for tag, text in hunk.lines if tag != "+"]


def _surely_old(hunk: RandomHunk) -> list[str]:
    """Return the old lines without blank context at the end, which may be taken for space between hunks."""
    lines = list(hunk.lines)
    while lines and lines[-1] == [" ", ""]:
        lines.pop()
    return [text.rstrip(_CUT) for tag, text in lines if tag != "+"]


def _new(hunk: RandomHunk) -> list[str]:
    return [text.rstrip(_CUT) for tag, text in hunk.lines if tag != "-"]


def _places(block: list[str], lines: list[str]) -> int:
    """Count, one place after the other, where a block stands when white space around lines is ignored."""
    bare, stripped = [line.strip() for line in block], [line.strip() for line in lines]
    if not any(bare):
        return 99  # nothing that could be looked for
    return sum(stripped[at : at + len(bare)] == bare for at in range(len(stripped) - len(bare) + 1))


def _is_told_apart(file: RandomFile, hunk: RandomHunk) -> bool:
    """Tell whether an applied hunk can be told from one that is not: else there is no truth about it."""
    old, new, at = _old(hunk), _new(hunk), hunk.old_start - (1 if _old(hunk) else 0)
    return not (len(new) > len(old) and file.before[at : at + len(new)] == new)


def make_case(chance: random.Random) -> RandomCase | None:
    """Return a case, or None where the random edits left nothing that has one truth."""
    context = chance.choice([3, 3, 3, 1, 0])
    files = [
        _random_file(chance, name) for name in chance.sample(["a.py", "sub/b.txt", "c d.md"], chance.choice([1, 1, 2]))
    ]
    for file in files:
        _make_hunks(file, context)
    files = [file for file in files if file.hunks]
    hunks = [(file, hunk) for file in files for hunk in file.hunks]
    if not hunks or not all(_is_told_apart(file, hunk) for file, hunk in hunks):
        return None
    is_unique = all(_places(_surely_old(hunk), file.before) == 1 for file, hunk in hunks)
    case = RandomCase(
        {file.name: file.text(file.before) for file in files},
        {file.name: file.text(file.after) for file in files},
        "",
        may_refuse=not is_unique,
        must_refuse=False,
        story=[f"context {context}", "unique" if is_unique else "not unique"],
    )
    for damage in chance.sample(_DAMAGES, chance.choice([0, 1, 1, 2, 3])):
        damage(chance, files, case, is_unique)
    case.patch = case.patch or _render(chance, files, case, is_unique)
    return case


# ---- damages --------------------------------------------------------------------------------------------------------


def _wrong_numbers(chance: random.Random, files: list[RandomFile], case: RandomCase, is_unique: bool) -> None:
    if is_unique:  # else the wrong number may point at a twin, and that is then what the patch says
        for file in files:
            for hunk in file.hunks:
                hunk.old_start = max(1, hunk.old_start + chance.randrange(-9, 10))
        case.story.append("wrong numbers")


def _out_of_order(chance: random.Random, files: list[RandomFile], case: RandomCase, is_unique: bool) -> None:
    for file in files:
        chance.shuffle(file.hunks)
    case.story.append("out of order")


def _white_space_at_ends(chance: random.Random, files: list[RandomFile], case: RandomCase, is_unique: bool) -> None:
    for file in files:
        for hunk in file.hunks:
            for line in hunk.lines:
                if line[0] != "+" and chance.random() < 0.3:
                    white, cut = chance.choice([" ", "\t", "   "]), line[1].endswith(_CUT)
                    line[1] = line[1].rstrip(_CUT) + white + _CUT * cut
    case.story.append("white space at ends")


def _other_indentation(chance: random.Random, files: list[RandomFile], case: RandomCase, is_unique: bool) -> None:
    if not is_unique or any(not _old(hunk)[0].strip() for file in files for hunk in file.hunks):
        return
    for file in files:
        for hunk in file.hunks:
            for line in hunk.lines:
                line[1] = "  " + line[1] if line[1].strip() else line[1]
    case.story.append("other indentation")


def _typographic(chance: random.Random, files: list[RandomFile], case: RandomCase, is_unique: bool) -> None:
    for file in files:
        for hunk in file.hunks:
            for line in hunk.lines:
                if line[0] != "+":
                    line[1] = line[1].replace("it's", "it’s").replace('"hi"', "“hi”")
    case.story.append("typographic")


def _altered_line(chance: random.Random, files: list[RandomFile], case: RandomCase, is_unique: bool) -> None:
    line = chance.choice([line for file in files for hunk in file.hunks for line in hunk.lines])
    if line[0] != "+":
        line[1] = chance.choice(["omega ", "#"]) + line[1]
        case.must_refuse = True
        case.story.append("altered line")


def _crlf_file(chance: random.Random, files: list[RandomFile], case: RandomCase, is_unique: bool) -> None:
    if any("\n" not in text for text in case.before.values()):
        return  # nothing shows its line ending
    for contents in (case.before, case.after):
        for name in contents:
            contents[name] = contents[name].replace("\n", "\r\n")
    case.story.append("CRLF file")


def _nothing(chance: random.Random, files: list[RandomFile], case: RandomCase, is_unique: bool) -> None:
    case.story.append("rendered otherwise")


_DAMAGES = [
    _wrong_numbers,
    _out_of_order,
    _white_space_at_ends,
    _other_indentation,
    _typographic,
    _altered_line,
    _crlf_file,
    _nothing,
]


def _render(chance: random.Random, files: list[RandomFile], case: RandomCase, is_unique: bool) -> str:
    """Write the patch down: as git would, or, where a damage is told, in one of the forms of models."""
    is_git = "rendered otherwise" not in case.story
    if not is_git and chance.random() < 0.3 and is_unique:
        return _envelope(chance, files)
    parts: list[str] = []
    for file in files:
        prefix = ("a/", "b/") if is_git or chance.random() < 0.7 else ("", "")
        if is_git or chance.random() < 0.5:
            parts.append(f"diff --git {prefix[0]}{file.name} {prefix[1]}{file.name}")
        parts += [f"--- {prefix[0]}{file.name}", f"+++ {prefix[1]}{file.name}"]
        for hunk in file.hunks:
            header = hunk.header()
            if not is_git and _old(hunk):
                wrong = f"@@ -{hunk.old_start},{chance.randrange(9)} +{hunk.new_start},{chance.randrange(9)} @@"
                header = chance.choice([header, wrong, "@@", "@@ ... @@"] if is_unique else [header, wrong])
            parts.append(header)
            parts += _body(hunk, is_git or chance.random() < 0.5, not is_git)
        if not is_git and chance.random() < 0.3:
            parts.append("")
    text = "\n".join(parts) + "\n"
    if not is_git and chance.random() < 0.3:
        text = f"Here it is:\n\n```diff\n{text}```\n"
    return text if is_git or chance.random() < 0.7 else text.replace("\n", "\r\n")


def _body(hunk: RandomHunk, has_marker: bool, drops_spaces: bool) -> list[str]:
    body = []
    for tag, text in hunk.lines:
        body.append("" if drops_spaces and tag == " " and not text else tag + text.rstrip(_CUT))
        if has_marker and text.endswith(_CUT):
            body.append(_MARKER)
    return body


def _envelope(chance: random.Random, files: list[RandomFile]) -> str:
    parts = ["*** Begin Patch"]
    for file in files:
        parts.append(f"*** Update File: {file.name}")
        for hunk in file.hunks:
            parts.append("@@")
            parts += _body(hunk, False, False)
    return "\n".join([*parts, "*** End Patch"]) + "\n"
