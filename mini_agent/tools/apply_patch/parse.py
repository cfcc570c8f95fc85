"""Patch text is read into file patches with hunks: what a patch says, before anybody looks at a file.

Two forms are read, and mixtures of them: git's unified diff, and the envelope (`*** Begin Patch`). Whatever has two
readings is refused, by name.

Lines end at LF only. Form feeds, U+2028 and lone CRs are content, as they are for git.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mini_agent.conversation.safe_text import safe_line
from mini_agent.tools.apply_patch.hunk import Hunk, read_hunk, tag_of
from mini_agent.tools.apply_patch.names import (
    NOTHING,
    may_head,
    names_in_git_header,
    plain_header,
    plain_name,
    without_prefixes,
)
from mini_agent.tools.tool import ToolError

RIGHT_FORM = """A patch looks like this:
--- a/folder/name.py
+++ b/folder/name.py
@@ -12,3 +12,3 @@
 a line that stays
-a line that goes
+a line that comes"""


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
_DIRECTIVE = re.compile(
    r"\*\*\* (?:(Begin Patch|End Patch|End of File)|(Update File|Add File|Delete File|Move to): ?(.*))\s*", re.S
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
    """The part of a patch about one file, while it is read: what git says in many lines and the envelope in one."""

    line: int
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
        return self.is_new or (self.old_name or "").startswith(NOTHING)


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

    @property
    def _section(self) -> _Section | None:
        return self._sections[-1] if self._sections else None

    def _read_line(self, line: str) -> None:
        section = self._section
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
        elif line.startswith("@@") or (
            line.startswith(("+", "-", " ")) and section and section.awaits_hunk and not self._in_prose
        ):
            self._read_hunk()
        else:
            self._read_other(line)

    def _is_name_pair(self, at: int) -> bool:
        return self._lines[at].startswith("--- ") and "".join(self._lines[at + 1 : at + 2]).startswith("+++ ")

    def _read_name_pair(self) -> None:
        section = self._section
        if (
            section is None
            or section.hunks
            or (section.old_name is not None and (section.is_new or section.is_deleted))
        ):
            section = _Section(self._at + 1)
            self._sections.append(section)
        elif section.old_name is not None:  # an envelope's header above git's: to be checked against it
            section.header = f"{section.old_name} {section.new_name}"
        section.old_name, section.new_name = (name[4:] for name in self._lines[self._at : self._at + 2])
        self._at += 2
        while self._lines[self._at : self._at + 1] == [f"+++ {section.new_name}"]:  # written twice
            self._at += 1
        self._in_prose = False

    def _read_directive(self, line: str) -> None:
        match, where = _DIRECTIVE.fullmatch(line), f"Line {self._at + 1} of the patch"
        if match is None and not self._in_prose:
            raise _bad(
                f"{where}, {line[:60]!r}, is not known. There are *** Update File: PATH, *** Add File: PATH, "
                "*** Delete File: PATH, *** Move to: PATH and *** End of File."
            )
        if match:
            self._in_prose = match[1] == "End Patch"
        if match and match[2] == "Move to":
            section = self._section
            is_update = section and section.awaits_hunk and not (section.is_addition or section.is_deleted)
            if not section or not is_update or section.old_name != section.new_name:
                raise _bad(f"{where}: '*** Move to:' belongs below '*** Update File:'.")
            section.rename_from, section.rename_to = section.old_name, match[3].strip()
            section.new_name = section.rename_to
        elif match and match[2]:
            kind, name = match[2], match[3].strip()
            is_new, is_deleted = kind == "Add File", kind == "Delete File"
            self._sections.append(_Section(self._at + 1, "", name, name, is_new=is_new, is_deleted=is_deleted))
        self._at += 1

    def _read_other(self, line: str) -> None:
        section = self._section
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

    def _read_hunk(self) -> None:
        section, first = self._section, self._at
        if section is None:
            raise _bad(f"Line {first + 1} of the patch begins a hunk before any file is named.", RIGHT_FORM)
        while self._at < len(self._lines) and self._lines[self._at].startswith("@@"):
            self._at += 1
        headers, begin = self._lines[first : self._at], self._at
        self._at = self._end_of_hunk()
        body, following = self._lines[begin : self._at], "".join(self._lines[self._at : self._at + 1])
        at_end = following.startswith("*** End of File")
        hunk = read_hunk(len(section.hunks) + 1, first + 1, headers, body, section.is_addition, at_end)
        if not hunk.lines:
            raise _bad(
                f"The hunk in line {first + 1} of the patch has no lines that begin with ' ', '-' or '+'. "
                + (f"It is followed by {following[:60]!r}." if following else "The patch ends there: send all of it.")
            )
        section.hunks.append(hunk)
        self._in_prose = False

    def _end_of_hunk(self) -> int:
        """Return the index of the first line that cannot belong to the hunk.

        A line with no tag ends it, unless changed lines follow: then it is taken for a context line that lost its
        space.
        """
        stop = self._at
        while stop < len(self._lines) and not self._is_boundary(stop):
            stop += 1
        untagged = [at for at in range(self._at, stop) if not tag_of(self._lines[at])]
        changed = [at for at in range(self._at, stop) if _LOST_LINE.match(self._lines[at])]
        return next((at for at in untagged if not changed or at > changed[-1]), stop)

    def _is_boundary(self, at: int) -> bool:
        line = self._lines[at]
        if line.startswith(("@@", "diff --git ", "*** ", _FENCE)):
            return True
        if self._is_name_pair(at):  # or a removed line that begins with "--" above an added one that begins with "++"
            old, new = without_prefixes(plain_name(line[4:]), plain_name(self._lines[at + 1][4:]))
            is_hunk_below = "".join(self._lines[at + 2 : at + 3]).startswith("@@")
            return is_hunk_below and (old == new or NOTHING in (old, new))
        return False


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


# ---- sections become file patches -----------------------------------------------------------------------------------


def _file_patch(section: _Section) -> FilePatch:
    old, new = _names(section)
    if "" in (old, new) or old == new == NOTHING:
        raise _bad(f"Line {section.line} of the patch names no file.")
    kind = _kind(section, old, new)
    path, new_path = (new if old == NOTHING else old), (old if new == NOTHING else new)
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
    """Return the old and the new name, `/dev/null` where there is none; raise ToolError where lines disagree."""
    moved = None
    if section.rename_from is not None:
        moved = plain_name(section.rename_from), plain_name(section.rename_to or "")
    if section.old_name is None or section.new_name is None:
        names = moved or names_in_git_header(section.header)
        if names is None:
            raise _bad(f"Line {section.line} of the patch: 'diff --git' names no file, or two of them.")
        return (NOTHING if section.is_new else names[0]), (NOTHING if section.is_deleted else names[1])
    header, stated = plain_header(section.header), (plain_name(section.old_name), plain_name(section.new_name))
    for old, new in (without_prefixes(*stated), stated):
        both = (new if old == NOTHING else old), (old if new == NOTHING else new)
        if moved in (None, both) and may_head(header, *both, stated):
            return old, new
    raise _bad(
        f"Line {section.line} of the patch: the names in its header and those behind --- and +++ disagree: "
        f"{section.header!r}, {stated[0]!r}, {stated[1]!r}. Name the same file in all of them."
    )


def _kind(section: _Section, old: str, new: str) -> str:
    if section.is_addition or old == NOTHING:
        return "add"
    if section.is_deleted or new == NOTHING:
        return "delete"
    if section.is_copy:
        return "copy"
    if old != new and section.rename_to is None:
        raise _bad(
            f"Line {section.line} of the patch names two files, {old!r} and {new!r}. "
            "Name the same file twice; or, to rename it, write 'rename from' and 'rename to' below 'diff --git'."
        )
    return "rename" if old != new else "update"
