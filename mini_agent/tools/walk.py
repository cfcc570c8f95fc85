"""What lies in a folder: the one walk that list_files, grep and the search for a missing name share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from mini_agent.tools.ignore import Rule, is_ignored, read_rules
from mini_agent.tools.path_policy import is_protected_name
from mini_agent.tools.tool import ToolError

_LONGEST_IGNORE_FILE_BYTES = 256 * 1024

ReadBytes = Callable[[Path, int], bytes]  # a regular file, at most so many bytes of it; or ToolError


@dataclass(frozen=True)
class Entry:
    """A file, a folder, or a link to something inside the workspace."""

    path: Path  # absolute; its folder is resolved, the last name may be a link
    is_folder: bool  # False for a link to one: links are told and not followed
    link_target: Path | None = None  # resolved

    @property
    def size_bytes(self) -> int:
        """Return the size as it is now; 0 for what is gone."""
        try:
            return os.lstat(self.path).st_size
        except OSError:
            return 0


def walk(
    root: Path, start: Path, read_bytes: ReadBytes, include_protected: bool = False, depth: int | None = None
) -> Iterator[Entry]:
    """Yield what lies below the folder `start`; see `Workspace.walk`."""
    above = [folder for folder in reversed(start.parents) if folder == root or root in folder.parents]
    rules = [rule for folder in above for rule in _rules_in(root, folder, read_bytes)]
    stack = [(Entry(start, is_folder=True), rules, 0)]  # and no recursion: folders can lie a thousand deep
    while stack:
        entry, rules, level = stack.pop()
        if level > 0:
            yield entry
        if entry.is_folder and (depth is None or level < depth):
            rules = rules + _rules_in(root, entry.path, read_bytes)
            below = _entries(root, entry.path, rules, include_protected)
            stack += [(inner, rules, level + 1) for inner in reversed(below)]


def _rules_in(root: Path, folder: Path, read_bytes: ReadBytes) -> list[Rule]:
    path = folder / ".gitignore"
    if not os.path.lexists(path):
        return []
    try:
        text = read_bytes(path, _LONGEST_IGNORE_FILE_BYTES).decode("utf-8", "surrogateescape")
    except ToolError:
        return []
    return read_rules(text, depth=len(folder.parts) - len(root.parts))


def _entries(root: Path, folder: Path, rules: list[Rule], include_protected: bool) -> list[Entry]:
    try:
        with os.scandir(folder) as scan:
            items = list(scan)
    except OSError:
        return []
    parts = folder.parts[len(root.parts) :]
    found = []
    for item in items:
        is_folder = item.is_dir(follow_symlinks=False)
        if not include_protected and (
            is_protected_name(item.name)
            or (is_folder and item.name.startswith("."))
            or is_ignored(rules, (*parts, item.name), is_folder)
        ):
            continue
        if item.is_symlink():
            found += _link(root, folder / item.name, include_protected)
        elif is_folder or item.is_file(follow_symlinks=False):  # no device, pipe or socket
            found.append(Entry(Path(item.path), is_folder))
    return sorted(found, key=lambda entry: entry.path.name + "/" * entry.is_folder)


def _link(root: Path, path: Path, include_protected: bool) -> list[Entry]:
    """Return the entry for a link, none for one that leads outside or to what is protected."""
    target = Path(os.path.realpath(path))
    if root not in target.parents:
        return []
    if not include_protected and any(is_protected_name(name) for name in target.parts[len(root.parts) :]):
        return []
    return [Entry(path, is_folder=False, link_target=target)]
