from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path

from evals.harness.scripts import derived_script, patch
from evals.harness.suite import Case, Proof, files_in, write_files
from mini_agent.model.scripted import load_script
from mini_agent.tools.apply_patch.apply_patch import apply_patch
from mini_agent.tools.workspace import Workspace

BEFORE = {
    "a.py": b"one\ntwo\nthree\n",
    "windows.txt": b"one\r\ntwo\r\nthree\r\n",
    "open.txt": b"one\ntwo",
    "gone.txt": b"one\n",
    "中文.py": "# 注释\nx = 1\n".encode(),
}
OVERLAY = {
    "a.py": b"one\n2\nthree\nfour\n",
    "windows.txt": b"one\r\n2\r\nthree\r\n",
    "open.txt": b"one\n2",
    "gone.txt": None,
    "deep/new.txt": b"new\n",
    "中文.py": "# 注释\nx = 2\n".encode(),
}


class Patches(unittest.TestCase):
    def test_what_our_agent_makes_of_one_is_the_overlay(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve()
            write_files(folder, BEFORE)
            apply_patch(patch(BEFORE, OVERLAY), Workspace(folder))
            self.assertEqual(files_in(folder), {name: data for name, data in OVERLAY.items() if data is not None})

    def test_of_an_overlay_that_changes_nothing_there_is_none(self) -> None:
        self.assertEqual(patch(BEFORE, BEFORE), "")


class Scripts(unittest.TestCase):
    def test_they_are_derived_from_the_first_right_and_wrong_proof(self) -> None:
        right, wrong = Proof("r", True, {"a.py": b"2\n"}, "right"), Proof("w", False, {"a.py": b"3\n"}, "wrong")
        case = Case("case", BEFORE, ("first", "second"), (wrong, right))
        for kind, last, tools in (
            ("good", "right", ["list_files", "read_file", "apply_patch"]),
            ("bad", "wrong", ["list_files", "read_file", "apply_patch"]),
            ("careless", "right", []),
        ):
            replies = derived_script(case, 2, kind)["replies"]
            with self.subTest(kind):
                self.assertEqual((replies[0]["text"], replies[-1]["text"]), ("Understood.", last))
                self.assertEqual([call["name"] for reply in replies for call in reply["tool_calls"]], tools)

    def test_the_scripted_model_can_read_them(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            path = Path(name, "script.json")
            case = Case("case", BEFORE, ("first",), (Proof("r", True, {"a.py": b"2\n"}, "right"),))
            path.write_text(json.dumps(derived_script(case, 1, "good")), encoding="utf-8")
            load_script(path)
