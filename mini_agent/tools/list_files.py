"""list_files: what there is, as a sorted tree with sizes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Callable

from mini_agent.conversation.safe_text import readable_size, safe_line
from mini_agent.tools.tool import Parameter, Tool, ToolError, ToolOutcome
from mini_agent.tools.walk import Entry
from mini_agent.tools.workspace import Workspace

MOST_ENTRIES = 300


def list_files(workspace: Workspace, path: str = ".", depth: int = 2, include_protected: bool = False) -> str:
    """Return the tree below a folder, two spaces further in for each level.

    depth: levels shown, 1 for only what lies in the folder itself.
    include_protected: show protected names, hidden folders and ignored files too; the caller has the user's consent.
    Raises ToolError: bad_arguments, not_a_folder, and as `Workspace.resolve` and `Workspace.walk` do.
    """
    if depth < 1:
        raise ToolError("bad_arguments", f"depth must be 1 or more, not {depth}.")
    folder = workspace.resolve(path, include_protected)
    if os.path.isfile(folder):
        raise ToolError("not_a_folder", f"{workspace.relative(folder)} is a file. Read it with read_file.")
    entries = workspace.walk(folder, include_protected, depth)
    lines = [f"{workspace.relative(folder)}/"]
    lines += [_line(workspace, folder, entry) for entry in islice(entries, MOST_ENTRIES)]
    more = sum(1 for _ in entries)
    if more:
        lines.append(f"[{more:,} more entries; list one of the folders, or with a smaller depth]")
    if len(lines) == 1:
        hidden = "" if include_protected else " to show: protected, hidden and ignored names are left out"
        lines.append(f"[nothing{hidden}]")
    return "\n".join(lines)


def _line(workspace: Workspace, folder: Path, entry: Entry) -> str:
    indent = "  " * (len(entry.path.parts) - len(folder.parts))
    name = indent + safe_line(entry.path.name)
    if entry.link_target is not None:
        return f"{name} -> {workspace.relative(entry.link_target)}"
    return f"{name}/" if entry.is_folder else f"{name}  {readable_size(entry.size_bytes)}"


class ListFilesTool(Tool):
    """The tool around `list_files`: it asks the user before anything protected is shown."""

    name = "list_files"
    description = (
        f"List files and folders as a sorted tree with sizes, at most {MOST_ENTRIES} entries. Hidden folders, "
        "protected names (secrets, .git) and what .gitignore ignores are left out."
    )
    parameters: Sequence[Parameter] = (
        Parameter("path", "string", "Folder, relative to the workspace.", default="."),
        Parameter("depth", "integer", "How many levels to show, at least 1.", default=2),
        Parameter(
            "include_protected",
            "boolean",
            "Show protected, hidden and ignored names too. The user is asked first.",
            default=False,
        ),
    )
    narrowing = "List a folder further down, or with a smaller depth."
    only_reads = True

    def __init__(self, workspace: Workspace, ask: Callable[[str], bool]) -> None:
        """Take the workspace; ask: gets a question for the user, returns whether the answer is yes."""
        self._workspace = workspace
        self._ask = ask

    def run(self, arguments: Mapping[str, Any]) -> ToolOutcome:
        """List; raise ToolError("declined") where the user does not want protected names shown."""
        path = self._workspace.resolve(arguments["path"], arguments["include_protected"])
        question = (
            f"The model wants to list {self._workspace.relative(path)}/ together with protected names (such as .env, "
            "keys and .git), hidden folders and ignored files: their names and sizes, not what is in them. Allow it?"
        )
        if arguments["include_protected"] and not self._ask(question):
            raise ToolError("declined", "The user does not want protected names listed. List without them.")
        return ToolOutcome(list_files(self._workspace, **arguments))
