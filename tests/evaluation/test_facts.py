from __future__ import annotations

import unittest

from evals.harness.facts import grade_facts, states
from evals.harness.suite import Grade


class Stating(unittest.TestCase):
    def test_a_fact_is_stated_whatever_stands_around_it(self) -> None:
        stated = [
            "45",
            "It is 45.",
            "**45**",
            "`45`",
            "port=45, I think",
            "(45)",
            "45s",
            "45 %",
            "等待45秒",
            "“45”",
            "is\n45\n",
        ]
        for text in stated:
            with self.subTest(text):
                self.assertTrue(states(text, "45"))

    def test_a_number_is_not_stated_by_another_one(self) -> None:
        for text in ("450", "4.45", "45.2", "145", "-45", "v45", "1,450", "port_45"):
            with self.subTest(text):
                self.assertFalse(states(text, "45"))

    def test_thousands_case_and_blanks_do_not_count(self) -> None:
        self.assertTrue(states("It costs 12,500 cents", "12500"))
        self.assertTrue(states("tobias\n  RENN did", "Tobias Renn"))

    def test_a_word_is_not_stated_by_a_longer_one(self) -> None:
        for text in ("reports", "port-forward", "port.py", "export"):
            with self.subTest(text):
                self.assertFalse(states(text, "port"))
        self.assertTrue(states("the port.", "port"))


class Grading(unittest.TestCase):
    def test_the_score_is_the_share_of_what_is_there(self) -> None:
        self.assertEqual(grade_facts("a and b", ["a", "b", "c", "d"]), Grade(False, 0.5, ("c", "d")))
        self.assertEqual(grade_facts("a and b", ["a", "b"]), Grade(True, 1.0))

    def test_a_forbidden_fact_fails_what_is_right_otherwise(self) -> None:
        self.assertEqual(grade_facts("a, formerly x", ["a"], ["x", "y"]), Grade(False, 0.0, (), ("x",)))
