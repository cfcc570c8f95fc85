"""Each folder in `cases` is a claim: a tree before, a patch, and the tree after it, or what the refusal says.

`refusal.txt` has the error's code in its first line, then texts that the message holds; `told.txt` has texts that the
answer holds. A folder without `refusal.txt` and without `after` ends with no files.
"""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from mini_agent.tools.apply_patch.apply_patch import apply_patch
from mini_agent.tools.tool import ToolError
from mini_agent.tools.workspace import Workspace

CASES = Path(__file__).parent / "cases"


def read_tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


class CasesTest(unittest.TestCase):
    def test_every_folder_holds_its_claim(self) -> None:
        folders = sorted(CASES.iterdir())
        self.assertGreater(len(folders), 60)
        for folder in folders:
            fsync = mock.patch.object(os, "fsync")  # nothing here is about crashes
            with self.subTest(folder.name), tempfile.TemporaryDirectory() as name, fsync:
                self._check(folder, Path(name))

    def _check(self, case: Path, workspace: Path) -> None:
        before = read_tree(case / "before")
        for name, content in before.items():
            (workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (workspace / name).write_bytes(content)
        patch = (case / "patch.diff").read_bytes().decode("utf-8")
        refusal = lines_of(case / "refusal.txt")
        code = ""
        try:
            told = apply_patch(patch, Workspace(workspace))
        except ToolError as error:
            code, told = error.code, str(error)
        self.assertEqual(code, refusal[0] if refusal else "", told)
        for text in refusal[1:] + lines_of(case / "told.txt"):
            self.assertIn(text, told)
        self.assertEqual(read_tree(workspace), before if refusal else read_tree(case / "after"))


if __name__ == "__main__":
    unittest.main()
