from __future__ import annotations

import unittest

from evals.harness.statistics import (
    Difference,
    Pair,
    bootstrap,
    counts,
    difference,
    pair_up,
    passed,
    sign_test,
    tokens,
    verdict,
)
from tests.evaluation.recorded import failed, noisy, record


def directions(records: list) -> tuple[int, int]:
    """Return the direction of the difference in passing and in tokens, of the new arm against the old."""
    pairs, _ = pair_up(records, "new", "old")
    found = [difference(pairs, of) for of in (passed, tokens)]
    return tuple(one.direction if one else 0 for one in found)


class TwoArms(unittest.TestCase):
    def test_identical_arms_come_out_as_no_difference_in_200_of_200(self) -> None:
        found = [directions(noisy(seed)) for seed in range(200)]
        self.assertEqual(found, [(0, 0)] * 200)

    def test_an_arm_that_passes_more_is_found(self) -> None:
        found = [directions(noisy(seed, better={"new": 0.9, "old": -0.2})) for seed in range(8)]
        self.assertEqual({passing for passing, _ in found}, {1})

    def test_an_arm_that_passes_less_is_found(self) -> None:
        found = [directions(noisy(seed, better={"new": -0.2, "old": 0.9})) for seed in range(8)]
        self.assertEqual({passing for passing, _ in found}, {-1})

    def test_an_arm_that_needs_fewer_tokens_is_found(self) -> None:
        found = [directions(noisy(seed, better={"new": 1, "old": 1}, dearer={"new": 0.5})) for seed in range(8)]
        self.assertEqual(set(found), {(0, -1)})

    def test_seconds_are_never_judged_by(self) -> None:
        slow = [{**cell, "seconds": cell["seconds"] * (100 if cell["arm"] == "new" else 1)} for cell in noisy(1)]
        self.assertEqual(directions(slow), directions(noisy(1)))


class Pairs(unittest.TestCase):
    def test_each_has_one_verdict(self) -> None:
        unused = {"calls": 2, "successes": 0, "errors": 2}
        pairs = [
            Pair("a", 1, record("a", "new", 1), failed("a", "old", 1)),
            Pair("b", 1, failed("b", "new", 1), record("b", "old", 1)),
            Pair("c", 1, record("c", "new", 1), record("c", "old", 1)),
            Pair("d", 1, failed("d", "new", 1), failed("d", "old", 1)),
            Pair("e", 1, record("e", "new", 1, used=unused), failed("e", "old", 1)),
        ]
        told = ["helped", "regressed", "both passed", "both failed", "not used"]
        self.assertEqual([pair.verdict for pair in pairs], told)
        self.assertEqual(counts(pairs), dict.fromkeys(told, 1))

    def test_a_server_that_failed_says_nothing_about_an_arm(self) -> None:
        for why in ("server", "refused", "not started", "grader", "harness"):
            cells = [failed("a", "new", 1, why), record("a", "old", 1), failed("b", "new", 1), record("b", "old", 1)]
            pairs, left_out = pair_up(cells, "new", "old")
            with self.subTest(why):
                self.assertEqual(([pair.case for pair in pairs], left_out), (["b"], 1))

    def test_a_cell_without_its_other_is_none(self) -> None:
        self.assertEqual(pair_up([record("a", "new", 1), record("a", "old", 2)], "new", "old"), ([], 0))

    def test_tokens_are_compared_only_where_both_passed_and_both_are_known(self) -> None:
        unknown = {"tokens": None}
        self.assertIsNone(Pair("a", 1, record("a", "new", 1), failed("a", "old", 1)).tokens)
        self.assertIsNone(Pair("a", 1, record("a", "new", 1), record("a", "old", 1, **unknown)).tokens)
        self.assertEqual(Pair("a", 1, record("a", "new", 1), record("a", "old", 1)).tokens, (10_000, 10_000))


class Numbers(unittest.TestCase):
    def test_the_sign_test_is_exact(self) -> None:
        self.assertEqual(sign_test(0, 0), 1)
        self.assertEqual(sign_test(5, 0), 2 / 32)
        self.assertEqual(sign_test(1, 4), 2 * (1 + 5) / 32)
        self.assertEqual(sign_test(3, 3), 1)

    def test_the_interval_draws_cases_and_not_repeats(self) -> None:
        alike = [[1.0] * 50, [0.0] * 50]  # a hundred repeats of two cases are still two cases
        self.assertEqual(bootstrap(alike), (0.0, 1.0))
        low, high = bootstrap([[1.0, 0.0] * 50])  # of one case nothing else can be drawn
        self.assertTrue(0.35 < low < 0.45 and 0.55 < high < 0.65, (low, high))

    def test_no_difference_seen_says_how_many_more_repeats_could_tell(self) -> None:
        told = verdict(Difference(((1, 1, 1), (1, -1, 0))), "more", "less", repeats=2)
        self.assertRegex(told, r"^no difference seen \(p = 0\.38\).* 12 more repeats could tell")
        self.assertLess(sign_test(4 * 7, 7), 0.001)
        self.assertGreater(sign_test(4 * 6, 6), 0.001)

    def test_where_nothing_differs_it_says_what_is_ruled_out(self) -> None:
        told = verdict(Difference(((0,) * 29,)), "more", "less", repeats=29)
        self.assertRegex(told, "^no difference seen.* 10 %")

    def test_an_even_split_is_told_as_such(self) -> None:
        told = verdict(Difference(((1, 1, -1), (-1,))), "more", "less", repeats=1)
        self.assertIn("no number of repeats", told)

    def test_a_difference_that_rests_on_one_case_of_a_few_is_none(self) -> None:
        self.assertEqual(Difference(((1,) * 40, (-30,), (-1,))).direction, 0)
        self.assertEqual(Difference(((1,) * 40,)).direction, 1)
        self.assertEqual(Difference(((-1,) * 40,)).direction, -1)
