from __future__ import annotations

import random
import sys
import unittest

from mini_agent.conversation.conversation import Conversation
from mini_agent.conversation.events import (
    AssistantMessageAdded,
    Event,
    FileChange,
    FilesChanged,
    FilesWillChange,
    HistorySummarized,
    InstructionsSet,
    Notice,
    ReminderAdded,
    ToolOutputCompressed,
    ToolResultAdded,
    TurnEnded,
    UserMessageAdded,
)
from mini_agent.conversation.messages import (
    AssistantMessage,
    Reminder,
    Summary,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserMessage,
)
from tests import generated


def reply(text: str = "", *ids: str) -> AssistantMessageAdded:
    return AssistantMessageAdded(
        AssistantMessage(text, tuple(ToolCall(id, "grep", "{}", {}) for id in ids)), None, "", ""
    )


def result(id: str, text: str = "found", hidden: bool = False) -> ToolResultAdded:
    return ToolResultAdded(id, "grep", text, False, f"grep {id}", hidden)


def folded(*events: Event) -> Conversation:
    conversation = Conversation()
    for event in events:
        conversation.apply(event)
    return conversation


class TheFold(unittest.TestCase):
    def test_each_kind_of_message_is_seen_as_what_it_is(self) -> None:
        conversation = folded(
            InstructionsSet("be good", (), "1"), UserMessageAdded("do it"), reply("I look", "a"), result("a"),
            ReminderAdded("be brief"), reply("done"), TurnEnded("completed"),
        )  # fmt: skip
        expected = [
            SystemMessage("be good"), UserMessage("do it"), reply("I look", "a").message,
            ToolResult("a", "grep", "found"), Reminder("be brief"), AssistantMessage("done"),
        ]  # fmt: skip
        self.assertEqual(list(conversation.visible_messages()), expected)

    def test_what_does_not_concern_the_model_is_not_seen(self) -> None:
        conversation = folded(UserMessageAdded("do it"), Notice("asked again"))
        self.assertEqual(list(conversation.visible_messages()), [UserMessage("do it")])

    def test_instructions_set_again_stand_in_the_same_place(self) -> None:
        first = (InstructionsSet("old", (), "1"), UserMessageAdded("do it"))
        conversation = folded(*first, InstructionsSet("new", ({"name": "grep"},), "2"))
        self.assertEqual(list(conversation.visible_messages()), [SystemMessage("new"), UserMessage("do it")])
        self.assertEqual((conversation.instructions_hash, conversation.tools), ("2", ({"name": "grep"},)))

    def test_what_is_visible_cannot_be_asked_for_while_a_call_is_open(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "b"):
            folded(UserMessageAdded("x"), reply("", "a", "b"), result("a")).visible_messages()

    def test_a_hidden_call_is_gone_and_the_text_beside_it_stays(self) -> None:
        conversation = folded(UserMessageAdded("x"), reply("I tidy up", "a"), result("a", hidden=True))
        self.assertEqual(list(conversation.visible_messages()), [UserMessage("x"), AssistantMessage("I tidy up")])

    def test_a_message_of_hidden_calls_only_is_gone_whole(self) -> None:
        hidden = (result("a", hidden=True), result("b", hidden=True))
        conversation = folded(UserMessageAdded("x"), reply("", "a", "b"), *hidden)
        self.assertEqual(list(conversation.visible_messages()), [UserMessage("x")])

    def test_a_hidden_call_between_two_others_leaves_them_with_their_results(self) -> None:
        for hidden in "abc":
            results = [result(id, hidden=id == hidden) for id in "abc"]
            conversation = folded(UserMessageAdded("x"), reply("", "a", "b", "c"), *results)
            kept = [id for id in "abc" if id != hidden]
            expected = [UserMessage("x"), reply("", *kept).message, *(ToolResult(id, "grep", "found") for id in kept)]
            with self.subTest(hidden=hidden):
                self.assertEqual(list(conversation.visible_messages()), expected)

    def test_a_compressed_result_is_seen_short_and_counted(self) -> None:
        conversation = folded(UserMessageAdded("x"), reply("", "a"), result("a"), ToolOutputCompressed("a", "f", 5))
        self.assertEqual(conversation.visible_messages()[-1], ToolResult("a", "grep", "f"))
        self.assertEqual([(each.text, each.compressions) for each in conversation.earlier_results()], [("f", 1)])

    def test_after_a_compression_the_results_that_stayed_can_still_be_compressed(self) -> None:
        conversation = folded(
            InstructionsSet("be good", (), "1"), UserMessageAdded("x"), reply("", "a"), result("a"), reply("", "b"),
            result("b"), HistorySummarized((UserMessage("x"), Summary("s"), Summary("t")), 4, 9, 5, ""),
            ToolOutputCompressed("b", "short", 5),
        )  # fmt: skip
        self.assertEqual(conversation.visible_messages()[-1], ToolResult("b", "grep", "short"))
        self.assertEqual([each.call_id for each in conversation.earlier_results()], ["b"])

    def test_changed_files_belong_to_the_open_call_and_to_no_later_one(self) -> None:
        change = FileChange("a.py", None, "0" * 64)
        conversation = folded(UserMessageAdded("x"), reply("", "a", "b"), FilesWillChange((change,)))
        self.assertEqual(conversation.files_in_flight, (change,))
        conversation.apply(FilesChanged((change,)))
        self.assertEqual((conversation.files_in_flight, conversation.changed_by_open_call), ((), ("a.py",)))
        conversation.apply(result("a"))
        self.assertEqual(conversation.changed_by_open_call, ())

    def test_files_changed_between_two_turns_are_no_calls_doing(self) -> None:
        change = FileChange("a.py", None, "0" * 64)
        conversation = folded(
            FilesWillChange((change,)), FilesChanged((change,)), UserMessageAdded("x"), reply("", "a")
        )
        self.assertEqual(conversation.changed_by_open_call, ())

    def test_a_steered_message_opens_no_turn(self) -> None:
        conversation = folded(UserMessageAdded("x"), UserMessageAdded("and y", steered=True))
        self.assertEqual((conversation.turn_count, conversation.turn_is_open), (1, True))


