from __future__ import annotations

import json
import unittest

from mini_agent.model.untrusted_json import DEEPEST_NESTING, parse_first_json, parse_json


class UntrustedJson(unittest.TestCase):
    def test_a_number_that_python_cannot_write_back_becomes_its_text(self) -> None:
        for text in ("NaN", "-Infinity", "1e999", "-1e999", "9" * 401, "9" * 5000, "-" + "9" * 5000):
            with self.subTest(text[:10]):
                self.assertEqual(parse_json(text), text)
                self.assertEqual(json.loads(json.dumps(parse_json(text))), text)

    def test_an_ordinary_number_stays_one(self) -> None:
        self.assertEqual(parse_json("[1, -2.5, 1e3, 12345678901234567890]"), [1, -2.5, 1000.0, 12345678901234567890])

    def test_nesting_is_taken_up_to_the_limit_and_can_be_written_back(self) -> None:
        deepest = "[" * DEEPEST_NESTING + "]" * DEEPEST_NESTING
        self.assertEqual(json.dumps(parse_json(deepest)), deepest)
        for depth in (DEEPEST_NESTING + 2, 900, 100_000):
            for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
                with self.assertRaisesRegex(ValueError, "nested over 100 levels deep"):
                    parse_json(text)

    def test_raw_control_characters_inside_strings_are_taken(self) -> None:
        self.assertEqual(parse_json('{"a": "x\n\ty"}'), {"a": "x\n\ty"})

    def test_text_after_the_value_is_an_error_and_parse_first_tells_where_it_begins(self) -> None:
        with self.assertRaises(json.JSONDecodeError):
            parse_json('{"a": 1} x')
        self.assertEqual(parse_first_json(' \n{"a": 1} x'), ({"a": 1}, 10))

    def test_what_is_no_json_is_a_value_error(self) -> None:
        for text in ("", " ", "x", "{", '{"a"', "[1,", "'a'", "\x00", "\ufeff{}", "{'a': 1}", "-", '"\\ud8'):
            with self.subTest(text), self.assertRaises(ValueError):
                parse_json(text)
