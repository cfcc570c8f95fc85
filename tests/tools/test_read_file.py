from __future__ import annotations

import json
import os
import random
import re
import tracemalloc
import unittest

from mini_agent.conversation.messages import ToolCall
from mini_agent.tools.read_file import ReadFileTool, read_file
from mini_agent.tools.tool import RESULT_LIMIT_BYTES
from mini_agent.tools.toolbox import Toolbox
from tests.tools.workspace_case import WorkspaceCase


class ReadFile(WorkspaceCase):
    def read(self, path: str, offset: int = 1, limit: int = 2000) -> str:
        return read_file(path, self.workspace, offset, limit)

    def test_a_whole_file_is_returned_as_it_is(self) -> None:
        for content in (
            "a\nb\n",
            "a\nb",
            "\n",
            "\n\n",
            "x\r\ny\r\n",
            "a\rb",
            "tab\tand é 日本 😀\n",
            "\x1b[31m\n",
            "  \n",
        ):
            with self.subTest(content=content):
                self.write("a.txt", content)
                self.assertEqual(self.read("a.txt"), content)

    def test_only_a_line_feed_ends_a_line(self) -> None:
        self.write("a.txt", "1\x0b\x0c\x1c\x85\u2028\u2029\r1\n2\n")
        self.assertEqual(self.read("a.txt", 2), "2\n[lines 2-2 of 2, the end]")

    def test_a_part_says_which_lines_these_were_and_how_to_go_on(self) -> None:
        self.write("a.txt", "".join(f"line {number}\n" for number in range(1, 11)))
        goes_on = 'line 3\nline 4\n[lines 3-4 of 10; go on with read_file(path="a.txt", offset=5, limit=2)]'
        self.assertEqual(self.read("a.txt", 3, 2), goes_on)
        self.assertEqual(self.read("a.txt", 9, 2), "line 9\nline 10\n[lines 9-10 of 10, the end]")
        self.assertEqual(self.read("a.txt", -1), "line 10\n[lines 10-10 of 10, the end]")
        self.assertEqual(self.read("a.txt", -99), self.read("a.txt"))
        self.assertEqual(self.read("a.txt", 0), self.read("a.txt"))

    def test_in_a_small_window_the_page_is_shorter_and_goes_on_where_it_ends(self) -> None:
        self.write("a.txt", "".join(f"line {number}\n" for number in range(3000)))
        toolbox = Toolbox([ReadFileTool(self.workspace, lambda: 2000)], result_limit_bytes=lambda: 2000)
        text, offset = "", 1
        while offset:
            result = toolbox.run(ToolCall("1", "read_file", "", {"path": "a.txt", "offset": offset})).text
            note = re.search(r"\[lines .*?(?:offset=(\d+)\))?\]$", result)
            assert note
            text += result[: note.start()]
            offset = int(note[1] or 0)
        self.assertEqual(text, (self.workspace.root / "a.txt").read_text(encoding="utf-8"))

    def test_the_note_stands_on_a_line_of_its_own_without_a_final_newline(self) -> None:
        self.write("a.txt", "a\nb")
        self.assertEqual(self.read("a.txt", -1), "b\n[lines 2-2 of 2, the end]")

    def test_the_call_that_continues_really_continues(self) -> None:
        seed = random.randrange(10**6)
        chance = random.Random(seed)
        lines = ["x" * chance.choice((0, 1, 10, 80, 1500)) + str(number) for number in range(3000)]
        name = 'odd "name" é.txt'
        self.write(name, "\n".join(lines) + "\n")
        path, offset, limit, collected = name, 1, 2000, ""
        for _ in range(100):
            text = self.read(path, offset, limit)
            self.assertLessEqual(len(text.encode("utf-8")), RESULT_LIMIT_BYTES)
            body, _, note = text.rpartition("[lines ")
            collected += body
            call = re.search(r"read_file\(path=(.*), offset=(\d+)(?:, limit=(\d+))?\)\]$", note)
            if not call:
                break
            path, offset, limit = json.loads(call[1]), int(call[2]), int(call[3] or 2000)
        self.assertEqual(collected, "\n".join(lines) + "\n", f"seed {seed}")

    def test_an_offset_beyond_the_end_says_how_many_lines_there_are(self) -> None:
        self.write("a.txt", "1\n2\n")
        self.assertIn("2 lines", self.refused("bad_offset", self.read, "a.txt", 3))
        self.refused("bad_offset", self.read, "a.txt", 10**30)
        self.refused("bad_arguments", self.read, "a.txt", 1, 0)

    def test_an_empty_file_says_so(self) -> None:
        self.write("a.txt", "")
        self.assertEqual(self.read("a.txt"), "[the file is empty]")
        self.assertEqual(self.read("a.txt", -5), "[the file is empty]")

    def test_a_long_line_is_cut_and_says_how_much_is_missing(self) -> None:
        self.write("a.txt", "x" * 2000 + "\n" + "é" * 2001 + "\n" + "y" * 400_000)
        lines = self.read("a.txt").split("\n")
        self.assertEqual(lines[0], "x" * 2000)
        self.assertTrue(lines[1].startswith("é" * 2000 + "… [1 more character"), lines[1][-80:])
        self.assertTrue(lines[2].startswith("y" * 2000 + "… [398,000 more character"), lines[2][-80:])
        self.assertEqual(len(lines), 3)

    def test_a_byte_order_mark_is_out_of_the_way_and_told(self) -> None:
        self.write("a.txt", b"\xef\xbb\xbfone\ntwo\n")
        text = self.read("a.txt")
        self.assertTrue(text.startswith("one\ntwo\n["))
        self.assertIn("byte order mark", text)
        self.assertEqual(self.read("a.txt", 2), "two\n[lines 2-2 of 2, the end]")

    def test_what_is_no_text_is_refused_with_size_and_kind(self) -> None:
        cases = {
            b"\x89PNG\r\n\x1a\n\0": "PNG",
            b"x" * 8191 + b"\0": "binary data, 8.2 KB",
            b"caf\xe9\n": "not UTF-8 text (byte 0xE9), 5 B",
            b"good\n" * 5000 + b"\xff": "not UTF-8",
            "text\n".encode("utf-16"): "UTF-16",
            b"\xed\xa0\x80": "not UTF-8",
        }
        for content, said in cases.items():
            with self.subTest(said=said):
                self.write("a.bin", content)
                self.assertIn(said, self.refused("not_text", self.read, "a.bin"))

    def test_a_nul_further_down_is_text(self) -> None:
        self.write("a.txt", b"x" * 8191 + b"\n\0\n")
        self.assertTrue(self.read("a.txt", 2).startswith("\0\n["))

    def test_a_folder_is_listed(self) -> None:
        self.write("src/a.py", "x")
        self.assertEqual(self.read("src"), "src is a folder. In it are:\nsrc/\n  a.py  1 B")

    def test_a_protected_file_is_not_read(self) -> None:
        self.write(".env", "KEY=secret")
        self.assertNotIn("KEY=", self.refused("protected_path", self.read, ".env"))


