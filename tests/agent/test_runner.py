from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import threading
import time
import tracemalloc
import unittest
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Callable
from unittest import mock

import mini_agent
from mini_agent.agent.guards import TurnLimits
from mini_agent.agent.runner import CLOSING_REMINDER, AgentRunner, TurnResult
from mini_agent.conversation.events import (
    AssistantMessageAdded,
    FileChange,
    FilesChanged,
    FilesWillChange,
    HistorySummarized,
    Notice,
    ToolResultAdded,
    TurnEnded,
    UserMessageAdded,
)
from mini_agent.conversation.messages import JsonObject, Message, Reminder, Summary, ToolResult, Usage, UserMessage
from mini_agent.model.chat_model import ContextOverflow, ModelReply, ServerFailed
from mini_agent.model.scripted import Step
from mini_agent.session.event_log import EventLog, LogEntry
from mini_agent.session.session import Session
from mini_agent.tools.tool import ToolOutcome
from tests import generated, scripted
from tests.scripted import SmallTool, call, said


class TurnTestCase(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.session = scripted.open_session(self.folder / "session.jsonl")

    def run_turn(self, *steps: Step, **options: Any) -> TurnResult:
        return scripted.runner(self.session, steps, **options).run_turn("do it")

    def visible(self) -> list[Message]:
        return list(self.session.conversation.visible_messages())

    def results(self) -> list[str]:
        return [message.text for message in self.visible() if isinstance(message, ToolResult)]

    def assertHistoryWhole(self, message: object = None) -> None:
        """Check that no call lacks its result, that no turn is open, and that the log says what memory says."""
        self.assertEqual(generated.problem_of(self.visible()), "", message)
        self.assertFalse(self.session.conversation.turn_is_open, message)
        replayed = Session(EventLog(self.session.log.path))
        self.assertEqual(replayed.conversation, self.session.conversation, message)


class OneTurn(TurnTestCase):
    def test_an_answer_without_calls_ends_the_turn(self) -> None:
        result = self.run_turn(said("Hello.", usage=Usage(7, 2)))
        self.assertEqual(
            (result.status, result.answer, result.rounds, result.usage), ("completed", "Hello.", 1, Usage(7, 2))
        )
        self.assertEqual([type(event) for event in scripted.recorded(self.session)], [
            UserMessageAdded, AssistantMessageAdded, TurnEnded
        ])  # fmt: skip

    def test_calls_run_in_order_and_their_results_go_back(self) -> None:
        seen: list[Message] = []

        def look(messages: Sequence[Message], tools: Sequence[JsonObject]) -> ModelReply:
            seen.extend(messages)
            return said("Done.")

        self.run_turn(said("I look.", call("echo", text="1"), call("echo", text="2")), look)
        self.assertEqual([message.text for message in seen], ["do it", "I look.", "1", "2"])

    def test_whatever_is_wrong_with_a_call_the_model_is_told_and_the_turn_goes_on(self) -> None:
        calls = (call("no_such_tool"), call("echo", wrong=1), call("failing", text="refuse"), call("failing"))
        result = self.run_turn(said("", *calls), said("Done."))
        self.assertEqual(result.status, "completed")
        codes = [text.split(":")[0] for text in self.results()]
        self.assertEqual(
            codes, ["Error [unknown_tool]", "Error [bad_arguments]", "Error [refused]", "Error [internal]"]
        )
        self.assertHistoryWhole()

    def test_a_tool_over_its_time_is_stopped_and_the_turn_goes_on(self) -> None:
        if not hasattr(signal, "setitimer"):
            self.skipTest("needs an alarm")
        slow = scripted.sleeping()
        slow.time_limit_seconds = 0.05
        self.run_turn(said("", call("sleeping", text="60")), said("Done."), tools=[slow])
        self.assertRegex(self.results()[0], r"^Error \[timeout\]")

    def test_a_failed_call_that_had_changed_files_says_which(self) -> None:
        def half_done(text: str) -> ToolOutcome:
            change = FileChange("a.py", None, "0" * 64)
            self.session.record(FilesWillChange((change,)))
            self.session.record(FilesChanged((change,)))
            raise ZeroDivisionError

        self.run_turn(said("", call("half")), said("Done."), tools=[SmallTool("half", half_done)])
        self.assertRegex(self.results()[0], "It had changed already: a.py.$")

    def test_what_the_project_says_about_a_file_is_added_to_the_result_that_met_it(self) -> None:
        reading = SmallTool("reading", lambda text: ToolOutcome(text, read_paths=(Path(text),)))
        self.run_turn(
            said("", call("reading", text="/a")),
            said("Done."),
            tools=[reading],
            notes_for=lambda paths: f" (of {paths[0].as_posix()}: be careful)" if paths else "",
        )
        self.assertEqual(self.results(), ["/a (of /a: be careful)"])

    def test_calls_under_one_id_get_ids_of_their_own(self) -> None:
        self.run_turn(said("", call("echo"), call("echo")), said("", call("echo")), said("Done."))
        self.assertEqual(len(self.session.conversation.call_ids), 3)
        self.assertHistoryWhole()

    def test_a_hidden_call_is_not_sent_again(self) -> None:
        self.run_turn(said("", call("echo", text="long")), said("", call("shorten")), said("Done."))
        self.assertEqual([message.text for message in self.visible()], ["do it", "", "short", "Done."])

    def test_text_beside_a_hidden_call_is_not_the_last_word_of_a_request(self) -> None:
        self.run_turn(said("", call("echo", text="long")), said("I shorten.", call("shorten")), said("Done."))
        texts = [message.text for message in self.visible()]
        self.assertEqual(texts, ["do it", "", "short", "I shorten.", "Go on.", "Done."])

    def test_what_a_summary_costs_counts_for_the_turn(self) -> None:
        def summarize(conversation: Any, record: Any, ask: Any, overflow: Any = None) -> bool:
            ask([])
            return False

        steps = [said("", call("echo", text=str(number))) for number in range(9)]
        result = self.run_turn(*steps, make_room=summarize, limits=TurnLimits(max_tokens=20))
        self.assertEqual((result.kind, result.rounds), ("token_limit", 3))


class CallsWrittenAsText(TurnTestCase):
    CALL = '```json\n{"name": "echo", "arguments": {"text": "a"}}\n```'

    def reminders(self) -> list[str]:
        return [message.text for message in self.visible() if isinstance(message, Reminder)]

    def test_a_call_that_is_right_and_only_reads_runs_as_a_real_one(self) -> None:
        result = self.run_turn(said(f"I look.\n{self.CALL}"), said("Done."))
        self.assertEqual((result.answer, self.results(), self.reminders()), ("Done.", ["a"], []))
        self.assertEqual([call.name for call in self.visible()[1].tool_calls], ["echo"])
        self.assertEqual(self.visible()[1].text, "I look.")
        self.assertHistoryWhole()

    def test_a_call_that_does_more_than_read_is_not_run_and_the_model_is_told(self) -> None:
        writer = SmallTool("write", ToolOutcome)
        writer.only_reads = False
        result = self.run_turn(said(self.CALL.replace("echo", "write")), said("Done."), tools=[writer])
        self.assertEqual((result.answer, self.results()), ("Done.", []))
        self.assertIn("write does more than read", self.reminders()[0])

    def test_of_what_is_wrong_with_a_call_the_model_is_told(self) -> None:
        for wrong, why in (
            (self.CALL.replace("text", "txt"), "did you mean 'text'"),
            (self.CALL.replace("}}", "}"), "invalid JSON"),
            ('<tool_call>{"name": "bash", "arguments": {}}</tool_call>', "unknown tool 'bash'"),
            (self.CALL.strip("`json\n").join(["So:\n", ""]), "not clear whether it was meant"),
        ):
            with self.subTest(wrong):
                self.setUp()
                self.assertEqual(self.run_turn(said(wrong), said("Done.")).answer, "Done.")
                self.assertIn(why, self.reminders()[0])
                self.assertEqual(self.results(), [])

    def test_after_three_reminders_such_a_reply_is_the_answer(self) -> None:
        wrong = said(self.CALL.replace("text", "txt"))
        result = self.run_turn(*[wrong] * 4)
        self.assertEqual((result.status, result.rounds, len(self.reminders())), ("completed", 4, 3))
        self.assertEqual(result.answer, wrong.message.text)

    def test_after_the_last_round_a_call_as_text_is_words(self) -> None:
        result = self.run_turn(said("", call("echo")), said(self.CALL), limits=TurnLimits(max_rounds=1))
        self.assertEqual((result.status, result.answer, len(self.results())), ("round_limit", self.CALL, 1))


class FailingModels(TurnTestCase):
    def test_a_failing_model_ends_the_turn_and_the_history_stays(self) -> None:
        result = self.run_turn(said("", call("echo", text="1")), ServerFailed("the server is down"))
        self.assertEqual((result.status, result.kind, result.reason), ("failed", "server_failed", "the server is down"))
        self.assertEqual(self.results(), ["1"])
        self.assertHistoryWhole()
        self.assertEqual(self.run_turn(said("Again.")).answer, "Again.")

    def test_a_prompt_that_the_server_cut_without_a_word_is_told_to_people_once(self) -> None:
        def counted(tokens: int, base_url: str = "http://h/v1") -> ModelReply:
            return replace(said("", call("echo", text=str(tokens)), usage=Usage(tokens, 1)), base_url=base_url)

        for steps, sent, told in (
            ([counted(2048), counted(2049)], 9000, 1),
            ([counted(4600)], 9000, 0),
            ([counted(100)], 1400, 0),
            ([counted(0)], 9000, 0),
            ([counted(100, "")], 9000, 0),
        ):
            self.setUp()
            self.run_turn(*steps, said("Done."), estimate=lambda conversation, sent=sent: sent)
            notices = [event.text for event in scripted.recorded(self.session) if isinstance(event, Notice)]
            self.assertEqual(len(notices), told, notices)
            if told:
                self.assertIn("counted 2,048 tokens where about 9,000 were sent", notices[0])

    def test_an_empty_reply_is_asked_for_once_more(self) -> None:
        result = self.run_turn(said(" \n", usage=Usage(5, 1)), said("Here.", usage=Usage(5, 2)))
        self.assertEqual((result.answer, result.rounds, result.usage), ("Here.", 1, Usage(10, 3)))
        notices = [event for event in scripted.recorded(self.session) if isinstance(event, Notice)]
        self.assertEqual(len(notices), 1)

    def test_two_empty_replies_end_the_turn(self) -> None:
        result = self.run_turn(said(""), said(""), said("never asked for"))
        self.assertEqual((result.status, result.kind), ("failed", "empty_reply"))
        self.assertHistoryWhole()

    def test_an_overflow_is_compressed_away_and_asked_once_more(self) -> None:
        def make_room(conversation: Any, record: Any, ask: Any, overflow: Any = None) -> bool:
            if overflow:
                head = (UserMessage("do it"), Summary(ask(()).message.text))
                record(HistorySummarized(head, len(conversation.visible_messages()), 9, 5, "overflow"))
            return bool(overflow)

        result = self.run_turn(ContextOverflow("too long"), said("Fits."), make_room=make_room)
        self.assertEqual(result.answer, "Fits.")
        result = self.run_turn(ContextOverflow("too long"), ContextOverflow("still"), make_room=make_room)
        self.assertEqual((result.status, result.kind), ("failed", "context_overflow"))
        self.assertHistoryWhole()

    def test_an_overflow_where_nothing_can_be_made_smaller_ends_the_turn(self) -> None:
        result = self.run_turn(ContextOverflow("too long"), said("never asked for"))
        self.assertEqual((result.status, result.kind), ("failed", "context_overflow"))

    def test_a_fault_of_the_program_comes_out_and_the_history_is_whole_all_the_same(self) -> None:
        def fault(messages: object, tools: object) -> ModelReply:
            raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            self.run_turn(said("", call("echo")), fault)
        self.assertEqual(scripted.recorded(self.session)[-1].to_json()["kind"], "internal")
        self.assertHistoryWhole()


class Guards(TurnTestCase):
    def test_after_the_last_round_the_model_says_where_things_stand(self) -> None:
        offered = []

        class Watched(scripted.ScriptedModel):
            def reply(self, *args: Any) -> ModelReply:
                offered.append(args[3])
                return super().reply(*args)

        steps = [said("", call("echo", text=str(number))) for number in range(3)]
        with mock.patch.object(scripted, "ScriptedModel", Watched):
            result = self.run_turn(*steps, said("Half done."), limits=TurnLimits(max_rounds=3))
        self.assertEqual((result.status, result.kind, result.answer), ("round_limit", "round_limit", "Half done."))
        self.assertEqual(offered, [True, True, True, False])
        self.assertIn(Reminder(CLOSING_REMINDER), self.visible())
        self.assertHistoryWhole()
        self.assertEqual(self.run_turn(said("On it goes.")).status, "completed")

    def test_a_call_after_the_last_round_is_not_run(self) -> None:
        ran = []
        watched = SmallTool("watched", lambda text: ran.append(text) or ToolOutcome("ran"))  # type: ignore[func-returns-value]
        step = said("", call("watched", text="x"), call("watched", text="y"))
        result = self.run_turn(step, step, tools=[watched], limits=TurnLimits(max_rounds=1))
        self.assertEqual((result.status, ran), ("round_limit", ["x", "y"]))
        self.assertRegex(self.results()[-1], r"^Error \[round_limit\]: not run")
        self.assertHistoryWhole()

    def test_the_same_call_with_the_same_result_is_told_three_times_running_and_ends_the_turn_at_five(self) -> None:
        steps = [said("", call("echo", text="again")) for _ in range(9)]
        result = self.run_turn(*steps)
        self.assertEqual((result.status, result.kind, result.rounds), ("failed", "repeated_call", 5))
        self.assertIn("echo", result.reason)
        self.assertEqual(["times" in text for text in self.results()], [False, False, True, True, False])
        self.assertHistoryWhole()

    def test_repeats_within_one_reply_do_not_end_a_turn_before_the_model_has_seen_a_result(self) -> None:
        result = self.run_turn(said("", *[call("echo", text="again")] * 7), said("Done."))
        self.assertEqual((result.status, self.results()), ("completed", ["again"] * 7))

    def test_calls_behind_the_repeat_that_ends_a_turn_are_not_run(self) -> None:
        result = self.run_turn(*[said("", call("echo", text="again"), call("echo", text=str(n))) for n in range(9)])
        self.assertEqual((result.kind, result.rounds), ("repeated_call", 5))
        self.assertRegex(self.results()[-1], r"^Error \[repeated_call\]: not run")
        self.assertHistoryWhole()

    def test_unreadable_calls_of_different_tools_are_no_repeats(self) -> None:
        broken = [replace(call(name), arguments=None, problem="invalid JSON") for name in ("echo", "other", "third")]
        self.assertEqual(self.run_turn(*[said("", broken[n % 3]) for n in range(6)], said("Done.")).status, "completed")

    def test_the_same_call_with_another_result_is_no_repeat(self) -> None:
        counter = iter(range(99))
        counting = SmallTool("counting", lambda text: ToolOutcome(str(next(counter))))
        steps = [said("", call("counting")) for _ in range(8)]
        self.assertEqual(self.run_turn(*steps, said("Done."), tools=[counting]).status, "completed")

    def test_defaults_written_out_do_not_hide_a_repeat(self) -> None:
        steps = [said("", call("echo", **({"text": ""} if number % 2 else {}))) for number in range(5)]
        self.assertEqual(self.run_turn(*steps).kind, "repeated_call")

    def test_a_turn_over_its_ceiling_of_tokens_ends_before_its_calls_run(self) -> None:
        steps = [said("", call("echo", text=str(number)), usage=Usage(400, 100)) for number in range(9)]
        result = self.run_turn(*steps, limits=TurnLimits(max_tokens=1000))
        self.assertEqual((result.status, result.kind, result.rounds), ("failed", "token_limit", 3))
        self.assertIn("1,500 tokens; the limit is 1,000", result.reason)
        self.assertRegex(self.results()[-1], r"^Error \[token_limit\]: not run")
        self.assertHistoryWhole()

    def test_an_answer_over_the_ceiling_is_still_an_answer(self) -> None:
        result = self.run_turn(said("Done.", usage=Usage(4000, 1)), limits=TurnLimits(max_tokens=1000))
        self.assertEqual(result.status, "completed")


def busy_turn() -> list[Step]:
    """Return the script of a turn with parallel, failing and hidden calls."""
    first = (call("echo", text="1"), call("failing"), call("shorten"), call("echo", text="2"))
    return [said("I look.", *first), said(""), said("", call("shorten"), call("echo", text="3")), said("Done.")]


@unittest.skipUnless(hasattr(signal, "pthread_kill"), "needs real signals")
class CtrlC(TurnTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

    def restart(self) -> None:
        self.session.log.path.unlink()
        self.session = scripted.open_session(self.session.log.path)

    def test_ctrl_c_in_a_tool_gives_each_open_call_its_result(self) -> None:
        def interrupt(text: str) -> ToolOutcome:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
            return ToolOutcome("never")

        calls = (call("echo", text="1"), call("interrupt"), call("echo", text="3"))
        result = self.run_turn(said("", *calls), tools=[SmallTool("interrupt", interrupt)])
        self.assertEqual((result.status, result.reason), ("interrupted", "interrupted by the user"))
        self.assertEqual(self.results(), ["1", *["Error [interrupted]: interrupted by the user."] * 2])
        self.assertHistoryWhole()
        self.assertEqual(self.run_turn(said("Again.")).answer, "Again.")

    def test_ctrl_c_in_the_model_ends_the_turn(self) -> None:
        def interrupt(messages: object, tools: object) -> ModelReply:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
            return said("never")

        self.assertEqual(self.run_turn(said("", call("echo")), interrupt).status, "interrupted")
        self.assertHistoryWhole()

    def test_text_that_had_come_before_ctrl_c_is_kept(self) -> None:
        class Stopped(scripted.ScriptedModel):
            def reply(self, messages: Any, tools: Any, watch: Any, may_call_tools: bool = True) -> ModelReply:
                watch.text("Lost.")
                watch.notice("the stream broke off")
                watch.text("Half an ")
                watch.text("answer")
                raise KeyboardInterrupt

        runner = scripted.runner(self.session, [])
        runner.model = Stopped([])
        self.assertEqual(runner.run_turn("do it").status, "interrupted")
        self.assertEqual([message.text for message in self.visible()], ["do it", "Half an answer"])
        self.assertHistoryWhole()

    def test_ctrl_c_at_any_line_of_a_turn_leaves_the_history_whole(self) -> None:
        lines = self.lines_of_a_turn()
        self.assertGreater(lines, 500)
        for seed in generated.seeds(40, 400):
            line = random.Random(seed).randrange(lines)
            self.restart()
            with self.subTest(seed=seed, line=line):
                self.interrupted_at(line)

    def test_a_second_ctrl_c_waits_until_the_turn_is_ended(self) -> None:
        def interrupt(entry: LogEntry) -> None:
            if isinstance(entry.event, (AssistantMessageAdded, ToolResultAdded)):
                os.kill(os.getpid(), signal.SIGINT)

        self.session.listen(interrupt)
        with self.assertRaises(KeyboardInterrupt):
            self.run_turn(said("", call("echo"), call("echo")))
        self.assertIsInstance(scripted.recorded(self.session)[-1], TurnEnded)
        self.assertHistoryWhole()

    def test_a_second_ctrl_c_while_the_turn_is_ended_leaves_the_history_whole_for_the_next_turn(self) -> None:
        lines = self.lines_of_a_turn()
        for seed in generated.seeds(25, 400):
            rng = random.Random(seed)
            self.restart()
            with self.subTest(seed=seed):
                self.interrupted_at(rng.randrange(lines), rng.randrange(150))

    def test_ctrl_c_at_any_time_leaves_the_history_whole(self) -> None:
        for seed in generated.seeds(10, 300):
            self.restart()
            turn = scripted.runner(self.session, [said("", call("sleeping", text="0.001")), *busy_turn()])
            sender = threading.Timer(random.Random(seed).random() * 0.02, os.kill, (os.getpid(), signal.SIGINT))
            with self.subTest(seed=seed):
                self.quietly(lambda turn=turn, sender=sender: (sender.start(), turn.run_turn("x"), sender.join()))
                self.quietly(sender.join)
                self.assertGoesOn()

    def quietly(self, work: Callable[[], object]) -> None:
        try:
            work()
        except KeyboardInterrupt:
            pass

    def lines_of_a_turn(self) -> int:
        """Count the lines of our own code that a turn runs through."""
        with InterruptingAt() as counter:
            scripted.runner(self.session, busy_turn()).run_turn("x")
        return counter.count

    def interrupted_at(self, line: int, line_of_the_end: int | None = None) -> None:
        turn = scripted.runner(self.session, busy_turn())
        with InterruptingAt(line, line_of_the_end):
            self.quietly(lambda: turn.run_turn("x"))
        self.assertGoesOn()

    def assertGoesOn(self) -> None:
        """Check that the next turn mends what a second Ctrl-C left, and that history is whole then."""
        self.assertEqual(scripted.runner(self.session, [said("Again.")]).run_turn("y").answer, "Again.")
        self.assertHistoryWhole()
        kinds = [type(event) for event in scripted.recorded(self.session)]
        self.assertEqual(kinds.count(UserMessageAdded), kinds.count(TurnEnded))


class InterruptingAt:
    """While it is entered, send this process a real SIGINT at a line of our own code, counted from the start.

    A second one can follow at a line counted from where the turn is ended.
    """

    def __init__(self, line: int | None = None, line_of_the_end: int | None = None) -> None:
        self.count = 0
        self._line = line
        self._line_of_the_end = line_of_the_end
        self._folder = str(Path(mini_agent.__file__).parent)

    def __enter__(self) -> InterruptingAt:
        end_turn = AgentRunner._end_turn

        def end_turn_traced(runner: AgentRunner, ending: TurnEnded) -> None:
            if self._line_of_the_end is not None and runner._session.conversation.turn_is_open:
                self.count, self._line, self._line_of_the_end = 0, self._line_of_the_end, None
                sys.settrace(self._trace)  # the first signal has put an end to it
            end_turn(runner, ending)

        self._patch = mock.patch.object(AgentRunner, "_end_turn", end_turn_traced)
        self._patch.start()
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)
        self._patch.stop()

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(self._folder):
            return None
        if event == "line":
            if self.count == self._line:
                os.kill(os.getpid(), signal.SIGINT)
            self.count += 1
        return self._trace


class CostOfARound(TurnTestCase):
    """Invariant: the bookkeeping of a round does not grow with the history."""

    def rounds_before(self, number: int) -> None:
        for each in range(number):
            old = replace(call("echo"), id=f"old_{each}")
            self.session.conversation.apply(AssistantMessageAdded(said("", old).message, None, "", ""))
            self.session.conversation.apply(ToolResultAdded(f"old_{each}", "echo", "x" * 50, False, ""))

    def cost(self, history: int) -> tuple[int, int]:
        """Return how many functions a turn of three rounds calls, and how many bytes it takes at its peak."""
        self.session.log.path.unlink(missing_ok=True)
        self.session = scripted.open_session(self.session.log.path)
        self.rounds_before(history)
        steps = [*(said("", call("echo", text=str(number)), call("echo")) for number in range(2)), said("Done.")]
        runner = scripted.runner(self.session, steps)
        count = 0

        def count_one(*_: object) -> None:
            nonlocal count
            count += 1

        tracemalloc.start()
        sys.setprofile(count_one)
        try:
            runner.run_turn("x")
        finally:
            sys.setprofile(None)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return count, peak

    def test_a_round_late_in_a_session_takes_the_steps_and_the_memory_of_an_early_one(self) -> None:
        self.cost(1)  # what is made once, on first use
        early, late = self.cost(1), self.cost(4000)
        self.assertLess(abs(late[0] - early[0]), early[0] * 0.02)
        self.assertLess(late[1], early[1] + 60_000)  # a list grows in steps; a copy of anything would take more
