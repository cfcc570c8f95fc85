from __future__ import annotations

import os
import unittest

from mini_agent.conversation.messages import ToolCall
from mini_agent.tools.list_files import ListFilesTool, list_files
from mini_agent.tools.toolbox import Toolbox
from tests.tools.workspace_case import WorkspaceCase


class ListFiles(WorkspaceCase):
    def test_the_tree_is_sorted_and_indented_with_sizes(self) -> None:
        self.write("src/deep/er/x.py")
        self.write("src/a.py", "x" * 1500)
        self.write("README.md", "hello")
        expected = ["./", "  README.md  5 B", "  src/", "    a.py  1.5 KB", "    deep/"]
        self.assertEqual(list_files(self.workspace).split("\n"), expected)
        self.assertEqual(list_files(self.workspace, "src/deep", 1), "src/deep/\n  er/")

    def test_the_301st_entry_is_only_counted(self) -> None:
        for number in range(300):
            self.write(f"f{number:03}")
        self.assertEqual(len(list_files(self.workspace).split("\n")), 301)
        self.write("f300")
        self.write("f301")
        lines = list_files(self.workspace).split("\n")
        self.assertEqual(lines[300], "  f299  0 B")
        self.assertTrue(lines[301].startswith("[2 more entries"), lines[301])

    def test_what_is_not_shown_is_said_where_nothing_is(self) -> None:
        self.write("sub/.env")
        self.assertIn("protected", list_files(self.workspace, "sub"))
        self.assertEqual(list_files(self.workspace, "sub", include_protected=True), "sub/\n  .env  0 B")

    def test_a_file_a_miss_and_a_depth_of_zero_are_errors_that_say_what_to_do(self) -> None:
        self.write("src/a.py")
        self.assertIn("read_file", self.refused("not_a_folder", list_files, self.workspace, "src/a.py"))
        self.assertIn("src", self.refused("not_found", list_files, self.workspace, "scr"))
        self.refused("bad_arguments", list_files, self.workspace, ".", 0)
        self.refused("outside_workspace", list_files, self.workspace, "..")
        self.refused("protected_path", list_files, self.workspace, ".git")

    @unittest.skipUnless(os.name == "posix", "names as on POSIX")
    def test_no_name_can_forge_a_line(self) -> None:
        self.write("a\n  forged.py  1 B")
        (self.root / "l").symlink_to("a\n  forged.py  1 B")
        expected = ["./", r"  a\n  forged.py  1 B  0 B", r"  l -> a\n  forged.py  1 B"]
        self.assertEqual(list_files(self.workspace).split("\n"), expected)


class Tool(WorkspaceCase):
    def run_tool(self, answer: bool, **arguments: object) -> tuple[str, list[str]]:
        questions: list[str] = []
        tool = ListFilesTool(self.workspace, lambda question: bool(questions.append(question)) or answer)
        return Toolbox([tool]).run(ToolCall("1", "list_files", "", arguments)).text, questions

    def test_protected_names_are_listed_only_after_a_yes(self) -> None:
        self.write(".env")
        self.assertEqual(
            self.run_tool(True), ("./\n[nothing to show: protected, hidden and ignored names are left out]", [])
        )
        text, questions = self.run_tool(True, include_protected=True)
        self.assertEqual(text, "./\n  .env  0 B")
        self.assertIn(".env", questions[0])
        text, questions = self.run_tool(False, include_protected=True)
        self.assertTrue(text.startswith("Error [declined]"), text)
        self.assertEqual(len(questions), 1)

    def test_nobody_is_asked_about_what_is_refused_anyway(self) -> None:
        text, questions = self.run_tool(True, path="..", include_protected=True)
        self.assertTrue(text.startswith("Error [outside_workspace]"), text)
        self.assertEqual(questions, [])


if __name__ == "__main__":
    unittest.main()
