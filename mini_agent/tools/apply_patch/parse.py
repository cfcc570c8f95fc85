"""Patch text is read into file patches with hunks: what a patch says, before anybody looks at a file.

Two forms are read, and mixtures of them: git's unified diff, and the envelope (`*** Begin Patch`). Models write both
from memory, so the reader believes lines and not numbers: a hunk is what its lines say, whatever its `@@` counts.
Whatever has two readings is refused, by name.

Lines end at LF only. Form feeds, U+2028 and lone CRs are content, as they are for git.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

from mini_agent.conversation.safe_text import safe_line
from mini_agent.tools.tool import ToolError

RIGHT_FORM = """A patch looks like this:
--- a/folder/name.py
+++ b/folder/name.py
@@ -12,3 +12,3 @@
 a line that stays
-a line that goes
+a line that comes"""


@dataclass(frozen=True)
class Hunk:
    """Lines that stand together in a file, some to be removed, some to be added."""

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


@dataclass(frozen=True)
class FilePatch:
    """What a patch says about one file."""

    kind: str  # update, add, delete, rename, copy
    path: str  # as the patch names it, without a/ or b/
    new_path: str  # the same, but for rename and copy
    hunks: tuple[Hunk, ...]
    is_executable: bool | None = None  # None: the patch says nothing of it
    must_be_empty: bool = False  # deletion: git says that the file has no content

    @property
    def label(self) -> str:
        """Return the path for showing: on one line, in sound Unicode."""
        return safe_line(self.path)


def parse_patch(patch_text: str) -> tuple[FilePatch, ...]:
    """Read a patch; raise ToolError (`bad_patch`, or `unsupported_patch` for kinds that are refused by name)."""
    try:
        patch_text.encode("utf-8")
    except UnicodeEncodeError as error:
        number = patch_text.count("\n", 0, error.start) + 1
        raise _bad(f"Line {number} of the patch holds half a character (a lone surrogate).") from None
    if "\0" in patch_text:
        raise _bad("The patch holds a NUL character; only text files can be patched.")
    return _Reader(_lines(_MAIL_SIGNATURE.sub("", patch_text.removeprefix("\ufeff")))).read()


def _bad(message: str, form: str = "") -> ToolError:
    return ToolError("bad_patch", f"{message} Nothing was written. {form}".rstrip())


def _unsupported(what: str, instead: str) -> ToolError:
    return ToolError("unsupported_patch", f"{what} cannot be applied. {instead} Nothing was written.")


# ---- lines --------------------------------------------------------------------------------------------------------

_FILE_HEADER = re.compile(r"diff --git |--- |\+\+\+ |\*\*\* (Begin Patch|\w+ File: )")
_FENCE = "```"
_HUNK_HEADER = re.compile(
    r"@@[ \t]*(?:-([0-9]{1,9})(,[0-9]+)?)?[ \t]*(?:\+([0-9]{1,9})(?:,[0-9]+)?)?[ \t]*(?:@@)?(.*)", re.S
)
_DIRECTIVE = re.compile(
    r"\*\*\* (Begin Patch|End Patch|End of File|(?:(Update|Add|Delete) File|Move to): ?(.*))\s*", re.S
)
_LOST_LINE = re.compile(r"[+-](?! \S|--)")  # outside a hunk: a changed line, and not a list in prose, or a rule
_EXTENDED = re.compile(
    r"(new file mode|deleted file mode|old mode|new mode) ([0-7]{6})|(rename from|rename to|copy from|copy to) (.+)"
    r"|index [0-9a-f]+\.\.[0-9a-f]+(?: ([0-7]{6}))?"
)
_MAIL_SIGNATURE = re.compile(r"(?<=\n)-- \n[0-9]+(\.[0-9]+)+\s*\Z")  # of git format-patch: no removed line


def _lines(text: str) -> list[str]:
    """Split a patch at LF; where every header has a CR, none of the CRs belongs to the files."""
    lines = text.removesuffix("\n").split("\n")
    headers = [line for line in lines if _FILE_HEADER.match(line)]
    if headers and all(line.endswith("\r") for line in headers):
        return [line.removesuffix("\r") for line in lines]
    return lines


# ---- the reader ---------------------------------------------------------------------------------------------------


@dataclass
class _Section:
    """The part of a patch about one file, while it is read."""

    line: int
    directive: str = ""  # Update, Add or Delete: the envelope's; "": git's
    header: str = ""  # what follows "diff --git "
    old_name: str | None = None  # as written, behind "--- "
    new_name: str | None = None
    rename_from: str | None = None
    rename_to: str | None = None
    is_copy: bool = False
    is_new: bool = False
    is_deleted: bool = False
    must_be_empty: bool = False
    is_executable: bool | None = None
    hunks: list[Hunk] = field(default_factory=list)

    @property
    def awaits_hunk(self) -> bool:
        """Tell whether the names are read, and the first hunk is not."""
        return self.old_name is not None and not self.hunks

    @property
    def is_addition(self) -> bool:
        """Tell whether the file is a new one."""
        return self.directive == "Add" or self.is_new or (self.old_name or "").startswith(_NOTHING)


class _Reader:
    """One pass over the lines of a patch."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0  # index of the line that is read next
        self._sections: list[_Section] = []
        self._in_prose = True  # before the first header and after a fence: lines that belong to nothing are prose

    def read(self) -> tuple[FilePatch, ...]:
        """Return what the patch says of each file, in its order."""
        while self._at < len(self._lines):
            self._read_line(self._lines[self._at])
        if not self._sections:
            text = "\n".join(self._lines)
            why = "This is not a patch." if text.strip() else "The patch is empty."
            why += " Its line ends are written as \\n; send real ones." if "\\n+" in text else ""
            raise _bad(why, RIGHT_FORM)
        return tuple(map(_file_patch, self._sections))

    def _read_line(self, line: str) -> None:
        if line.startswith("diff --git "):
            self._sections.append(_Section(self._at + 1, header=line[11:]))
            self._in_prose = False
            self._at += 1
        elif line.startswith(("diff --cc ", "diff --combined ", "@@@")):
            raise _unsupported("a merge diff (@@@)", "Write an ordinary diff against the file as it is now.")
        elif self._is_name_pair(self._at):
            self._read_name_pair()
        elif line.startswith("*** "):
            self._read_directive(line)
        elif line.startswith("@@") or self._begins_hunk_without_header(line):
            self._read_hunk()
        else:
            self._read_other(line)

    def _is_name_pair(self, at: int) -> bool:
        return (
            at + 1 < len(self._lines) and self._lines[at].startswith("--- ") and self._lines[at + 1].startswith("+++ ")
        )

    def _read_name_pair(self) -> None:
        last = self._sections[-1] if self._sections else None
        if last is None or last.hunks or last.old_name is not None:
            header = ""
            if last is not None and last.directive == "Update" and not last.hunks:
                self._sections.pop()  # an envelope's header above git's: to be checked against it
                header = f"{last.old_name} {last.new_name}"
            self._sections.append(_Section(self._at + 1, header=header))
        section = self._sections[-1]
        section.old_name, section.new_name = (name[4:] for name in self._lines[self._at : self._at + 2])
        self._at += 2
        while self._lines[self._at : self._at + 1] == [f"+++ {section.new_name}"]:  # written twice
            self._at += 1
        self._in_prose = False

    def _begins_hunk_without_header(self, line: str) -> bool:
        awaits_hunk = bool(self._sections) and not self._in_prose and self._sections[-1].awaits_hunk
        return awaits_hunk and line.startswith(("+", "-", " "))

    def _read_directive(self, line: str) -> None:
        match = _DIRECTIVE.fullmatch(line)
        where = f"Line {self._at + 1} of the patch"
        if match is None and not self._in_prose:
            raise _bad(
                f"{where}, {line[:60]!r}, is not known. There are *** Update File: PATH, *** Add File: PATH, "
                "*** Delete File: PATH, *** Move to: PATH and *** End of File."
            )
        if match and match[2]:
            self._sections.append(
                _Section(self._at + 1, match[2], old_name=match[3].strip(), new_name=match[3].strip())
            )
        elif match and match[3] is not None:
            section = self._sections[-1] if self._sections else None
            if section is None or section.directive != "Update" or section.hunks:
                raise _bad(f"{where}: '*** Move to:' belongs below '*** Update File:'.")
            section.rename_from, section.rename_to = section.old_name, match[3].strip()
        if match:
            self._in_prose = match[1] == "End Patch"
        self._at += 1

    def _read_other(self, line: str) -> None:
        section = self._sections[-1] if self._sections else None
        if section and not section.hunks and section.old_name is None:
            _read_extended_header(section, line)
        if line.startswith(("Binary files ", "GIT binary patch")) and section:
            raise _unsupported("a binary patch", "Only text files can be patched.")
        if line.startswith(_FENCE):
            self._in_prose = True
        elif not self._in_prose and section and (_LOST_LINE.match(line) or (section.awaits_hunk and line.strip())):
            raise _bad(
                f"Line {self._at + 1} of the patch belongs to no hunk: {line[:60]!r}. Begin every hunk with @@, and "
                "every line in it with ' ', '-' or '+' (in a new file, with '+')."
            )
        self._at += 1

    # ---- hunks ----

    def _read_hunk(self) -> None:
        first = self._at
        old_start, inserts_behind, anchors = self._read_hunk_headers()
        section, begin = self._sections[-1], self._at
        self._at = self._end_of_hunk()
        lines, old_ends, new_ends = _body(self._lines[begin : self._at], section.is_addition)
        following = self._lines[self._at] if self._at < len(self._lines) else ""
        if not lines:
            raise _bad(
                f"The hunk in line {first + 1} of the patch has no lines that begin with ' ', '-' or '+'. "
                + (f"It is followed by {following[:60]!r}." if following else "The patch ends there: send all of it.")
            )
        section.hunks.append(
            Hunk(
                number=len(section.hunks) + 1,
                patch_line=first + 1,
                lines=lines,
                old_start=old_start,
                inserts_behind=inserts_behind,
                anchors=anchors,
                old_has_last_newline=old_ends,
                new_has_last_newline=new_ends,
                at_end=following.startswith("*** End of File"),
            )
        )

    def _read_hunk_headers(self) -> tuple[int | None, int | None, tuple[str, ...]]:
        """Read one @@ line, or several stacked ones: the line numbers of the last that has any, the texts of all."""
        if not self._sections:
            raise _bad(f"Line {self._at + 1} of the patch begins a hunk before any file is named.", RIGHT_FORM)
        old_start: int | None = None
        inserts_behind: int | None = None
        anchors: list[str] = []
        while self._at < len(self._lines) and self._lines[self._at].startswith("@@"):
            match = _HUNK_HEADER.fullmatch(self._lines[self._at])
            assert match is not None  # everything behind the @@ is optional
            if match[1]:
                old_start = inserts_behind = int(match[1])
                if match[2] != ",0" and match[3] and int(match[3]) <= old_start:
                    inserts_behind -= 1  # "-5 +5": line 5 is to be an added one; but "-5,0 +5" is git's "behind line 5"
            anchor = match[4].strip()
            anchor = anchor[:-2].rstrip() if anchor.endswith("@@") else anchor
            if re.search(r"\w", anchor):
                anchors.append(anchor)
            self._at += 1
        self._in_prose = False
        return old_start, inserts_behind, tuple(anchors)

    def _end_of_hunk(self) -> int:
        """Return the index of the first line that cannot belong to the hunk.

        A line with no tag ends it, unless changed lines follow: then it is taken for a context line that lost its
        space, which the file will prove or disprove.
        """
        stop = self._at
        while stop < len(self._lines) and not self._is_boundary(stop):
            stop += 1
        untagged = [at for at in range(self._at, stop) if not _tag(self._lines[at])]
        if not untagged:
            return stop
        changed = [at for at in range(untagged[0], stop) if _LOST_LINE.match(self._lines[at])]
        return next((at for at in untagged if not changed or at > changed[-1]), stop)

    def _is_boundary(self, at: int) -> bool:
        line = self._lines[at]
        if line.startswith(("@@", "diff --git ", "*** ", _FENCE)):
            return True
        following = self._lines[at + 1 : at + 3]
        if self._is_name_pair(at):  # or a removed line that begins with "--" above an added one that begins with "++"
            old, new = _without_prefixes(_name(line[4:]), _name(following[0][4:]))
            return following[1:2] != [] and following[1].startswith("@@") and (old == new or _NOTHING in (old, new))
        return False


