"""A patch becomes planned writes, all of them or none.

Every file that the patch names is read and its new content computed before the first byte is written; the writing
itself is `Workspace.commit`, which undoes what it did when something fails half-way.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mini_agent.conversation.safe_text import safe_line
from mini_agent.tools.apply_patch.file_text import LEVELS, FileText
from mini_agent.tools.apply_patch.hunk import Hunk
from mini_agent.tools.apply_patch.locate import Placement, edited, place_hunks
from mini_agent.tools.apply_patch.parse import FilePatch, parse_patch
from mini_agent.tools.apply_patch.refusal import FileOutcome, refusal
from mini_agent.tools.tool import Parameter, Tool, ToolError, ToolOutcome
from mini_agent.tools.workspace import PlannedWrite, Workspace

_BYTE_ORDER_MARK = "\ufeff"


class ApplyPatchTool(Tool):
    """The tool by which the model changes files."""

    name = "apply_patch"
    description = (
        "Change, create, delete or rename text files by one patch: a git unified diff, or the *** Begin Patch form. "
        "All of it is applied or nothing. For each file write --- a/PATH and +++ b/PATH (/dev/null for a file that is "
        "created or deleted), then hunks: an @@ line, three unchanged lines copied exactly from the file (each with a "
        "space in front), lines to remove (-), lines to add (+), three unchanged lines. The hunks are found by their "
        "lines, so read the file first; line numbers and counts in @@ may be left out. Leave out no lines in between "
        "and write no '...'."
    )
    parameters = (Parameter("patch", "string", "The whole patch as text.", required=True),)
    narrowing = "Send a smaller patch."

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def run(self, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Apply the patch."""
        return ToolOutcome(apply_patch(arguments["patch"], self._workspace))


def apply_patch(patch_text: str, workspace: Workspace) -> str:
    """Apply a patch to the files of a workspace and return, for the model, what was done.

    Raises ToolError with nothing written: bad_patch and unsupported_patch (the text), patch_failed (a hunk has no
    place), exists, not_text, and whatever the workspace's path policy and its commit raise.
    """
    plan = _Plan(workspace)
    for file_patch in parse_patch(patch_text):
        try:
            plan.add(file_patch)
        except ToolError as error:
            raise ToolError(error.code, f"{error} Nothing was written: a patch is applied whole or not.") from error
    if any(outcome.misfits for outcome in plan.outcomes):
        raise ToolError("patch_failed", refusal(plan.outcomes))
    writes = plan.writes()
    if writes:
        workspace.commit(writes)
    return plan.report()


@dataclass
class _State:
    """One file as the patch has left it so far."""

    content: bytes | None  # None: there is no such file
    mode: int | None  # permission bits; None: as the umask gives
    content_before: bytes | None  # what the disk holds; of a link: where it points
    mode_before: int | None


