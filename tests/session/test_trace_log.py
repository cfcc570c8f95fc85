from __future__ import annotations

import os
import random
import re
import signal
import tempfile
import unittest
from datetime import datetime, timezone
from pathlib import Path

from mini_agent.conversation.events import (
    EVENT_TYPES,
    AssistantMessageAdded,
    Event,
    Notice,
    ToolResultAdded,
    TurnEnded,
    UserMessageAdded,
)
from mini_agent.conversation.messages import AssistantMessage, ToolCall, Usage
from mini_agent.session.event_log import LogEntry
from mini_agent.session.trace_log import TraceLog
from tests import generated

TIME = datetime(2026, 1, 31, 9, 30, 0, 125_000, tzinfo=timezone.utc)


class Trace(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "log.log"

    def lines(self) -> list[str]:
        return self.path.read_bytes().decode("utf-8").split("\n")[:-1]

    def traced(self, *events: Event) -> list[str]:
        """Return the lines of these events alone, without their time."""
        self.path.unlink(missing_ok=True)
        trace = TraceLog(self.path)
        for number, event in enumerate(events, 1):
            trace(LogEntry(number, TIME, event))
        return [line.partition(" ")[2] for line in self.lines()]

    def test_one_turn_reads_as_its_steps(self) -> None:
        calls = (ToolCall("a", "read_file", "", {"path": "a.py"}), ToolCall("b", "grep", "", {"pattern": "x y"}))
        lines = self.traced(
            UserMessageAdded("fix\nit"),
            AssistantMessageAdded(AssistantMessage("I look.", calls), Usage(12, 3, 10), "gpt", "", "tool_calls"),
            ToolResultAdded("a", "read_file", "text", False, ""),
            ToolResultAdded("b", "grep", "Error [bad_pattern]: no", True, ""),
            AssistantMessageAdded(AssistantMessage("Done."), None, "gpt", ""),
            TurnEnded("completed"),
        )
        expected = [
            r"INFO [turn] turn=1 request=fix\nit",
            "INFO [model] round=1 model=gpt finish=tool_calls input_tokens=12 output_tokens=3 cached_tokens=10 "
            'text="I look."',
            "INFO [tool] round=1 tool_call=1/2 tool=read_file path=a.py",
            'INFO [tool] round=1 tool_call=2/2 tool=grep pattern="x y"',
            "INFO [tool] round=1 tool_result=1/2 tool=read_file characters=4",
            'WARN [tool] round=1 tool_result=2/2 tool=grep error="Error [bad_pattern]: no"',
            "INFO [model] round=2 model=gpt text=Done.",
            "INFO [turn] turn=1 status=completed rounds=2",
        ]
        self.assertEqual(lines, expected)

    def test_rounds_are_counted_anew_in_each_turn(self) -> None:
        reply = AssistantMessageAdded(AssistantMessage("x"), None, "", "")
        lines = self.traced(UserMessageAdded("a"), reply, TurnEnded("completed"), UserMessageAdded("b"), reply)
        self.assertEqual(lines[-2:], ["INFO [turn] turn=2 request=b", "INFO [model] round=1 text=x"])

    def test_how_a_turn_ended_sets_the_level(self) -> None:
        endings = ("completed", "interrupted", "round_limit", "failed")
        levels = [self.traced(TurnEnded(status))[0].split()[0] for status in endings]
        self.assertEqual(levels, ["INFO", "WARN", "WARN", "ERROR"])

    def test_a_notice_keeps_its_own_level_and_an_unknown_one_is_information(self) -> None:
        self.assertTrue(self.traced(Notice("x", "warn"))[0].startswith("WARN"))
        self.assertTrue(self.traced(Notice("x", "loud"))[0].startswith("INFO"))

    def test_a_long_value_is_cut(self) -> None:
        self.assertLess(len(self.traced(UserMessageAdded("x" * 10_000))[0]), 300)

    def test_every_type_of_event_has_its_line(self) -> None:
        for kind in EVENT_TYPES:
            with self.subTest(kind):
                self.assertTrue(self.traced(generated.any_event(random.Random(5), kind)))

    def test_an_argument_does_not_overrule_what_is_told_of_its_call(self) -> None:
        call = ToolCall("a", "grep", "", {"path": "x", "tool": "other"})
        lines = self.traced(AssistantMessageAdded(AssistantMessage("", (call,)), None, "", ""))
        self.assertEqual(lines[1], "INFO [tool] round=1 tool_call=1/1 tool=grep path=x")

    def test_a_line_is_time_level_tag_and_text(self) -> None:
        trace = TraceLog(self.path)
        trace(LogEntry(1, TIME, UserMessageAdded("fix\nit")))
        trace(LogEntry(2, TIME, Notice("slow", "warn")))
        self.assertEqual(self.lines(), [
            r"2026-01-31T09:30:00.125Z INFO [turn] turn=1 request=fix\nit",
            "2026-01-31T09:30:00.125Z WARN [notice] notice=slow",
        ])  # fmt: skip

    def test_whatever_the_content_each_line_is_a_line(self) -> None:
        for seed in generated.seeds(10, 300):
            self.path.unlink(missing_ok=True)
            trace = TraceLog(self.path)
            events = generated.session(random.Random(seed), 40)
            for number, event in enumerate(events, 1):
                trace(LogEntry(number, TIME, event))
            with self.subTest(seed=seed):
                self.assertGreaterEqual(len(self.lines()), len(events))
                for line in self.lines():
                    self.assertTrue(re.match(r"2026-\S+Z (DEBUG|INFO|WARN|ERROR) \[[a-z]+\] \S", line), line)
                    self.assertTrue(line.isprintable(), line)

    def test_a_failed_write_throws_nothing_and_comes_with_the_next_event(self) -> None:
        trace = TraceLog(self.path)
        self.path.mkdir()
        trace(LogEntry(1, TIME, Notice("one")))
        self.path.rmdir()
        trace(LogEntry(2, TIME, Notice("two")))
        self.assertEqual([line.split("=")[1] for line in self.lines()], ["one", "two"])

    @unittest.skipUnless(hasattr(os, "mkfifo"), "needs named pipes")
    def test_a_named_pipe_in_its_place_holds_nothing_up(self) -> None:
        def too_long(*_: object) -> None:
            raise AssertionError("it waits for somebody to read the pipe")

        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, too_long))
        self.addCleanup(signal.alarm, 0)
        os.mkfifo(self.path)
        signal.alarm(20)
        trace = TraceLog(self.path)
        trace(LogEntry(1, TIME, Notice("one")))
        self.path.unlink()
        trace(LogEntry(2, TIME, Notice("two")))
        self.assertEqual([line.split("=")[1] for line in self.lines()], ["one", "two"])