def _tag(line: str) -> str:
    """Return what kind of hunk line this is: " ", "-", "+", "\\" (the marker of a missing newline), "" for none."""
    if line[:1] in ("+", "-", " "):
        return line[0]
    if not line.strip():
        return " "  # a blank context line that lost its space
    return "\\" if line.startswith("\\ ") else ""


def _body(lines: list[str], is_addition: bool) -> tuple[tuple[tuple[str, str], ...], bool, bool]:
    """Return a hunk's tagged lines, and whether its old and its new side end in a newline."""
    end = len(lines)
    while end and not lines[end - 1].strip() and lines[end - 1][:1] != " ":
        end -= 1  # space between hunks, and not a context line without its space
    lines = lines[:end]
    spaces_are_lost = any(not _tag(line) for line in lines) and not any(re.match(r" [^ \t]", line) for line in lines)
    tagged: list[tuple[str, str]] = []
    old_ends = new_ends = True
    for line in lines:
        tag = _tag(line)
        if tag == "\\":
            last = tagged[-1][0] if tagged else ""
            old_ends, new_ends = old_ends and last not in (" ", "-"), new_ends and last not in (" ", "+")
            continue
        if not tag or line[:1] != tag or (tag == " " and spaces_are_lost):  # a line without its tag
            tagged.append(("+" if is_addition and not line.strip() else " ", line))
        else:
            tagged.append((tag, line[1:]))
        old_ends, new_ends = old_ends or tagged[-1][0] != "+", new_ends or tagged[-1][0] != "-"
    return tuple(tagged), old_ends, new_ends


