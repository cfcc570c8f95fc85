from __future__ import annotations

import unittest

from mini_agent.context.budget import Budget


class Budgets(unittest.TestCase):
    def test_a_large_window_has_the_defaults(self) -> None:
        self.assertEqual(Budget.for_window(128_000), Budget(128_000, 16_384, 20_000))
        self.assertEqual(Budget.for_window(128_000).compress_above_tokens, 111_616)

    def test_a_small_window_reserves_a_quarter_and_keeps_a_third(self) -> None:
        self.assertEqual(Budget.for_window(2048), Budget(2048, 512, 682))

    def test_values_that_fit_are_taken_as_they_are(self) -> None:
        self.assertEqual(Budget.for_window(10_000, 9_000, 999), Budget(10_000, 9_000, 999))

    def test_values_that_do_not_fit_give_way_to_the_default(self) -> None:
        self.assertEqual(Budget.for_window(4096, 16_384, 20_000), Budget.for_window(4096))
        self.assertEqual(Budget.for_window(4096, 0, -1), Budget.for_window(4096))

    def test_every_window_leaves_something_to_keep_under_the_line(self) -> None:
        for window in [0, 1, 2048, 2049, 5000, 10**6]:
            for reserve in [None, 1, 1000, window - 1]:
                budget = Budget.for_window(window, reserve)
                self.assertGreaterEqual(budget.window_tokens, 2048)
                self.assertGreater(budget.keep_recent_tokens, 0)
                self.assertLessEqual(budget.keep_recent_tokens, budget.compress_above_tokens)

    def test_a_result_may_take_a_sixth_of_the_window_and_no_more_than_50_000_bytes(self) -> None:
        self.assertEqual(Budget.for_window(6000).result_limit_bytes, 4000)
        self.assertEqual(Budget.for_window(10**6).result_limit_bytes, 50_000)

    def test_a_compression_goes_a_quarter_below_the_line(self) -> None:
        lines = Budget.for_window(4096).lines(1072)
        self.assertEqual((lines.compress, lines.target, lines.limit, lines.room), (3072, 2572, 4096, 1500))
        self.assertEqual(Budget.for_window(4096).warning(1072), "")

    def test_large_instructions_raise_the_line_and_are_told_with_numbers(self) -> None:
        budget = Budget.for_window(2048)
        self.assertEqual(budget.lines(1600).compress, 1600 + 448 * 3 // 4)
        self.assertRegex(budget.warning(1600), "about 1,600 of the window's 2,048 tokens: 448 are left for .* answer")
        self.assertRegex(budget.warning(1900), r"too little is left for a conversation \(148\); a larger window")
        self.assertRegex(budget.warning(9000), r"\(0\)")

    def test_a_shrunk_budget_reserves_and_keeps_no_more_than_before(self) -> None:
        budget = Budget.for_window(100_000, 1000, 5000)
        self.assertEqual(budget.shrunk_to(50_000), Budget(50_000, 1000, 5000))
        self.assertEqual(budget.shrunk_to(3000), Budget(3000, 750, 1000))