IMPOSSIBLE = {
    "a message while a call is open": ([UserMessageAdded("x"), reply("", "a")], UserMessageAdded("y")),
    "a reply while a call is open": ([UserMessageAdded("x"), reply("", "a")], reply("z")),
    "the end of a turn with an open call": ([UserMessageAdded("x"), reply("", "a")], TurnEnded("completed")),
    "a reminder while a call is open": ([reply("", "a")], ReminderAdded("y")),
    "a compression while a call is open": ([reply("", "a")], HistorySummarized((), 0, 1, 1, "")),
    "a result of no call": ([UserMessageAdded("x"), reply("", "a")], result("b")),
    "a second result": ([reply("", "a"), result("a")], result("a")),
    "results out of order": ([reply("", "a", "b")], result("b")),
    "two calls under one id": ([], reply("", "a", "a")),
    "an id used before": ([reply("", "a"), result("a")], reply("", "a")),
    "instructions after the first message": ([UserMessageAdded("x")], InstructionsSet("late", (), "1")),
    "compressing a result that is not there": ([UserMessageAdded("x")], ToolOutputCompressed("a", "", 1)),
    "compressing a result that was hidden": (
        [reply("x", "a"), result("a", hidden=True)], ToolOutputCompressed("a", "", 1)
    ),
    "compressing a result that a summary took away": (
        [reply("", "a"), result("a"), HistorySummarized((), 2, 1, 1, "")], ToolOutputCompressed("a", "", 1)
    ),
    "a compression between call and result": (
        [UserMessageAdded("x"), reply("", "a"), result("a")], HistorySummarized((), 2, 1, 1, "")
    ),
    "a compression beyond the end": ([UserMessageAdded("x")], HistorySummarized((), 2, 1, 1, "")),
    "a compression of the instructions": ([InstructionsSet("i", (), "1")], HistorySummarized((), 0, 1, 1, "")),
}  # fmt: skip


class EventsThatCannotFollow(unittest.TestCase):
    def test_each_is_refused_and_changes_nothing(self) -> None:
        for name, (before, event) in IMPOSSIBLE.items():
            with self.subTest(name):
                conversation = folded(*before)
                with self.assertRaises(ValueError):
                    conversation.check(event)
                with self.assertRaises(ValueError):
                    conversation.apply(event)
                self.assertEqual(conversation, folded(*before))


class GeneratedSessions(unittest.TestCase):
    def test_whatever_happens_the_messages_are_what_a_server_takes(self) -> None:
        for seed in generated.seeds(30, 1000):
            rng = random.Random(seed)
            conversation = Conversation()
            for number, event in enumerate(generated.session(rng, 80)):
                conversation.apply(event)
                if not conversation.open_calls:
                    with self.subTest(seed=seed, event=number):
                        self.assertEqual(generated.problem_of(conversation.visible_messages()), "")

    def test_what_is_sent_only_grows_unless_the_generation_says_otherwise(self) -> None:
        for seed in generated.seeds(20, 500):
            conversation = Conversation()
            before, generation = [], 0
            for number, event in enumerate(generated.session(random.Random(seed), 60)):
                conversation.apply(event)
                if conversation.open_calls:
                    continue
                visible = list(conversation.visible_messages())
                if conversation.generation == generation:
                    with self.subTest(seed=seed, event=number):
                        self.assertEqual(visible[: len(before)], before)
                before, generation = visible, conversation.generation


class CostOfARound(unittest.TestCase):
    def test_an_event_takes_as_many_steps_late_in_a_session_as_early(self) -> None:
        conversation = folded(InstructionsSet("i", (), "1"), UserMessageAdded("x"))
        steps = [self._steps(conversation, f"{number}") for number in range(2000)]
        self.assertEqual(steps[10], steps[1999])

    def test_asking_what_is_visible_copies_nothing(self) -> None:
        conversation = folded(UserMessageAdded("x"))
        self.assertIs(conversation.visible_messages(), conversation.visible_messages())

    @staticmethod
    def _steps(conversation: Conversation, id: str) -> int:
        """Count the function calls, of C functions too, that one round takes."""
        count = 0

        def count_one(*_: object) -> None:
            nonlocal count
            count += 1

        events = (reply("", id), result(id))
        sys.setprofile(count_one)
        try:
            for event in events:
                conversation.apply(event)
        finally:
            sys.setprofile(None)
        return count
