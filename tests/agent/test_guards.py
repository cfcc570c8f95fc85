from __future__ import annotations

import unittest

from mini_agent.agent.guards import RepeatGuard


class Repeats(unittest.TestCase):
    def counted(self, *rounds: list[tuple[str, str]]) -> list[list[int]]:
        guard = RepeatGuard()
        counts = []
        for calls in rounds:
            guard.next_round()
            counts.append([guard.times(call, result) for call, result in calls])
        return counts

    def test_only_the_same_call_with_the_same_result_in_the_round_before_counts(self) -> None:
        calls = [("a", "1"), ("a", "1"), ("a", "2"), ("a", "2"), ("b", "2"), ("a", "2"), ("a", "2"), ("a", "2")]
        self.assertEqual(self.counted(*([call] for call in calls)), [[1], [2], [1], [2], [1], [1], [2], [3]])

    def test_calls_of_one_reply_are_no_repeats_of_each_other(self) -> None:
        twice = [("a", "1"), ("a", "1")]
        self.assertEqual(self.counted(twice, twice), [[1, 1], [2, 2]])

    def test_two_calls_repeated_in_turn_count_each(self) -> None:
        both = [("a", "1"), ("b", "1")]
        self.assertEqual(self.counted(both, both, both), [[1, 1], [2, 2], [3, 3]])
