from __future__ import annotations

import unittest

from mini_agent.terminal.columns import cut, encodable, width


class ColumnsTest(unittest.TestCase):
    def test_what_the_stream_has_no_bytes_for_is_written_out(self) -> None:
        self.assertEqual(encodable("é 文…", "ascii"), "\\xe9 \\u6587\\u2026")
        self.assertEqual(encodable("é 文", "latin-1"), "é \\u6587")

    def test_wide_characters_take_two_columns_and_combining_marks_none(self) -> None:
        self.assertEqual((width("abc"), width("文件"), width("e\u0301"), width("\U0001f600")), (3, 4, 1, 2))

    def test_a_line_that_fits_exactly_is_not_cut(self) -> None:
        self.assertEqual(cut("文件ab", 6), "文件ab")

    def test_a_cut_line_is_never_wider_than_the_columns(self) -> None:
        for text in ("文件" * 20, "a文" * 20, "x" * 50, "e\u0301" * 50):
            for columns in range(1, 40):
                self.assertLessEqual(width(cut(text, columns)), columns)
        self.assertEqual(cut("文件名字很长", 8), "文件...")
