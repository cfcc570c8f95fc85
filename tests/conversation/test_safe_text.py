from __future__ import annotations

import random
import time
import unicodedata
import unittest

from mini_agent.conversation.safe_text import readable_size, safe_line, safe_text


class SafeTextTest(unittest.TestCase):
    def test_escape_sequences_are_written_out(self) -> None:
        self.assertEqual(safe_text("\x1b[2J\x1b]52;c;aGk=\x07\x9b31m"), "\\x1b[2J\\x1b]52;c;aGk=\\x07\\x9b31m")

    def test_line_feeds_and_tabs_stay_and_a_carriage_return_cannot_overwrite_a_line(self) -> None:
        self.assertEqual(safe_text("a\tb\nc\r\nd\rrm -rf"), "a\tb\nc\nd\\rrm -rf")

    def test_one_line_stays_one_line(self) -> None:
        self.assertEqual(safe_line("a\tb\nc\u2028d\x85e\x0bf"), "a\\tb\\nc\\u2028d\\x85e\\x0bf")

    def test_marks_that_turn_or_hide_text_are_written_out(self) -> None:
        self.assertEqual(
            safe_text("x\u202ey\u2066z\u200b\ufeff\U000e0041"), "x\\u202ey\\u2066z\\u200b\\ufeff\\U000e0041"
        )

    def test_lone_surrogates_are_written_out_and_pairs_of_real_characters_stay(self) -> None:
        self.assertEqual(safe_text("\ud83d \U0001f600 é 文"), "\\ud83d \U0001f600 é 文")

    def test_whatever_comes_in_nothing_that_controls_comes_out(self) -> None:
        seed = time.time_ns()
        generator = random.Random(seed)
        for _ in range(300):
            text = "".join(
                chr(generator.choice((generator.randrange(0x3000), generator.randrange(0x110000)))) for _ in "x" * 50
            )
            kinds = {unicodedata.category(character) for character in safe_line(text)}
            self.assertFalse(kinds & {"Cc", "Cs", "Zl", "Zp"}, f"seed {seed}: {text!a}")
            safe_text(text).encode("utf-8")

    def test_sizes_are_short(self) -> None:
        sizes = {0: "0 B", 999: "999 B", 1000: "1.0 KB", 999_949: "999.9 KB", 999_950: "1.0 MB", 10**15: "1000000.0 GB"}
        for size, text in sizes.items():
            self.assertEqual(readable_size(size), text)