# ---- names --------------------------------------------------------------------------------------------------------

_NOTHING = "/dev/null"
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.S)
_ESCAPE = re.compile(rb'\\([0-7]{1,3}|[abtnvfr"\\])')
_ESCAPED = dict(zip(b'abtnvfr"\\', b'\a\b\t\n\v\f\r"\\'))


def _name(written: str) -> str:
    """Return the name that a header gives: without quotes and escapes, or without the time that follows a tab."""
    quoted = _QUOTED.match(written)
    if not quoted:
        return written.partition("\t")[0].rstrip(" \r")
    return _ESCAPE.sub(_unescaped, quoted[1].encode("utf-8")).decode("utf-8", "surrogateescape")


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8) & 255 if code.isdigit() else _ESCAPED[code[0]]])


def _without_prefixes(old: str, new: str) -> tuple[str, str]:
    """Take off a/ and b/: where both names have theirs, or where the names are the same without."""
    bare_old = old[2:] if old.startswith("a/") else old
    bare_new = new[2:] if new.startswith("b/") else new
    both_have = (old == _NOTHING or old != bare_old) and (new == _NOTHING or new != bare_new)
    return (bare_old, bare_new) if both_have or bare_old == bare_new else (old, new)


def _git_names(section: _Section) -> tuple[str, str]:
    """Return the old and the new name of a git section, `/dev/null` where there is none."""
    header = _QUOTED.sub(lambda quoted: _name(quoted[0]), section.header).rstrip(" \r")
    moved = (_name(section.rename_from or ""), _name(section.rename_to or "")) if section.rename_from else None
    if section.old_name is None or section.new_name is None:
        middle = len(header) // 2  # a name with spaces is not quoted there, but it stands there twice
        old, new = moved or _without_prefixes(header[:middle], header[middle + 1 :])
        if old != new and not moved:
            raise _bad(f"Line {section.line} of the patch: 'diff --git' names no file, or two of them.")
        return (_NOTHING if section.is_new else old), (_NOTHING if section.is_deleted else new)
    stated = _name(section.old_name), _name(section.new_name)
    for old, new in (_without_prefixes(*stated), stated):
        both = (new if old == _NOTHING else old), (old if new == _NOTHING else new)
        headers = ("", "a/{} b/{}".format(*both), "{} {}".format(*both), "{} {}".format(*stated))
        if header in headers and moved in (None, both):
            return old, new
    raise _bad(
        f"Line {section.line} of the patch: the names in its header and those behind --- and +++ disagree: "
        f"{section.header!r}, {stated[0]!r}, {stated[1]!r}. Name the same file in all of them."
    )


