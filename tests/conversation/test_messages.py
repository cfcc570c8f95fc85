from __future__ import annotations

import random
import unittest

from mini_agent.conversation.messages import AssistantMessage, ToolCall, Usage, with_unique_ids
from tests import generated


def ids(given: list[str], used: set[str]) -> list[str]:
    return [call.id for call in with_unique_ids([ToolCall(id, "grep", "{}", {}) for id in given], used)]


class UniqueIds(unittest.TestCase):
    def test_ids_that_are_unique_already_stay_as_they_are(self) -> None:
        self.assertEqual(ids(["a", "b"], {"c"}), ["a", "b"])

    def test_missing_and_repeated_ids_are_replaced(self) -> None:
        self.assertEqual(ids(["", "", "0", "0"], {"0"})[0], "call_2")
        self.assertEqual(len({*ids(["", "", "0", "0"], {"0"}), "0"}), 5)

    def test_whatever_ids_a_server_sends_none_is_empty_or_used_twice(self) -> None:
        for seed in generated.seeds(50, 2000):
            rng = random.Random(seed)
            used: set[str] = set()
            for _ in range(20):
                new = ids([rng.choice(["", "0", "1", "call_3", "call_4", "0_5"]) for _ in range(4)], used)
                with self.subTest(seed=seed):
                    self.assertEqual(len(set(new) | used), len(used) + 4)
                    self.assertNotIn("", new)
                used.update(new)

    def test_a_server_that_sends_no_ids_costs_no_more_late_in_a_session(self) -> None:
        looked_up = []

        class Watched(set):  # type: ignore[type-arg]
            def __contains__(self, id: object) -> bool:
                looked_up.append(id)
                return super().__contains__(id)

            def __iter__(self) -> None:  # type: ignore[override]
                raise AssertionError("the ids of the whole session are walked through")

        used = Watched(f"call_{number}" for number in range(1, 5001))
        ids([""] * 10, used)
        self.assertLessEqual(len(looked_up), 20)


class Messages(unittest.TestCase):
    def test_usages_add_up(self) -> None:
        total = Usage(1, 2, 3) + Usage(10, 20, 30)
        self.assertEqual((total, total.total_tokens), (Usage(11, 22, 33), 33))

    def test_blank_text_without_calls_is_empty(self) -> None:
        self.assertTrue(AssistantMessage(" \n").is_empty)
        self.assertFalse(AssistantMessage("", (ToolCall("a", "grep", "{}", {}),)).is_empty)