class _Plan:
    """What a patch comes to: the files as they will be, and what to tell of it."""

    def __init__(self, workspace: Workspace) -> None:
        self.outcomes: list[FileOutcome] = []
        self._workspace = workspace
        self._states: dict[Path, _State] = {}
        self._changes: dict[str, list[str]] = {}  # kind of change → files
        self._notes: list[str] = []

    def add(self, patch: FilePatch) -> None:
        """Take up what the patch says about one file; raise ToolError where that cannot be done."""
        change = {"update": self._update, "add": self._add, "delete": self._delete}.get(patch.kind, self._move)
        change(patch)

    def writes(self) -> list[PlannedWrite]:
        """Return the files that are to differ from what they are."""
        return [
            PlannedWrite(path, state.content, state.mode, expected=state.content_before)
            for path, state in self._states.items()
            if (state.content, state.mode) != (state.content_before, state.mode_before)
        ]

    def report(self) -> str:
        """Return what was done, file by file, and which hunks were not placed exactly."""
        changed = [f"{kind}: {', '.join(files)}" for kind, files in self._changes.items()]
        head = "The patch is applied." if changed else "The patch stood already: nothing was changed."
        return "\n".join([head, *changed, *self._notes])

    # ---- one kind of change each ----

    def _update(self, patch: FilePatch) -> None:
        state = self._state(self._workspace.resolve(patch.path))
        content, mode = self._with_hunks(patch, state), _mode(state.mode, patch.is_executable)
        if content != state.content:
            self._tell("changed", f"{patch.label} ({_count(patch.hunks)})")
        if mode is not None and mode != state.mode:
            self._tell("mode changed", f"{patch.label} ({mode:o})")
        state.content, state.mode = content, mode

    def _add(self, patch: FilePatch) -> None:
        state = self._state(self._workspace.resolve(patch.path), must_exist=False)
        lines = [text for hunk in patch.hunks for text in hunk.new]
        ends = not patch.hunks or patch.hunks[-1].new_has_last_newline
        content = ("\n".join(lines) + ("\n" if lines and ends else "")).encode("utf-8")
        if state.content is None:
            state.content, state.mode = content, _mode(None, patch.is_executable)
            self._tell("added", patch.label)
        elif state.content == content:
            self._notes.append(f"{patch.label} stood already, with this content.")
        else:
            raise ToolError(
                "exists",
                f"{patch.label} exists and its content is another. Read it and send an update, or delete it first.",
            )

    def _delete(self, patch: FilePatch) -> None:
        link = self._workspace.resolve(patch.path, follow_last_link=False)
        if os.path.islink(link) and link not in self._states:  # it is told by what it leads to, and goes alone
            points_at = os.fsencode(os.readlink(link))
            self._states[link] = replace(self._state(self._workspace.resolve(patch.path)), content_before=points_at)
        state = self._state(link)
        left = self._with_hunks(patch, state)
        if left and (patch.hunks or patch.must_be_empty) and not self.outcomes[-1].misfits:
            line = left.decode("utf-8").strip().split("\n")[0]
            raise ToolError(
                "patch_failed",
                f"{patch.label} is not deleted: it holds lines that the patch does not remove, such as {line!r}. Read "
                "it. To delete it whatever it holds: *** Begin Patch, *** Delete File: PATH, *** End Patch.",
            )
        state.content = None
        self._tell("deleted", patch.label)

    def _move(self, patch: FilePatch) -> None:
        """Rename or copy, with or without hunks."""
        source = self._workspace.resolve(patch.path, follow_last_link=False)
        if os.path.islink(source):
            raise ToolError("not_a_file", f"{patch.label} is a link; links are neither renamed nor copied.")
        old, new = self._state(source), self._state(self._workspace.resolve(patch.new_path), must_exist=False)
        new_label = safe_line(patch.new_path)
        if new.content is not None:
            raise ToolError("exists", f"{new_label} exists already. Delete it first, or choose another name.")
        new.content, new.mode = self._with_hunks(patch, old), _mode(old.mode, patch.is_executable)
        if patch.kind == "rename":
            old.content = None
        hunks = f" ({_count(patch.hunks)})" if patch.hunks else ""
        self._tell("renamed" if patch.kind == "rename" else "copied", f"{patch.label} -> {new_label}{hunks}")

    def _with_hunks(self, patch: FilePatch, state: _State) -> bytes | None:
        text = _text(patch.label, state.content)
        mark = ""
        if text.startswith(_BYTE_ORDER_MARK) and not any(_names_the_mark(hunk) for hunk in patch.hunks):
            mark, text = _BYTE_ORDER_MARK, text[1:]  # models do not see it
        file = FileText(text)
        placements, misfits = place_hunks(patch.hunks, file)
        self.outcomes.append(FileOutcome(patch.label, file, placements, misfits, len(patch.hunks)))
        self._note(patch, placements)
        if misfits or all(placed.stands for placed in placements):
            return state.content
        new_text = edited(placements, file)
        return (mark + new_text if new_text else "").encode("utf-8")

    # ---- files ----

    def _state(self, path: Path, must_exist: bool = True) -> _State:
        if path not in self._states:
            content = self._workspace.read_bytes(path) if must_exist or os.path.lexists(path) else None
            mode = None if content is None else stat.S_IMODE(path.stat().st_mode)
            self._states[path] = _State(content, mode, content, mode)
        if must_exist and self._states[path].content is None:
            name = self._workspace.relative(path)
            raise ToolError("not_found", f"the patch itself removes {name} before it is changed here.")
        return self._states[path]

    # ---- telling ----

    def _tell(self, kind: str, file: str) -> None:
        self._changes.setdefault(kind, []).append(file)

    def _note(self, patch: FilePatch, placements: Sequence[Placement]) -> None:
        for placed in placements:
            where = f"{patch.label}, hunk {placed.hunk.number}"
            if placed.stands:
                self._notes.append(f"{where} stood already, at line {placed.start + 1}.")
            elif placed.level:
                self._notes.append(f"{where} was placed at line {placed.start + 1} {LEVELS[placed.level]}.")


def _count(hunks: Sequence[Hunk]) -> str:
    return "1 hunk" if len(hunks) == 1 else f"{len(hunks)} hunks"


def _names_the_mark(hunk: Hunk) -> bool:
    return any(text.startswith(_BYTE_ORDER_MARK) for _, text in hunk.lines)


def _text(name: str, content: bytes | None) -> str:
    """Return a file's text; raise ToolError for what is no UTF-8 text."""
    content = content or b""
    if b"\0" in content:
        raise ToolError("not_text", f"{name} is a binary file (it holds a NUL byte) and can't be patched.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ToolError("not_text", f"{name} is not UTF-8 (line {line}) and can't be patched.") from None


def _mode(mode: int | None, is_executable: bool | None) -> int | None:
    """Return permission bits (None: as the umask gives) as a patch asks for them, if it does."""
    if is_executable is None:
        return mode
    if mode is None:
        return 0o755 if is_executable else None
    return mode | (mode & 0o444) >> 2 if is_executable else mode & ~0o111
