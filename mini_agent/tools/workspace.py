"""The workspace: the one folder that tools may touch, and every read and write of a file in it.

All tools come through here, so there is one path policy: a path is judged as it was asked for and again as it is once
all links are followed. Reading opens regular files only. Writing is all or nothing, and is announced before and
reported after, so that a crash in between can be told.

What it does not do: guard against another program that exchanges folders for links while a tool runs. The policy keeps
a model from reaching what it should not; it is no prison for processes.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Callable

from mini_agent.conversation.events import Event, FileChange, FilesChanged, FilesWillChange
from mini_agent.conversation.interrupts import uninterrupted
from mini_agent.conversation.safe_text import safe_line
from mini_agent.tools.all_or_nothing import SAFE_FLAGS, Replacement, Replacements, changed_meanwhile, question_about
from mini_agent.tools.path_policy import is_protected_name, problem_of_name
from mini_agent.tools.tool import ToolError, nearest
from mini_agent.tools.walk import Entry, walk

_ENTRIES_SEARCHED_FOR_A_NAME = 5000  # when a file is not found: enough for most projects, a few hundredths of a second


@dataclass(frozen=True)
class PlannedWrite:
    """One file as it is to be: what `Workspace.commit` is given."""

    path: Path  # as `Workspace.resolve` returned it
    content: bytes | None  # None: it is removed; a link itself, where `resolve` was told not to follow the last one
    mode: int | None = None  # permission bits (of a new file: less the umask); None: those of the file that was there
    expected: bytes | None = None  # what is there must still be this, else nothing is written; None: whatever it is


class Workspace:
    """A folder with its path policy; `Workspace(root)` alone just works."""

    def __init__(
        self, root: Path, record: Callable[[Event], None] | None = None, ask: Callable[[str], bool] | None = None
    ) -> None:
        """Take the folder.

        record: gets FilesWillChange before and FilesChanged after each commit.
        ask: gets each change as a diff, and tells whether it may be written; None: all may.
        """
        self.root = Path(os.path.realpath(root))
        self._record = record or (lambda event: None)
        self._ask = ask

    # ------------------------------------------------------------------------------------------------ the path policy

    def resolve(self, asked: str, include_protected: bool = False, follow_last_link: bool = True) -> Path:
        """Return the absolute path, links followed, of what a tool asks for; it need not exist.

        asked: relative to the root, or absolute and inside it.
        include_protected: the user has allowed protected names; never for reading or writing single files.
        follow_last_link: False to speak of a link itself, in order to remove it; where it leads is judged all the same.
        Raises ToolError: bad_path, outside_workspace, protected_path.
        """
        self._check_text(asked)
        full = os.path.join(self.root, asked)
        path = self._inside(Path(os.path.realpath(full)), asked)
        self._check_open([*self._asked_names(asked), *path.parts[len(self.root.parts) :]], asked, include_protected)
        folder, name = os.path.split(full.rstrip("/"))
        if follow_last_link or name in ("", ".", ".."):
            return path
        link = self._inside(Path(os.path.realpath(folder), name), asked)
        self._check_open(link.parts[len(self.root.parts) :], asked, include_protected)
        return link

    def _check_text(self, asked: str) -> None:
        path = Path(asked)
        for name in path.parts[bool(path.anchor) :]:
            problem = problem_of_name(name, on_windows=os.name == "nt")
            if problem:
                raise ToolError("bad_path", f"'{safe_line(asked[:200])}' is no path that can exist: {problem}.")
        if asked.startswith("~"):
            raise ToolError(
                "outside_workspace",
                f"'{safe_line(asked)}' speaks of a home folder, which is outside the workspace; "
                f"a file here whose name begins so is './{safe_line(asked)}'.",
            )

    def _asked_names(self, asked: str) -> tuple[str, ...]:
        """Return the names that were asked for; where the root was spelt out, only those after it."""
        parts = Path(asked).parts
        root = self.root.parts
        return parts[len(root) :] if parts[: len(root)] == root else parts

    def _inside(self, path: Path, asked: str) -> Path:
        if path == self.root or self.root in path.parents:
            return path
        for folder in (path, *path.parents):
            try:
                if os.path.samefile(folder, self.root):  # under another spelling, where the file system ignores case
                    return self.root / path.relative_to(folder)
            except OSError:
                continue  # it does not exist
        text = f"'{safe_line(asked)}' leads outside the workspace. Paths are relative to its root, {self.root}."
        as_relative = os.path.join(self.root, asked.lstrip("/"))
        if asked.startswith("/") and asked.strip("/") and os.path.lexists(as_relative):
            text += f" Did you mean '{safe_line(asked).lstrip('/')}'?"
        raise ToolError("outside_workspace", text)

    def _check_open(self, names: Sequence[str], asked: str, include_protected: bool) -> None:
        protected = next((name for name in names if is_protected_name(name)), None)
        if protected is not None and not include_protected:
            raise ToolError(
                "protected_path",
                f"'{safe_line(asked)}' is protected ({safe_line(protected)}: secrets, or files of git and other tools) "
                "and is neither read nor written. Go on without it, or ask the user for what you need to know. "
                "(list_files and grep can look there with include_protected=true, if the user agrees.)",
            )

    def relative(self, path: Path) -> str:
        """Return a path for showing: relative to the root, forward slashes, on one line, sound Unicode."""
        return safe_line(self._relative(path))

    def _relative(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    # ----------------------------------------------------------------------------------------------------- reading

    def open_file(self, path: Path) -> BinaryIO:
        """Open a regular file for reading; the caller closes it.

        A link is not followed (`resolve` has done that), and a pipe is not waited for: it is not even touched.
        Raises ToolError: not_found, is_folder, not_a_file, unreadable.
        """
        try:
            self._check_kind(path, os.lstat(path))
            file = os.fdopen(os.open(path, os.O_RDONLY | SAFE_FLAGS), "rb")
        except OSError as error:
            raise self._unreadable(path, error) from error
        try:
            self._check_kind(path, os.fstat(file.fileno()))  # it may be another one than a moment ago
        except ToolError:
            file.close()
            raise
        return file

    def _check_kind(self, path: Path, status: os.stat_result) -> None:
        if stat.S_ISDIR(status.st_mode):
            raise ToolError("is_folder", f"{self.relative(path)} is a folder. list_files shows what is in it.")
        if not stat.S_ISREG(status.st_mode):
            kind = "a link that leads nowhere" if stat.S_ISLNK(status.st_mode) else "a device, a pipe or a socket"
            raise ToolError("not_a_file", f"{self.relative(path)} is no file but {kind}.")

    def read_bytes(self, path: Path, limit_bytes: int | None = None) -> bytes:
        """Return what a regular file holds, at most its first `limit_bytes`; raise ToolError as `open_file` does."""
        with self.open_file(path) as file:
            try:
                return file.read(-1 if limit_bytes is None else limit_bytes)
            except OSError as error:
                raise self._unreadable(path, error) from error

    def _unreadable(self, path: Path, error: OSError) -> ToolError:
        if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            return ToolError("unreadable", f"{self.relative(path)} cannot be read: {error.strerror or error}.")
        near = self._near(path)
        hint = f" Near it: {', '.join(near)}." if near else " list_files shows what there is."
        return ToolError("not_found", f"{self.relative(path)} does not exist.{hint}")

    def _near(self, path: Path) -> list[str]:
        """Return up to three paths for one that does not exist: the same name elsewhere, else names like it."""
        wanted = path.name.casefold()
        all_entries = islice(walk(self.root, self.root, self.read_bytes), _ENTRIES_SEARCHED_FOR_A_NAME)
        found = [entry.path for entry in all_entries if entry.path.name.casefold() == wanted]
        missing = path
        while missing.parent != self.root and not os.path.isdir(missing.parent):
            missing = missing.parent
        entries = walk(self.root, missing.parent, self.read_bytes, depth=1)
        beside = {entry.path.name.casefold(): entry.path for entry in entries}
        found += [beside[name] for name in nearest(missing.name.casefold(), beside)]
        return [self.relative(near) for near in dict.fromkeys(found)][:3]

    # ------------------------------------------------------------------------------------------------------- walking

    def walk(self, start: Path, include_protected: bool = False, depth: int | None = None) -> Iterator[Entry]:
        """Yield what lies below a folder, in the order of the relative paths as text; of a file, itself.

        Left out are links that lead outside, devices, pipes and sockets, and, unless `include_protected`: protected
        names, hidden folders, and what `.gitignore` ignores. A folder in it that cannot be read is empty.

        start: as `resolve` returned it; that it is hidden or ignored itself does not matter: it was asked for.
        depth: how many levels of folders are looked into; None: all.
        Raises ToolError: not_found, not_a_file, unreadable, for `start`.
        """
        try:
            if stat.S_ISDIR(os.lstat(start).st_mode):
                os.scandir(start).close()
                return walk(self.root, start, self.read_bytes, include_protected, depth)
            self._check_kind(start, os.lstat(start))
        except OSError as error:
            raise self._unreadable(start, error) from error
        return iter([Entry(start, is_folder=False)])

    # ------------------------------------------------------------------------------------------------------- writing

    def commit(self, writes: Sequence[PlannedWrite]) -> None:
        """Make all the changes, or none, each path named once.

        Where the workspace has an `ask`, the user sees the diff first. A file that changed since it was planned
        (`expected`), or while the user was thinking, is left alone, and with it all others. Missing folders are made;
        folders that become empty stay. Ctrl-C and the alarm work until the renames begin, and then wait for their end.
        Raises ToolError: declined, write_failed; what was done by then is undone.
        """
        steps = [self._planned(write) for write in writes]
        if self._ask is not None and not self._ask(question_about(steps)):
            raise ToolError("declined", "The user does not want this change; nothing was written. Ask what they want.")
        changes = {step: self._file_change(step) for step in steps}
        replacements = Replacements(steps)
        is_done = False
        try:
            self._record(FilesWillChange(tuple(changes.values())))
            replacements.write_temporaries()
            with uninterrupted():
                replacements.put_in_place()
                is_done = True
                self._record(FilesChanged(tuple(changes.values())))
        except BaseException:  # Ctrl-C and the alarm too: they pass on below
            if not is_done:
                with uninterrupted():
                    replacements.discard()
                    self._record(FilesChanged(tuple(changes[step] for step in replacements.not_put_back)))
            raise

    def _planned(self, write: PlannedWrite) -> Replacement:
        path = self._inside(Path(os.path.realpath(write.path.parent), write.path.name), str(write.path))
        label = self.relative(path)
        self._check_open(path.parts[len(self.root.parts) :], label, include_protected=False)
        before, status = self._state(path, label, is_removed=write.content is None)
        if write.expected is not None and write.expected != before:
            raise changed_meanwhile(label)
        return Replacement(path, label, before, status, write.content, write.mode)

    def _state(self, path: Path, label: str, is_removed: bool) -> tuple[bytes | None, os.stat_result | None]:
        """Return what a file holds, or where a link points, and its status; (None, None) where there is nothing."""
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            if is_removed:
                raise ToolError("write_failed", f"{label} cannot be removed: it does not exist.") from None
            return None, None
        except OSError as error:
            raise ToolError("write_failed", f"{label} cannot be written: {error.strerror}.") from error
        if stat.S_ISREG(status.st_mode):
            return self.read_bytes(path), status
        if stat.S_ISLNK(status.st_mode) and is_removed:
            return os.fsencode(os.readlink(path)), status  # a link is known by where it points
        kind = "a folder is" if stat.S_ISDIR(status.st_mode) else "something that is no regular file is"
        raise ToolError("write_failed", f"{label} cannot be written: {kind} in the way. Choose another name.")

    def _file_change(self, step: Replacement) -> FileChange:
        path, temporary = self._relative(step.path), self._relative(step.temporary)
        return FileChange(path, _hash(step.before), _hash(step.content), temporary)


def _hash(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()
