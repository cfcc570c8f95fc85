"""Several files replaced together, or none of them.

New bytes go into temporary files beside their targets first: what can fail (a full disk, a folder without permission)
mostly fails there, where nothing has happened yet. Then come the renames. Each is atomic, so no reader ever sees half a
file, and until the last one is through the old files are kept under a second name (a hard link: it costs no space, so
that putting one back works on a full disk too).
"""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mini_agent.conversation.events import KEPT_SUFFIX
from mini_agent.tools.tool import ToolError

# A link in the place of a file is not followed, and a named pipe does not hold us up. (Windows has neither.)
SAFE_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(eq=False)
class Replacement:
    """One file on its way from what it holds to what it is to hold."""

    path: Path
    label: str  # the path as the model knows it
    before: bytes | None  # None where there is no such file
    status: os.stat_result | None  # from when `before` was read
    content: bytes | None  # None: the file is removed
    mode: int | None  # permission bits; None: those of the file that is there, else as the umask gives
    temporary: Path = field(init=False)  # where the new bytes wait
    kept: Path = field(init=False)  # where the old file waits until nothing can fail any more
    _is_kept: bool = field(default=False, init=False)  # the old file is there
    _is_done: bool = field(default=False, init=False)  # `path` is no longer what it was

    def __post_init__(self) -> None:
        self.temporary = self.path.with_name(f".mini_agent-{os.urandom(6).hex()}.tmp")
        self.kept = self.temporary.with_name(self.temporary.name + KEPT_SUFFIX)

    def diff(self) -> Iterator[str]:
        """Yield the lines of a unified diff, as a person is shown it."""
        if self.status is not None and stat.S_ISLNK(self.status.st_mode):
            yield f"{self.label}: the link is removed; what it leads to stays"
            return
        if self.mode is not None and (self.status is None or self.mode != stat.S_IMODE(self.status.st_mode)):
            yield f"{self.label}: permissions become {self.mode:o}"
        before, after = _diff_lines(self.before), _diff_lines(self.content)
        old, new = (self.label if lines is not None else "/dev/null" for lines in (before, after))
        yield from difflib.unified_diff(before or [], after or [], old, new, lineterm="")

    def write_temporary(self) -> None:
        """Write the new bytes beside the target, on the disk for good, with the target's mode and owner."""
        if self.content is None:
            return
        if self.status is None:
            _write_new_file(self.temporary, self.content, 0o666 if self.mode is None else self.mode)
            return
        _write_new_file(self.temporary, self.content, 0o600)
        if hasattr(os, "chown"):
            try:
                os.chown(self.temporary, self.status.st_uid, self.status.st_gid)
            except OSError:
                pass  # only root may give files away
        os.chmod(self.temporary, stat.S_IMODE(self.status.st_mode) if self.mode is None else self.mode)

    def check_unchanged(self) -> None:
        """Raise ToolError where the file is no longer the one that was read."""
        try:
            now: os.stat_result | None = os.lstat(self.path)
        except OSError:
            now = None
        if _identity(now) != _identity(self.status):
            raise changed_meanwhile(self.label)

    def put_in_place(self, is_last: bool) -> None:
        """Rename the new file to its place, or the old one out of it."""
        if self.content is None:
            os.rename(self.path, self.kept)
            self._is_kept = self._is_done = True
            return
        if self.status is not None and not is_last:
            self._keep_old_file()
        os.replace(self.temporary, self.path)
        self._is_done = True

    def _keep_old_file(self) -> None:
        try:
            os.link(self.path, self.kept)
        except OSError:  # not every file system has hard links
            assert self.before is not None and self.status is not None
            _write_new_file(self.kept, self.before, 0o600)
            os.chmod(self.kept, stat.S_IMODE(self.status.st_mode))
        self._is_kept = True

    def put_back(self) -> bool:
        """Undo `put_in_place`, however far it came; return whether the file is as it was."""
        try:
            if self._is_done and self._is_kept:
                os.replace(self.kept, self.path)
            elif self._is_done:
                os.unlink(self.path)
        except OSError:
            return False
        return True

    def where_kept(self) -> str:
        """Tell, in brackets, where the old file is; "" where there was none."""
        return f" (its old content is in {self.kept.name} beside it)" if self._is_kept else ""