# ---- sections become file patches -----------------------------------------------------------------------------------


def _read_extended_header(section: _Section, line: str) -> None:
    """Read a line between `diff --git` and `---`."""
    match = _EXTENDED.fullmatch(line.rstrip("\r"))
    if not match:
        return
    mode = match[2] or match[5]
    if mode and mode.startswith(("12", "16")):
        raise _unsupported("a symlink entry" if mode[1] == "2" else "a submodule entry", "Only files can be patched.")
    what = match[1] or match[3]
    if what in ("new file mode", "new mode"):
        section.is_executable = mode.endswith("755")
    section.is_new = section.is_new or what == "new file mode"
    section.is_deleted = section.is_deleted or what == "deleted file mode"
    section.must_be_empty = section.must_be_empty or line.startswith("index e69de29")
    if what in ("rename from", "copy from"):
        section.rename_from, section.is_copy = match[4], what == "copy from"
    elif what in ("rename to", "copy to"):
        section.rename_to = match[4]


def _file_patch(section: _Section) -> FilePatch:
    old, new = _names(section)
    if "" in (old, new) or old == new == _NOTHING:
        raise _bad(f"Line {section.line} of the patch names no file.")
    kind = _kind(section, old, new)
    path, new_path = (new if old == _NOTHING else old), (old if new == _NOTHING else new)
    hunks = tuple(hunk for hunk in section.hunks if hunk.changes_something)
    where = f"{safe_line(path)} (line {section.line} of the patch)"
    if kind == "add" and any(hunk.old for hunk in hunks):
        raise _bad(f"{where}: every line of a new file begins with '+'.")
    if kind == "delete" and any(tag == "+" for hunk in hunks for tag, _ in hunk.lines):
        raise _bad(f"{where}: a deletion adds no lines.")
    if kind == "update" and not hunks and section.is_executable is None:
        raise _bad(f"{where}: there is nothing to apply: no line begins with '-' or '+'.", RIGHT_FORM)
    return FilePatch(kind, path, new_path, hunks, section.is_executable, section.must_be_empty)


def _names(section: _Section) -> tuple[str, str]:
    if not section.directive:
        return _git_names(section)
    name = _name(section.old_name or "")
    return name, _name(section.rename_to) if section.rename_to is not None else name


def _kind(section: _Section, old: str, new: str) -> str:
    if section.is_addition or old == _NOTHING:
        return "add"
    if section.directive == "Delete" or section.is_deleted or new == _NOTHING:
        return "delete"
    if section.is_copy:
        return "copy"
    if old != new and section.rename_to is None:
        raise _bad(
            f"Line {section.line} of the patch names two files, {old!r} and {new!r}. "
            "Name the same file twice; or, to rename it, write 'rename from' and 'rename to' below 'diff --git'."
        )
    return "rename" if old != new else "update"
