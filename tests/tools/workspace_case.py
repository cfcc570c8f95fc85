"""A workspace in a temporary folder, with a neighbour that nothing may touch."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import unittest
from pathlib import Path
from typing import Any

from mini_agent.conversation.events import Event
from mini_agent.tools.tool import ToolError
from mini_agent.tools.workspace import Workspace

Snapshot = dict[str, tuple[str, int, bytes]]  # path → kind, permission bits, content


def snapshot(folder: Path) -> Snapshot:
    """Return all that is in a folder."""
    found: Snapshot = {}
    for base, folders, files in os.walk(folder):
        for name in folders + files:
            path = Path(base, name)
            status = path.lstat()
            mode = stat.S_IMODE(status.st_mode)
            if path.is_symlink():
                found[str(path.relative_to(folder))] = ("link", 0, os.fsencode(os.readlink(path)))
            elif path.is_dir():
                found[str(path.relative_to(folder))] = ("folder", mode, b"")
            elif path.is_file():
                found[str(path.relative_to(folder))] = ("file", mode, path.read_bytes())
    return found


class WorkspaceCase(unittest.TestCase):
    """`self.root` is the workspace's folder, `self.outside` lies beside it, `self.events` is what was recorded."""

    def setUp(self) -> None:
        base = Path(os.path.realpath(tempfile.mkdtemp(prefix="mini-agent-test-")))
        self.addCleanup(shutil.rmtree, base, ignore_errors=True)
        self.root = base / "work"
        self.outside = base / "work-not"  # its name begins with the workspace's
        self.root.mkdir()
        self.outside.mkdir()
        (self.outside / "secret.txt").write_text("outside\n", encoding="utf-8")
        self.events: list[Event] = []
        self.workspace = Workspace(self.root, self.events.append)

    def write(self, path: str, content: str | bytes = "") -> Path:
        """Make a file, and the folders above it."""
        full = self.root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return full

    def refused(self, code: str, function: Any, *arguments: Any, **named: Any) -> str:
        """Check that the call is refused with this code; return what is said."""
        with self.assertRaises(ToolError) as caught:
            function(*arguments, **named)
        self.assertEqual(caught.exception.code, code, str(caught.exception))
        return str(caught.exception)
