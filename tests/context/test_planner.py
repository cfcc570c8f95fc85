from __future__ import annotations

import random
import unittest

from mini_agent.context.compressor import problem_with
from mini_agent.context.planner import SHORTENED_TOKENS, Plan, make_plan, results_to_shorten
from mini_agent.context.tokens import message_tokens, text_tokens
from mini_agent.conversation.conversation import EarlierResult
from mini_agent.conversation.messages import (
    AssistantMessage,
    Message,
    Reminder,
    Summary,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserMessage,
)

INSTRUCTIONS = SystemMessage("Help.")


def exchange(name: str, *sizes: int) -> list[Message]:
    """Return a reply with one call for each size, in tokens, and the results."""
    calls = tuple(ToolCall(f"{name}{number}", "tell", "{}", {}) for number in range(len(sizes)))
    results = [ToolResult(call.id, "tell", "x" * size * 4) for call, size in zip(calls, sizes)]
    return [AssistantMessage(f"I look at {name}.", calls), *results]


def plan_of(messages: list[Message], room: int, recent: int) -> Plan:
    return make_plan(messages, [message_tokens(message) for message in messages], room, recent)


class Plans(unittest.TestCase):
    def test_the_newest_whole_exchanges_are_kept_and_the_rest_is_summarized(self) -> None:
        messages = [
            INSTRUCTIONS,
            UserMessage("task"),
            *exchange("a", 300),
            *exchange("b", 100, 100),
            *exchange("c", 50),
        ]
        plan = plan_of(messages, room=2000, recent=320)
        self.assertEqual(plan.requests, (UserMessage("task"),))
        self.assertEqual(plan.summarized, (2, 3))
        self.assertEqual(plan.kept_from, 4)

    def test_parallel_calls_are_never_parted_from_their_results(self) -> None:
        messages = [INSTRUCTIONS, UserMessage("task"), *exchange("a", 100, 100, 100), *exchange("b", 50)]
        for recent in range(60, 420, 20):
            self.assertIn(plan_of(messages, room=2000, recent=recent).kept_from, (1, 2, 6))

    def test_a_turn_too_long_to_keep_is_split_and_its_request_stays(self) -> None:
        old = [UserMessage("task"), *exchange("a", 100), AssistantMessage("Done.")]
        messages = [INSTRUCTIONS, *old, UserMessage("latest"), *exchange("b", 400), *exchange("c", 100)]
        plan = plan_of(messages, room=2000, recent=200)
        self.assertEqual(plan.requests, (UserMessage("task"), UserMessage("latest")))
        self.assertEqual(plan.kept_from, len(messages) - 2)

    def test_the_other_messages_of_the_user_stay_as_far_as_there_is_room_the_newest_first(self) -> None:
        others = [UserMessage(f"fact {number}: " + "x" * 300) for number in range(8)]
        messages = [INSTRUCTIONS, UserMessage("task"), *others, *exchange("a", 300)]
        messages += [AssistantMessage("Done."), UserMessage("latest " * 12)]
        plan = plan_of(messages, room=2000, recent=100)
        self.assertEqual(plan.requests, (UserMessage("task"), *others[-3:]))
        self.assertEqual(plan.summarized, (2, 3, 4, 5, 6, 10, 11))

    def test_reminders_and_summaries_are_not_the_users_words(self) -> None:
        messages = [INSTRUCTIONS, Summary("old"), UserMessage("task"), Reminder("no more tools"), *exchange("a", 500)]
        messages += [AssistantMessage("Done."), Reminder("once more")]
        plan = plan_of(messages, room=900, recent=50)
        self.assertEqual(plan.requests, (UserMessage("task"),))
        self.assertEqual(plan.summarized, (1, 3, 4, 5))

    def test_an_earlier_summary_is_always_taken_up_by_the_next(self) -> None:
        messages = [INSTRUCTIONS, UserMessage("task"), Summary("old"), *exchange("a", 10), *exchange("b", 10)]
        self.assertEqual(plan_of(messages, room=2000, recent=1000).kept_from, 3)

    def test_a_request_is_cut_in_the_middle_only_when_it_alone_is_over_its_share(self) -> None:
        task, latest = UserMessage("a" * 3000 + "b" * 3000), UserMessage("c" * 400)
        messages = [INSTRUCTIONS, task, *exchange("a", 500), latest]
        self.assertEqual(plan_of(messages, room=3400, recent=100).requests, (task,))
        (cut,) = plan_of(messages, room=2000, recent=100).requests
        self.assertLessEqual(message_tokens(cut), 1000 - message_tokens(latest))
        self.assertTrue(cut.text.startswith("a" * 1000) and cut.text.endswith("b" * 500) and "left out" in cut.text)

    def test_a_cut_request_counts_as_summarized_and_is_not_cut_a_second_time(self) -> None:
        messages = [INSTRUCTIONS, UserMessage("a" * 9000)]
        plan = plan_of(messages, room=2000, recent=100)
        self.assertEqual((plan.summarized, plan.kept_from), ((1,), 2))
        self.assertEqual(plan_of([INSTRUCTIONS, *plan.requests], room=2000, recent=100).requests, ())

    def test_a_request_cut_before_is_cut_at_the_same_place(self) -> None:
        for seed in range(100):
            chance = random.Random(seed)
            text = "".join("x" * chance.choice([3, 30, 900]) + f" {number}\n" for number in range(30))
            messages: list[Message] = [INSTRUCTIONS, UserMessage(text), *exchange("a", 500)]
            for room in sorted((chance.randrange(192, 2500) for _ in range(4)), reverse=True):
                with self.subTest(seed=seed, room=room):
                    messages[1:2] = plan_of(messages, room=room, recent=1).requests
                    self.assertEqual(problem_with([UserMessage(text)], messages[1:2]), "", messages[1])

    def test_large_results_of_the_last_exchange_are_shortened_so_that_it_fits(self) -> None:
        messages = [INSTRUCTIONS, UserMessage("task"), *exchange("a", 100), *exchange("b", 50, 2000, 3000)]
        plan = plan_of(messages, room=2000, recent=100)
        self.assertEqual(plan.kept_from, 4)
        self.assertEqual([call_id for call_id, _ in plan.shortened], ["b1", "b2"])
        kept = [*exchange("b", 50), *(ToolResult(call_id, "tell", text) for call_id, text in plan.shortened)]
        self.assertLessEqual(sum(map(message_tokens, kept)), 2000 - 2000 // 6)

    def test_an_exchange_in_which_the_model_itself_wrote_too_much_is_summarized(self) -> None:
        call = ToolCall("b0", "apply_patch", "x" * 9000, None)
        messages = [INSTRUCTIONS, UserMessage("task"), AssistantMessage("", (call,)), ToolResult("b0", "tell", "done")]
        plan = plan_of(messages, room=2000, recent=500)
        self.assertEqual((plan.kept_from, plan.summarized, plan.shortened), (4, (2, 3), ()))

    def test_steered_and_short_messages_do_not_displace_the_request_that_is_worked_on(self) -> None:
        task, request = UserMessage("the task " * 20), UserMessage("now write the manual: " + "x" * 900)
        steered = UserMessage("and mind the spelling of all names in it, please " * 3, steered=True)
        short = UserMessage("go on")
        messages = [INSTRUCTIONS, task, *exchange("a", 300), AssistantMessage("Done."), request, *exchange("b", 300)]
        messages += [steered, *exchange("c", 300), AssistantMessage("Well?"), short, *exchange("d", 300)]
        plan = plan_of(messages, room=1400, recent=50)
        self.assertEqual(plan.requests, (task, request, steered, short))
        self.assertEqual(messages[plan.turn_from], request)

    def test_a_session_of_short_messages_works_on_the_first(self) -> None:
        messages = [INSTRUCTIONS, UserMessage("hi"), AssistantMessage("Hello."), UserMessage("go on")]
        self.assertEqual(plan_of(messages, room=400, recent=50).turn_from, 1)

    def test_no_plan_is_larger_than_its_room(self) -> None:
        for seed in range(500):
            chance = random.Random(seed)
            messages: list[Message] = [INSTRUCTIONS, UserMessage("t" * chance.randrange(4000))]
            for number in range(chance.randrange(12)):
                sizes = [chance.randrange(300) for _ in range(chance.randrange(1, 4))]
                kinds = [[UserMessage("u" * chance.randrange(3000))], [Summary("s" * 300)], [Reminder("r")]]
                messages += chance.choice([exchange(f"{number}_", *sizes)] * 3 + kinds)
            room, recent = chance.randrange(192, 4000), chance.randrange(1, 2000)
            tokens = [message_tokens(message) for message in messages]
            with self.subTest(seed=seed):
                plan = make_plan(messages, tokens, room, recent)
                short = dict(plan.shortened)
                tail = [
                    ToolResult(m.call_id, m.tool_name, short.get(m.call_id, m.text)) if isinstance(m, ToolResult) else m
                    for m in messages[plan.kept_from :]
                ]
                taken = sum(map(message_tokens, [*plan.requests, *tail])) + plan.summary_tokens
                self.assertLessEqual(taken, room)
                self.assertNotIsInstance([*messages, None][plan.kept_from], ToolResult)


def result(number: int, tokens: int, call: str = "", compressions: int = 0) -> EarlierResult:
    text = f"first of {number}\n" + "x" * (tokens * 4 - 40) + f"\nlast of {number}"
    return EarlierResult(str(number), "tell", f"tell {call or number}", text, compressions)


class Shortening(unittest.TestCase):
    def shortened(self, results: list[EarlierResult], excess: int) -> dict[str, str]:
        """Return what is shortened where the results 0 to 4 are old, and 8 and 9 are unread."""
        return dict(results_to_shorten(results, set("01234"), {"8", "9"}, excess))

    def test_the_oldest_large_results_go_to_head_and_tail_with_the_call_that_brings_them_back(self) -> None:
        results = [result(0, 100), result(1, 900), result(2, 900), result(3, 900)]
        shortened = self.shortened(results, 1000)
        self.assertEqual(list(shortened), ["1", "2"])
        self.assertTrue(shortened["1"].startswith("first of 1\n") and shortened["1"].endswith("\nlast of 1"))
        self.assertIn("To see all of it, call again: tell 1 …]", shortened["1"])
        self.assertLessEqual(text_tokens(shortened["1"]), SHORTENED_TOKENS)

    def test_a_result_that_a_later_identical_call_repeats_goes_first_however_new(self) -> None:
        results = [result(0, 900), result(5, 900, "same"), result(6, 900, "same")]
        shortened = self.shortened(results, 500)
        self.assertEqual(list(shortened), ["5"])
        self.assertIn("The same call was made again", shortened["5"])

    def test_what_is_unread_recent_or_was_shortened_before_stays(self) -> None:
        results = [result(0, 900, "same", 1), result(5, 900), result(8, 900, "same"), result(9, 900, "same")]
        self.assertEqual(self.shortened(results, 1), {})

    def test_where_it_would_not_be_enough_nothing_is_shortened(self) -> None:
        results = [result(0, 900), result(1, 900)]
        self.assertEqual(len(self.shortened(results, 1400)), 2)
        self.assertEqual(self.shortened(results, 1600), {})

    def test_a_call_too_long_to_be_named_is_told_by_its_tool(self) -> None:
        (text,) = self.shortened([result(0, 900, "x" * 400)], 1).values()
        self.assertIn("make the same call of tell again", text)