def _diff_lines(content: bytes | None) -> list[str] | None:
    if content is None:
        return None
    lines = content.decode("utf-8", "backslashreplace").split("\n")
    if lines[-1]:
        lines[-1] += "\n\\ No newline at end of file"
    else:
        lines.pop()
    return lines


def question_about(steps: Sequence[Replacement]) -> str:
    """Return what a user is asked before the steps are taken: their diffs and a question."""
    files = f"{len(steps)} files" if len(steps) > 1 else "1 file"
    return "\n".join(line for step in steps for line in step.diff()) + f"\nMake this change ({files})?"


def changed_meanwhile(label: str) -> ToolError:
    """Return the error for a file that somebody else changed while a change of ours was on its way."""
    text = f"{label} changed on disk meanwhile. Nothing was written. Read it again and make the change anew."
    return ToolError("write_failed", text)


def _identity(status: os.stat_result | None) -> tuple[int, ...] | None:
    return None if status is None else (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _write_new_file(path: Path, content: bytes, mode: int) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE_FLAGS, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


class Replacements:
    """Replacements that are made together: `write_temporaries`, then `put_in_place`, or else `discard`."""

    def __init__(self, steps: Sequence[Replacement]) -> None:
        self.steps = steps
        self.not_put_back: list[Replacement] = []
        self._made_folders: list[Path] = []

    def write_temporaries(self) -> None:
        """Make the folders that are missing and write the new bytes; raise ToolError where that fails."""
        for step in self.steps:
            try:
                if step.content is not None:
                    self._make_folders(step.path.parent)
                step.write_temporary()
            except OSError as error:
                raise _write_failed(step, error) from error

    def _make_folders(self, folder: Path) -> None:
        missing = []
        while not os.path.lexists(folder):
            missing.append(folder)
            folder = folder.parent
        for folder in reversed(missing):
            self._made_folders.append(folder)
            os.mkdir(folder)

    def put_in_place(self) -> None:
        """Rename all; where one fails, put the others back and raise ToolError. Must not be interrupted."""
        for step in self.steps:
            step.check_unchanged()
        begun: list[Replacement] = []
        steps = self._in_safe_order()
        for step in steps:
            begun.append(step)
            try:
                step.put_in_place(is_last=step is steps[-1])
            except OSError as error:
                self.not_put_back = [other for other in reversed(begun) if not other.put_back()]
                raise _write_failed(step, error, self.not_put_back) from error
        _unlink(step.kept for step in steps)

    def _in_safe_order(self) -> list[Replacement]:
        """Return removals last, so that a crash in a move leaves two copies and not none.

        But where the file to be removed *is* the one to be written (`a.txt` becomes `A.txt` on a file system that
        ignores case), the removal comes first, for it would take the new file.
        """
        written = [_identity(step.status) for step in self.steps if step.content is not None]
        removals_first = [step for step in self.steps if step.content is None and _identity(step.status) in written]
        writes = [step for step in self.steps if step.content is not None]
        return [*removals_first, *writes, *(step for step in self.steps if step not in removals_first + writes)]

    def discard(self) -> None:
        """Remove what was made on the way; what could not be put back keeps its old content beside it."""
        _unlink(step.temporary for step in self.steps)
        _unlink(step.kept for step in self.steps if step not in self.not_put_back)
        for folder in reversed(self._made_folders):
            try:
                os.rmdir(folder)
            except OSError:
                pass  # never made, or somebody has put something into it


def _unlink(paths: Iterable[Path]) -> None:
    for path in paths:
        try:
            os.unlink(path)
        except OSError:
            pass


def _write_failed(step: Replacement, error: OSError, not_put_back: Sequence[Replacement] = ()) -> ToolError:
    text = f"{step.label} cannot be written: {error.strerror or error}."
    if not not_put_back:
        return ToolError("write_failed", f"{text} No file was changed.")
    left = ", ".join(other.label + other.where_kept() for other in not_put_back)
    return ToolError("write_failed", f"{text} These were changed already and could not be put back: {left}.")