class LargeFiles(WorkspaceCase):
    def test_a_file_over_8_mb_only_says_that_more_follows(self) -> None:
        self.write("a.log", b"some line\n" * 900_000)
        text = read_file("a.log", self.workspace, 3, 1)
        note = '[lines 3-3, more follows; go on with read_file(path="a.log", offset=4, limit=1)]'
        self.assertEqual(text, f"some line\n{note}")
        self.assertEqual(read_file("a.log", self.workspace, -1), "some line\n[lines 900000-900000 of 900000, the end]")
        self.refused("bad_offset", read_file, "a.log", self.workspace, 900_001)

    def test_a_file_without_a_line_end_takes_little_memory(self) -> None:
        path = self.write("a.bin", "start")
        with path.open("ab") as file:
            for _ in range(40):
                file.write(b"x" * 1_000_000)
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        text = read_file("a.bin", self.workspace)
        self.assertIn("… [39,998,005 more characters", text)
        self.assertLess(tracemalloc.get_traced_memory()[1], 10_000_000)


class Tool(WorkspaceCase):
    def test_it_tells_which_file_was_read_and_no_folder(self) -> None:
        path = self.write("src/a.py", "x")
        if hasattr(os, "symlink") and os.name != "nt":
            (self.root / "l").symlink_to("src/a.py")
            self.assertEqual(
                ReadFileTool(self.workspace).run({"path": "l", "offset": 1, "limit": 9}).read_paths, (path,)
            )
        self.assertEqual(ReadFileTool(self.workspace).run({"path": "src", "offset": 1, "limit": 9}).read_paths, ())

    def test_a_full_page_passes_the_toolbox_uncut(self) -> None:
        self.write("a.txt", ("é" * 40 + "\n") * 5000)
        outcome = Toolbox([ReadFileTool(self.workspace)]).run(ToolCall("1", "read_file", "", {"path": "a.txt"}))
        self.assertTrue(outcome.text.endswith(")]"), outcome.text[-200:])
        self.assertNotIn("left out", outcome.text)


if __name__ == "__main__":
    unittest.main()
