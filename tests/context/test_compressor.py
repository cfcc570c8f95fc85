from __future__ import annotations

import random
import tempfile
import unittest
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

from mini_agent.agent.guards import TurnLimits
from mini_agent.agent.runner import AgentRunner, TurnResult
from mini_agent.context.budget import Budget
from mini_agent.context.compressor import Compressor, problem_with
from mini_agent.context.summarizer import WrittenSummary
from mini_agent.context.tokens import TokenCounter
from mini_agent.conversation.events import (
    AssistantMessageAdded,
    Event,
    FileChange,
    FilesChanged,
    HistorySummarized,
    InstructionsSet,
    Notice,
    ToolOutputCompressed,
    ToolResultAdded,
    UserMessageAdded,
)
from mini_agent.conversation.messages import (
    AssistantMessage,
    Message,
    Summary,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from mini_agent.model.chat_model import ContextOverflow, ModelReply, ServerFailed
from mini_agent.session.event_log import EventLog
from mini_agent.session.session import Session
from mini_agent.tools.toolbox import Toolbox
from tests.context.counting_server import CountingServer, TellTool, own_words, tell, words


class WithSession(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.toolbox = Toolbox([TellTool()])
        self.session = Session(EventLog(Path(folder.name) / "session.jsonl"))
        self.addCleanup(self.session.log.close)
        self.conversation = self.session.conversation
        self.session.record(InstructionsSet("Help.", self.toolbox.schemas(), "1"))
        self.events: list[Event] = []
        self.session.listen(lambda entry: self.events.append(entry.event))
        self.asked = 0
        self.summary = "## Done\nmuch"

    def ask(self, messages: Sequence[Message]) -> ModelReply:
        self.asked += 1
        return ModelReply(AssistantMessage(self.summary))

    def say(self, text: str) -> None:
        self.session.record(UserMessageAdded(text))

    def exchange(self, name: str, *sizes: int, arguments_text: str = "{}") -> None:
        """Record a reply with calls, and results of so many tokens."""
        calls = tuple(ToolCall(f"{name}{number}", "tell", arguments_text, {}) for number in range(len(sizes)))
        self.session.record(AssistantMessageAdded(AssistantMessage("I look.", calls), None, "", ""))
        for call, size in zip(calls, sizes):
            text = words(random.Random(size), size * 4)
            self.session.record(ToolResultAdded(call.id, "tell", text, False, f"tell {call.id}"))

    def compressor(self, window_tokens: int, enabled: bool = True, shortening: bool = False) -> Compressor:
        return Compressor(Budget.for_window(window_tokens), TokenCounter(), enabled, shortening)

    def compress(self, compressor: Compressor, overflow: ContextOverflow | None = None) -> bool:
        return compressor(self.conversation, self.session.record, self.ask, overflow)

    def tokens(self) -> int:
        return TokenCounter().count(self.conversation)

    def found(self, kind: type) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


class Compressions(WithSession):
    def test_under_the_line_nothing_happens_and_above_it_one_compression(self) -> None:
        compressor = self.compressor(4096)
        self.say("the task")
        done = False
        for number in range(30):
            over = self.tokens() > 3072
            self.assertEqual(self.compress(compressor), over)
            done = done or over
            self.assertLessEqual(self.tokens(), 3072)
            self.exchange(f"{number}_", 300)
        self.assertTrue(done)
        self.assertEqual(self.asked, len(self.found(HistorySummarized)))

    def test_what_stays_is_the_task_then_the_summary_then_the_newest(self) -> None:
        self.say("the task")
        for number in range(10):
            self.exchange(f"{number}_", 300)
        self.assertTrue(self.compress(self.compressor(4096)))
        visible = self.conversation.visible_messages()
        self.assertEqual(visible[1], UserMessage("the task"))
        self.assertIsInstance(visible[2], Summary)
        self.assertIn("## Done\nmuch", visible[2].text)
        self.assertEqual([m.call_id for m in visible if isinstance(m, ToolResult)], ["6_0", "7_0", "8_0", "9_0"])

    def test_notices_tell_what_is_kept_and_summarized_and_why_and_the_tokens_before_and_after(self) -> None:
        self.say("the task")
        for number in range(10):
            self.exchange(f"{number}_", 300)
        before = self.tokens()
        self.compress(self.compressor(4096))
        first, last = self.found(Notice)
        self.assertRegex(
            first.text, rf"{before:,} tokens.*too long.*Summarized: 12 messages.*Kept: 1 of .*newest 8 mess"
        )
        self.assertIn(f"{before:,} → {self.tokens():,} tokens", last.text)
        (event,) = self.found(HistorySummarized)
        self.assertEqual((event.tokens_before, event.tokens_after), (before, self.tokens()))

    def test_the_next_summary_takes_the_place_of_the_one_before(self) -> None:
        compressor = self.compressor(4096)
        self.say("the task")
        for number in range(40):
            self.exchange(f"{number}_", 300)
            self.compress(compressor)
        self.assertGreater(self.asked, 2)
        self.assertEqual(sum(isinstance(m, Summary) for m in self.conversation.visible_messages()), 1)
        self.assertEqual(own_words(self.conversation.visible_messages()), ["the task"])

    def test_switched_off_only_the_user_compresses(self) -> None:
        compressor = self.compressor(2048, enabled=False)
        self.say("the task")
        for number in range(10):
            self.exchange(f"{number}_", 300)
        self.assertFalse(self.compress(compressor))
        self.assertFalse(self.compress(compressor, ContextOverflow("too large", 2048)))
        self.assertEqual((self.events[-1:], self.asked), ([self.events[-1]], 0))
        self.assertTrue(compressor.compress_now(self.conversation, self.session.record, self.ask))

    def test_the_user_can_compress_what_is_far_below_the_line(self) -> None:
        self.say("the task")
        for number in range(4):
            self.exchange(f"{number}_", 300)
        before = self.tokens()
        self.assertTrue(self.compressor(128_000).compress_now(self.conversation, self.session.record, self.ask))
        self.assertLess(self.tokens(), before * 2 // 3)

    def test_where_there_is_nothing_to_summarize_nobody_is_asked(self) -> None:
        compressor = self.compressor(128_000)
        self.say("the task")
        self.assertFalse(compressor.compress_now(self.conversation, self.session.record, self.ask))
        self.session.record(AssistantMessageAdded(AssistantMessage("Done."), None, "", ""))
        self.assertFalse(compressor.compress_now(self.conversation, self.session.record, self.ask))
        self.assertEqual(self.asked, 0)

    def test_a_compression_that_would_not_help_is_not_tried_again_until_there_is_something_new(self) -> None:
        compressor = self.compressor(128_000)
        self.say("the task")
        for number in range(2):
            self.exchange(f"{number}_", 300)
        events = len(self.events)
        with mock.patch("mini_agent.context.compressor.problem_with", return_value="for the test"):
            for _ in range(3):
                self.assertFalse(compressor.compress_now(self.conversation, self.session.record, self.ask))
        self.assertEqual(self.asked, 1)
        self.assertFalse(compressor.compress_now(self.conversation, self.session.record, self.ask))
        self.assertEqual([type(event) for event in self.events[events:]], [Notice, Notice])
        self.exchange("new", 300)
        self.assertTrue(compressor.compress_now(self.conversation, self.session.record, self.ask))

    def test_an_earlier_summary_alone_is_not_summarized_again(self) -> None:
        compressor, self.summary = self.compressor(128_000), "word " * 900
        self.say("the task")
        for number in range(3):
            self.exchange(f"{number}_", 2000)
        self.assertTrue(compressor.compress_now(self.conversation, self.session.record, self.ask))
        self.assertFalse(compressor.compress_now(self.conversation, self.session.record, self.ask))
        self.assertEqual(self.asked, 1)

    def test_a_summary_that_would_make_it_larger_replaces_nothing(self) -> None:
        self.say("the task")
        for number in range(10):
            self.exchange(f"{number}_", 300)
        before = list(self.conversation.visible_messages())
        with mock.patch("mini_agent.context.compressor.summarize", return_value=WrittenSummary("x" * 20_000)):
            self.assertFalse(self.compress(self.compressor(4096)))
        self.assertEqual(list(self.conversation.visible_messages()), before)
        self.assertIn("was not compressed", self.found(Notice)[-1].text)

    def test_an_interrupted_compression_leaves_everything_as_it_was(self) -> None:
        def ask(messages: Sequence[Message]) -> ModelReply:
            raise KeyboardInterrupt

        self.say("the task")
        for number in range(10):
            self.exchange(f"{number}_", 300)
        before = list(self.conversation.visible_messages())
        with self.assertRaises(KeyboardInterrupt):
            self.compressor(4096)(self.conversation, self.session.record, ask)
        self.assertEqual(list(self.conversation.visible_messages()), before)

    def test_a_failing_model_is_told_and_the_conversation_is_compressed_all_the_same(self) -> None:
        def ask(messages: Sequence[Message]) -> ModelReply:
            raise ServerFailed("it is down")

        self.say("the task")
        for number in range(10):
            self.exchange(f"{number}_", 300)
        self.assertTrue(self.compressor(4096)(self.conversation, self.session.record, ask))
        self.assertIn("without the model: it is down", self.found(Notice)[-1].text)
        self.assertLess(self.tokens(), 3072)

    def test_instructions_that_leave_no_room_are_told_once_and_with_numbers(self) -> None:
        self.session.record(InstructionsSet("x" * 7000, self.toolbox.schemas(), "2"))
        compressor = self.compressor(2048)
        self.say("the task")
        for number in range(5):
            self.exchange(f"{number}_", 50)
            self.assertFalse(self.compress(compressor))
        (notice,) = self.found(Notice)
        self.assertRegex(notice.text, r"take about 1,8\d\d of the window's 2,048 tokens")

    def test_large_instructions_raise_the_line_and_do_not_stop_the_session(self) -> None:
        self.session.record(InstructionsSet("x" * 5400, self.toolbox.schemas(), "2"))
        compressor = self.compressor(2048)
        self.say("the task")
        for number in range(30):
            self.exchange(f"{number}_", 80)
            self.compress(compressor)
            self.assertLess(self.tokens(), 1950)
        self.assertLess(self.asked, 29)

    def test_after_three_useless_ones_it_says_so_and_tries_no_more_unasked(self) -> None:
        compressor = self.compressor(4096)
        self.say("the task")
        for number in range(10):
            self.exchange(f"{number}_", 300)
        with mock.patch("mini_agent.context.compressor.problem_with", return_value="for the test"):
            for number in range(6):
                self.exchange(f"more{number}_", 300)
                self.assertFalse(self.compress(compressor))
        self.assertEqual(sum("was not compressed" in notice.text for notice in self.found(Notice)), 3)
        self.assertIn("3 compressions did not help", self.found(Notice)[-1].text)
        self.assertFalse(self.compress(compressor))
        self.assertTrue(compressor.compress_now(self.conversation, self.session.record, self.ask))
        for number in range(10):
            self.exchange(f"last{number}_", 300)
        self.assertFalse(self.compress(compressor))
        self.assertTrue(self.compress(compressor, ContextOverflow("too large", 4096)))

    def test_a_compression_that_would_stay_over_the_line_replaces_nothing(self) -> None:
        self.say("the task")
        for number in range(10):
            self.exchange(f"{number}_", 300)
        with mock.patch("mini_agent.context.compressor.summarize", return_value=WrittenSummary("x" * 7_300)):
            self.assertFalse(self.compress(self.compressor(4096)))
        self.assertRegex(self.found(Notice)[-1].text, "not compressed: it would take 3,1.. tokens instead of 3,256")

    def test_what_would_be_done_can_be_asked_ahead(self) -> None:
        compressor = self.compressor(4096)
        self.say("the task")
        for number in range(10):
            self.exchange(f"{number}_", 300)
        ahead = compressor.outlook(self.conversation)
        self.assertTrue(compressor.compress_now(self.conversation, self.session.record, self.ask))
        self.assertIn(f"you asked for it. {ahead}", self.found(Notice)[0].text)
        self.assertIn("the first part of this turn among them", ahead)

    def test_a_turn_of_which_nothing_is_summarized_is_not_said_to_be_split(self) -> None:
        self.say("the task")
        for number in range(10):
            self.exchange(f"{number}_", 300)
        self.session.record(AssistantMessageAdded(AssistantMessage("Done."), None, "", ""))
        self.say("and now something else, which is long enough to be a request of its own " * 2)
        self.exchange("new", 300)
        self.assertTrue(self.compress(self.compressor(4096)))
        self.assertNotIn("first part of this turn", self.found(Notice)[0].text)

    def test_the_files_that_were_changed_stand_in_the_summary(self) -> None:
        self.say("the task")
        for number in range(10):
            self.exchange(f"{number}_", 300)
            self.session.record(FilesChanged((FileChange(f"file_{number}.py", None, "1"),)))
        self.compress(self.compressor(4096))
        self.assertIn("Changed: file_0.py, ", self.conversation.visible_messages()[2].text)
        self.assertIn(", file_9.py", self.conversation.visible_messages()[2].text)

    def test_the_server_counts_decide_and_not_the_estimate(self) -> None:
        for factor, is_compressed in ((0.6, False), (1.0, False), (1.5, True)):
            with self.subTest(factor=factor):
                self.setUp()
                compressor, counted = self.compressor(4096), TokenCounter()
                self.say("the task")
                for number in range(8):
                    self.exchange(f"{number}_", 300)
                usage = Usage(int(counted.estimate(self.conversation) * factor), 9)
                self.session.record(AssistantMessageAdded(AssistantMessage("So far."), usage, "", ""))
                self.assertEqual(self.compress(compressor), is_compressed)
                self.doCleanups()


class Shortening(WithSession):
    def compressor(self, window_tokens: int, enabled: bool = True, shortening: bool = True) -> Compressor:
        return super().compressor(window_tokens, enabled, shortening)

    def test_where_old_results_alone_bring_it_under_the_target_nothing_is_summarized(self) -> None:
        compressor = self.compressor(8192)
        self.say("the task")
        for number in range(10):
            self.exchange(f"{number}_", 700)
        self.assertTrue(self.compress(compressor))
        self.assertEqual((self.asked, self.found(HistorySummarized)), (0, []))
        shortened = self.found(ToolOutputCompressed)
        self.assertEqual([event.call_id for event in shortened], [f"{number}_0" for number in range(len(shortened))])
        self.assertLessEqual(self.tokens(), compressor.lines(self.conversation).target)
        self.assertRegex(self.found(Notice)[-1].text, rf"it has grown too long \({len(shortened)}\): 7,.* tokens")

    def test_each_result_is_shortened_once_and_between_two_steps_there_is_room_to_grow(self) -> None:
        compressor, steps = self.compressor(8192), []
        self.say("the task")
        for number in range(60):
            self.exchange(f"{number}_", 700)
            if self.compress(compressor):
                steps.append(number)
        self.assertGreater(self.asked, 0)  # what cannot be shortened any more is summarized in the end
        self.assertLess(self.asked, len(steps) / 1.5)
        self.assertTrue(all(later - one >= 2 for one, later in zip(steps, steps[1:])), steps)
        ids = [event.call_id for event in self.found(ToolOutputCompressed)]
        self.assertEqual(len(ids), len(set(ids)))

    def test_the_user_who_compresses_far_below_the_line_gets_a_summary(self) -> None:
        self.say("the task")
        for number in range(10):
            self.exchange(f"{number}_", 700)
        self.assertTrue(self.compressor(128_000).compress_now(self.conversation, self.session.record, self.ask))
        self.assertEqual(len(self.found(HistorySummarized)), 1)


class LargeParts(WithSession):
    def test_large_results_of_the_only_exchange_are_cut_without_asking_the_model(self) -> None:
        self.say("the task")
        self.exchange("a", 30, 5000, 5000)
        self.assertTrue(self.compress(self.compressor(4096)))
        self.assertEqual([event.call_id for event in self.found(ToolOutputCompressed)], ["a1", "a2"])
        self.assertEqual((self.asked, self.found(HistorySummarized)), (0, []))
        self.assertLess(self.tokens(), 3072)

    def test_where_cutting_results_is_enough_nothing_is_summarized(self) -> None:
        self.say("the task")
        self.exchange("a", 200)
        self.exchange("b", 5000)
        self.assertTrue(self.compress(self.compressor(4096)))
        self.assertEqual((self.asked, self.found(HistorySummarized)), (0, []))
        self.assertLess(self.tokens(), 3072)

    def test_an_exchange_with_a_patch_too_large_to_send_is_summarized(self) -> None:
        self.say("the task")
        self.exchange("a", 10, arguments_text="x" * 20_000)
        self.assertTrue(self.compress(self.compressor(4096)))
        self.assertLess(self.tokens(), 3072)

    def test_a_request_larger_than_the_window_is_cut_in_the_middle_with_a_mark(self) -> None:
        request = "HEAD" + "x" * 40_000 + "TAIL"
        self.say(request)
        self.assertTrue(self.compress(self.compressor(4096)))
        (text,) = own_words(self.conversation.visible_messages())
        self.assertTrue(text.startswith("HEAD") and text.endswith("TAIL") and "are left out here" in text)

    def test_a_request_with_lone_surrogates_is_cut_like_any_other(self) -> None:
        self.say("\udc80" + "x\udc80" * 20_000 + "y")
        self.assertTrue(self.compress(self.compressor(4096)))


class Overflows(WithSession):
    def test_the_window_that_the_server_names_is_taken_over(self) -> None:
        compressor = self.compressor(32_768)
        self.say("the task")
        for number in range(20):
            self.exchange(f"{number}_", 300)
        self.assertTrue(self.compress(compressor, ContextOverflow("too large", 4096)))
        self.assertEqual(compressor.budget, Budget.for_window(32_768).shrunk_to(4096))
        self.assertLess(self.tokens(), 3072)
        self.assertIn("4,096", self.found(Notice)[0].text)

    def test_a_refusal_without_a_number_makes_it_smaller_all_the_same(self) -> None:
        compressor = self.compressor(32_768)
        self.say("the task")
        for number in range(20):
            self.exchange(f"{number}_", 300)
        before = self.tokens()
        self.assertTrue(self.compress(compressor, ContextOverflow("too large")))
        self.assertLess(compressor.budget.window_tokens, before)
        self.assertLess(self.tokens(), before // 2)

    def test_a_named_window_larger_than_what_was_refused_is_not_believed(self) -> None:
        compressor = self.compressor(32_768)
        self.say("the task")
        for number in range(20):
            self.exchange(f"{number}_", 300)
        before = self.tokens()
        self.assertTrue(self.compress(compressor, ContextOverflow("too large", 128_000)))
        self.assertLess(compressor.budget.window_tokens, before * 2)

    def test_where_nothing_can_be_made_smaller_it_says_so(self) -> None:
        self.say("the task")
        self.assertFalse(self.compress(self.compressor(32_768), ContextOverflow("too large", 2048)))
        self.assertEqual(own_words(self.conversation.visible_messages()), ["the task"])


class Checks(unittest.TestCase):
    def test_whatever_a_compression_would_break_is_found(self) -> None:
        task, latest = UserMessage("the task " * 30), UserMessage("the latest")
        reply = AssistantMessage("", (ToolCall("1", "tell", "{}", {}), ToolCall("2", "tell", "{}", {})))
        one, two = ToolResult("1", "tell", "a"), ToolResult("2", "tell", "b")
        before = [task, reply, one, two, latest]
        cut = UserMessage(task.text[:90] + "\n[… 90 of 270 bytes are left out here …]\n" + task.text[-90:])
        for after in ([task, latest], [task, reply, one, two, latest], [cut, latest]):
            self.assertEqual(problem_with(before, after), "")
        for broken in (
            [task, one, two, latest],
            [task, reply, one, latest],
            [task, reply, two, one, latest],
            [task, latest, reply, one],
            [latest],
            [task],
            [latest, task],
            [UserMessage("another task"), latest],
            [UserMessage(task.text[:90]), latest],
            [],
        ):
            self.assertNotEqual(problem_with(before, broken), "", broken)


class Sessions(WithSession):
    def run_turns(
        self, server: CountingServer, compressor: Compressor, requests: Sequence[str], tool: TellTool | None = None
    ) -> list[TurnResult]:
        self.toolbox = Toolbox([tool or TellTool()], result_limit_bytes=lambda: compressor.budget.result_limit_bytes)
        runner = AgentRunner(server, self.toolbox, self.session, compressor, limits=TurnLimits(max_rounds=300))
        return [runner.run_turn(request) for request in requests]

    def run_400_rounds(self, facts: Sequence[str], in_results: bool, shortening: bool) -> CountingServer:
        """Run 400 rounds in a window of 8,192; the facts come at random moments, from the user or in tool results.

        The model's summary holds the facts that it is shown, and its last answer those that it can see.
        """
        chance = random.Random(len(facts) + in_results)
        moments = sorted(chance.sample(range(2, 380, 2), len(facts)))
        turn_ends = [*(moment - 1 for moment in moments[1:]), 400]
        rounds = iter(range(1, 1000))

        def seen(texts: Sequence[str]) -> str:
            return "; ".join(fact for fact in facts if any(fact in text for text in texts))

        def answer(messages: Sequence[Message]) -> AssistantMessage:
            number = next(rounds)
            if number in turn_ends:
                return AssistantMessage(seen([message.text for message in messages]) or "So far nothing.")
            return AssistantMessage("I go on.", (tell(number, chance.choice([50, 2000, 30_000])),))

        def results(number: int) -> str:
            return f"{facts[moments.index(number)]}\n" if in_results and number in moments else ""

        server = CountingServer(8192, answer, lambda: f"## Exact values\n{seen([server.summary_requests[-1][1].text])}")
        requests = [f"Look further, part {number} of all." if in_results else fact for number, fact in enumerate(facts)]
        outcomes = self.run_turns(server, self.compressor(8192, shortening=shortening), requests, TellTool(results))
        self.assertEqual({result.status for result in outcomes}, {"completed"})
        self.assertEqual((len(server.sizes), server.refusals), (400, 0))
        self.assertEqual(outcomes[-1].answer, "; ".join(facts))
        self.assertLess(len(server.summary_requests), 130)
        return server

    def test_400_rounds_in_a_window_of_8192_end_with_what_the_user_told_along_the_way(self) -> None:
        facts = [f"fact {number} is {number * 7919 % 1000}" for number in range(10)]
        server = self.run_400_rounds(facts, in_results=False, shortening=False)
        self.assertEqual([text for text in own_words(server.requests[-1]) if text in facts], facts)

    def test_and_with_the_facts_of_tool_results_that_the_summarizer_was_shown(self) -> None:
        facts = [f"fact {number} is {number * 7919 % 1000}" for number in range(10)]
        self.run_400_rounds(facts, in_results=True, shortening=True)

    def test_a_server_with_a_smaller_window_than_was_thought_is_asked_once_more(self) -> None:
        numbers = iter(range(1, 31))
        server = CountingServer(
            4096,
            lambda m: (
                AssistantMessage("on", (tell(n, 4000),)) if (n := next(numbers)) < 30 else AssistantMessage("end")
            ),
        )
        (result,) = self.run_turns(server, self.compressor(128_000), ["the task"])
        self.assertEqual((result.status, result.answer, server.refusals), ("completed", "end", 1))

    def test_between_two_compressions_each_request_begins_with_the_one_before(self) -> None:
        numbers = iter(range(1, 61))
        server = CountingServer(
            4096,
            lambda m: AssistantMessage("on", (tell(n, 900),)) if (n := next(numbers)) < 60 else AssistantMessage("end"),
        )
        self.run_turns(server, self.compressor(4096), ["the task"])
        broken = sum(later[: len(one)] != one for one, later in zip(server.requests, server.requests[1:]))
        self.assertEqual(broken, len(self.found(HistorySummarized)))
        self.assertGreater(broken, 0)
