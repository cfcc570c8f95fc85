from __future__ import annotations

import io
import subprocess
import sys
import unittest
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Callable

from mini_agent.conversation.events import (
    ApprovalAnswered,
    AssistantMessageAdded,
    Event,
    FileChange,
    FilesChanged,
    Notice,
    ToolResultAdded,
    TurnEnded,
    UserMessageAdded,
)
from mini_agent.conversation.messages import AssistantMessage, ToolCall, Usage
from mini_agent.terminal.columns import width
from mini_agent.terminal.console import DIFF_LINES, Console, main_argument
from tests import COMPILED

PATCH = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-old\n+new\n"


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class OneEntry:
    seq: int
    time: datetime
    event: Event


def call(id: str, name: str, **arguments: object) -> ToolCall:
    return ToolCall(id, name, "", arguments)


def reply(text: str, *calls: ToolCall, usage: Usage | None = None) -> AssistantMessageAdded:
    return AssistantMessageAdded(AssistantMessage(text, calls), usage, "gpt", "https://host/v1", "stop")


class ConsoleTestCase(unittest.TestCase):
    def console(
        self, out: io.StringIO | None = None, err: io.StringIO | None = None, level: str = "info", **environment: str
    ) -> Console:
        self.out, self.err = out or io.StringIO(), err or io.StringIO()
        self.made = Console(self.out, self.err, level, environment)
        self.addCleanup(self.made.close)
        self._time = datetime(2026, 1, 31, tzinfo=timezone.utc)
        return self.made

    def tell(self, *events: Event, seconds: float = 0.0) -> None:
        for event in events:
            self._time += timedelta(seconds=seconds)
            self.made.show(OneEntry(1, self._time, event))

    def lines(self) -> list[str]:
        return self.err.getvalue().splitlines()


class AnswerTest(ConsoleTestCase):
    def test_in_a_terminal_an_answer_that_streamed_is_not_printed_again(self) -> None:
        console = self.console(Screen(), Screen(), TERM="dumb")
        self.tell(UserMessageAdded("hi"))
        for delta in ("It ", "is\n", "done."):
            console.on_text(delta)
        self.tell(reply("It is\ndone."), TurnEnded("completed"))
        console.show_answer("It is\ndone.")
        self.assertEqual(self.out.getvalue(), "It is\ndone.\n")

    def test_an_answer_that_did_not_stream_is_printed_at_the_end(self) -> None:
        console = self.console(Screen(), Screen(), TERM="dumb")
        self.tell(UserMessageAdded("hi"), reply("Done."), TurnEnded("completed"))
        console.show_answer("Done.")
        self.assertEqual(self.out.getvalue(), "Done.\n")

    def test_a_pipe_gets_the_answer_once_and_nothing_of_what_was_said_on_the_way(self) -> None:
        console = self.console()
        self.assertIsNone(console.on_text)
        self.tell(UserMessageAdded("hi"))
        self.tell(reply("I look.", call("1", "list_files")), ToolResultAdded("1", "list_files", "a", False, ""))
        self.tell(reply("Done."), TurnEnded("completed"))
        console.show_answer("Done.")
        self.assertEqual(self.out.getvalue(), "Done.\n")
        self.assertEqual(self.lines(), ["I look.", "* list_files  1 B, 0.0 s"])

    def test_text_that_streamed_with_a_call_in_it_is_not_shown_again_without_it(self) -> None:
        console = self.console(Screen(), Screen(), TERM="dumb")
        self.tell(UserMessageAdded("hi"))
        console.on_text("I look.\n[call]\nThen I tell.")
        self.tell(
            reply("I look.\n\nThen I tell.", call("1", "list_files")),
            ToolResultAdded("1", "list_files", "a", False, ""),
        )
        self.assertEqual(self.out.getvalue(), "I look.\n[call]\nThen I tell.\n")
        self.assertEqual(self.lines(), ["* list_files  1 B, 0.0 s"])

    def test_the_same_answer_in_the_next_turn_is_printed_again(self) -> None:
        console = self.console()
        for _ in range(2):
            self.tell(UserMessageAdded("hi"), reply("Yes."), TurnEnded("completed"))
            console.show_answer("Yes.")
        self.assertEqual(self.out.getvalue(), "Yes.\nYes.\n")

    def test_a_stream_that_broke_and_came_again_is_still_shown_whole(self) -> None:
        console = self.console(Screen(), Screen(), TERM="dumb")
        self.tell(UserMessageAdded("hi"))
        console.on_text("Half an an")
        self.tell(Notice("the stream broke; asked again"))
        console.on_text("Half an answer.")
        self.tell(reply("Half an answer."), TurnEnded("completed"))
        console.show_answer("Half an answer.")
        self.assertEqual(self.out.getvalue(), "Half an an\nHalf an answer.\n")

    def test_an_answer_of_which_only_a_part_streamed_is_printed(self) -> None:
        console = self.console(Screen(), Screen(), TERM="dumb")
        self.tell(UserMessageAdded("hi"))
        console.on_text("Half")
        self.tell(reply("Half an answer."), TurnEnded("completed"))
        console.show_answer("Half an answer.")
        self.assertEqual(self.out.getvalue(), "Half\nHalf an answer.\n")

    def test_answers_and_notices_are_made_safe(self) -> None:
        console = self.console(Screen(), Screen(), TERM="dumb")
        console.on_text("\x1b[2J")
        console.show_answer("\x1b]0;title\x07")
        self.tell(Notice("\x1b[31m\nforged line"))
        self.assertEqual(self.out.getvalue(), "\\x1b[2J\n\\x1b]0;title\\x07\n")
        self.assertEqual(self.lines(), ["\\x1b[31m\\nforged line"])


class ToolLineTest(ConsoleTestCase):
    def test_a_call_is_one_line_with_name_main_argument_size_and_seconds(self) -> None:
        self.console()
        self.tell(
            UserMessageAdded("x"),
            reply("", call("1", "grep", pattern="a+", path="src"), call("2", "read_file", path="b")),
        )
        self.tell(ToolResultAdded("1", "grep", "x" * 1234, False, ""), seconds=1.25)
        self.tell(ToolResultAdded("2", "read_file", "é", False, ""), seconds=0.5)
        self.assertEqual(self.lines(), ["* grep a+ src  1.2 KB, 1.2 s", "* read_file b  2 B, 0.5 s"])

    def test_a_failed_call_tells_why_in_the_same_line(self) -> None:
        self.console()
        self.tell(reply("", call("1", "read_file", path="nope")), UserMessageAdded("x"))
        self.tell(ToolResultAdded("1", "read_file", "Error [not_found]: none\nsuch", True, ""))
        self.assertEqual(self.lines(), ["* read_file  Error [not_found]: none\\nsuch (0.0 s)"])

    def test_no_line_is_wider_than_the_terminal_whatever_the_names(self) -> None:
        for argument in ("x" * 300, "很长的名字" * 60, "\x1b" * 99):
            for text, is_error in (("ok", False), ("Error [x]: " + "长" * 200, True)):
                self.console(COLUMNS="40")
                self.tell(UserMessageAdded("x"), reply("", call("1", "read_file", path=argument)))
                self.tell(ToolResultAdded("1", "read_file", text, is_error, ""))
                (line,) = self.lines()
                self.assertLessEqual(width(line), 40)
                self.assertTrue(line.startswith("* read_file "), line)
                self.assertIn(text[:9] if is_error else "2 B, 0.0 s", line)

    def test_columns_that_make_no_sense_are_ignored(self) -> None:
        for columns in ("", "0", "wide", "-3", "1e3", "99999999999"):
            self.console(COLUMNS=columns)
            self.tell(ToolResultAdded("1", "read_file", "Error: " + "x" * 300, True, ""))
            self.assertEqual(len(self.lines()[0]), 120)

    def test_calls_that_a_crash_left_open_can_be_told_before_any_turn(self) -> None:
        self.console()
        self.tell(ToolResultAdded("1", "grep", "Error [interrupted]: the program ended", True, ""))
        self.tell(TurnEnded("interrupted", "crash", "the program ended in the middle of this turn"))
        self.assertEqual(len(self.lines()), 2)

    def test_the_main_argument_of_each_kind_of_call(self) -> None:
        for arguments, told in (
            ({"path": "a.py", "offset": 3}, "a.py"),
            ({"patch": PATCH}, "src/a.py"),
            ({"patch": "*** Begin Patch\n*** Update File: b c.py\n"}, "b c.py"),
            ({"patch": "no\npatch"}, ""),
            ({"replacements": [{}, {}]}, "replacements: 2"),
            ({"pattern": "x", "path": "src"}, "x src"),
            ({"path": "."}, ""),
            ({"patch": "rename from .env\nrename to b\n"}, ".env -> b"),
            ({}, ""),
        ):
            self.assertEqual(main_argument(ToolCall("1", "any", "", arguments)), told)
        self.assertEqual(main_argument(ToolCall("1", "any", "{broken", None)), "")


class PatchTest(ConsoleTestCase):
    def make_patch(self, patch: str, *before: Event) -> None:
        self.tell(UserMessageAdded("x"), reply("", call("1", "apply_patch", patch=patch)), *before)
        self.tell(FilesChanged((FileChange("src/a.py", "1", "2"),)))
        self.tell(ToolResultAdded("1", "apply_patch", "Success", False, ""))

    def test_a_patch_that_was_made_is_shown(self) -> None:
        self.console()
        self.make_patch(PATCH)
        self.assertEqual(
            self.lines(),
            ["* apply_patch src/a.py  7 B, 0.0 s", *("  " + line for line in PATCH.splitlines())],
        )

    def test_in_a_terminal_it_is_coloured_and_without_colours_where_they_are_not_wanted(self) -> None:
        self.console(err=Screen(), TERM="xterm")
        self.make_patch(PATCH)
        self.assertIn("\x1b[31m  -old\x1b[0m\n\x1b[32m  +new\x1b[0m\n", self.err.getvalue())
        for environment in ({"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb"}, {"COLUMNS": "80"}):
            self.console(None, Screen(), **environment)
            self.make_patch(PATCH)
            self.assertNotIn("\x1b", self.err.getvalue(), environment)

    def test_a_long_patch_is_cut_and_says_by_how_much(self) -> None:
        self.console()
        self.make_patch(PATCH + "+more\n" * 95)
        self.assertEqual(len(self.lines()), 1 + DIFF_LINES + 1)
        self.assertEqual(self.lines()[-1], "  ... 60 more lines")

    def test_a_patch_that_was_shown_for_approval_is_not_shown_again(self) -> None:
        self.console()
        self.make_patch(PATCH, ApprovalAnswered("may I?", True))
        self.assertEqual(len(self.lines()), 1)

    def test_a_patch_that_was_refused_is_not_shown(self) -> None:
        self.console()
        self.tell(UserMessageAdded("x"), reply("", call("1", "apply_patch", patch=PATCH)))
        self.tell(ToolResultAdded("1", "apply_patch", "Error [no_match]: line 1 differs", True, ""))
        self.assertEqual(self.lines(), ["* apply_patch src/a.py  Error [no_match]: line 1 differs (0.0 s)"])


class LevelTest(ConsoleTestCase):
    def test_each_level_shows_itself_and_what_is_above(self) -> None:
        for level, shown in (("debug", 4), ("info", 3), ("warn", 2), ("error", 1), ("none", 0)):
            console = self.console(level=level)
            for line_level in ("debug", "info", "warn", "error"):
                console.trace(line_level, "text")
            self.assertEqual(len(self.lines()), shown, level)

    def test_none_leaves_the_answer_and_questions(self) -> None:
        console = self.console(level="none")
        console.trace("info", "mini-agent 0.1")
        self.tell(UserMessageAdded("x"), reply("", call("1", "grep"), usage=Usage(1, 2, 3)))
        self.tell(
            ToolResultAdded("1", "grep", "x", False, ""),
            Notice("n", "warn"),
            reply("Done."),
            TurnEnded("failed", "k", "r"),
        )
        console.show_answer("Done.")
        self.assertEqual((self.out.getvalue(), self.err.getvalue()), ("Done.\n", ""))
        console.show_question("May I?")
        self.assertEqual(self.err.getvalue(), "May I?\n")

    def test_what_happened_is_told_in_one_line_each(self) -> None:
        self.console(level="debug")
        self.tell(UserMessageAdded("x"), reply("", call("1", "grep"), usage=Usage(1200, 20, 1000)))
        self.tell(TurnEnded("round_limit", "round_limit", "40 rounds are used up"))
        self.assertEqual(
            self.lines()[:-1],
            [
                "gpt: 1,200 tokens in (1,000 cached), 20 out; stop",
                "warning: 40 rounds are used up; tell it to go on where there is more to do",
            ],
        )


class ProgressTest(ConsoleTestCase):
    def setUp(self) -> None:
        self.console(Screen(), Screen(), TERM="xterm", NO_COLOR="1")

    def visible(self) -> str:
        """Return the line in which the cursor stands, as a terminal shows it."""
        cells: list[str] = []
        for part in self.err.getvalue().split("\n")[-1].split("\r"):
            cells[: len(part)] = part
        return "".join(cells).rstrip()

    def draw(self) -> str:
        self.made._draw_progress()
        return self.visible()

    def test_it_tells_seconds_round_tokens_and_what_runs(self) -> None:
        self.tell(UserMessageAdded("x"))
        self.assertEqual(self.draw(), "0 s, round 1, waiting for the model (Ctrl-C stops it)")
        self.tell(reply("", call("1", "grep"), call("2", "read_file"), usage=Usage(1000, 200)))
        self.assertEqual(self.draw(), "0 s, round 1, 1,200 tokens, grep (Ctrl-C stops it)")
        self.tell(ToolResultAdded("1", "grep", "", False, ""))
        self.assertEqual(self.draw(), "0 s, round 1, 1,200 tokens, read_file (Ctrl-C stops it)")
        self.tell(ToolResultAdded("2", "read_file", "", False, ""))
        self.assertEqual(self.draw(), "0 s, round 2, 1,200 tokens, waiting for the model (Ctrl-C stops it)")
        self.tell(TurnEnded("completed"))
        self.assertEqual(self.draw(), "")

    def test_lines_and_streamed_text_take_its_place_and_never_stand_behind_it(self) -> None:
        self.tell(UserMessageAdded("x"))
        shows: tuple[Callable[[], None], ...] = (
            lambda: self.made.trace("info", "a line"),
            lambda: self.made.on_text("text"),
            lambda: self.made.say("said"),
            lambda: self.made.show_question("May I?"),
        )
        for show in shows:
            self.draw()
            show()
            self.assertNotIn("round", self.visible())
        self.assertIn("\na line\n", "\n" + "\n".join(line.split("\r")[-1] for line in self.err.getvalue().split("\n")))

    def test_it_does_not_come_into_a_line_of_streamed_text_or_a_question(self) -> None:
        self.tell(UserMessageAdded("x"))
        self.made.on_text("half a line")
        self.assertEqual(self.draw(), "")
        self.made.on_text(" and its end\n")
        with self.made.paused():
            self.assertEqual(self.draw(), "")
        self.assertIn("round 1", self.draw())

    def test_at_forty_columns_it_stays_one_line(self) -> None:
        self.console(Screen(), Screen(), TERM="xterm", COLUMNS="40")
        self.tell(UserMessageAdded("x"), reply("", call("1", "一个很长的工具名字" * 9, path="x")))
        self.assertLessEqual(width(self.draw()), 39)

    def test_a_dumb_terminal_and_a_pipe_get_none(self) -> None:
        for err, environment in ((Screen(), {"TERM": "dumb"}), (io.StringIO(), {"TERM": "xterm"})):
            self.console(Screen(), err, **environment)
            self.tell(UserMessageAdded("x"))
            self.assertFalse(self.made._shows_progress)
            self.assertIsNone(self.made._ticker)


class BrokenStreamTest(ConsoleTestCase):
    def test_streams_that_are_closed_raise_nothing(self) -> None:
        closed = io.StringIO()
        closed.close()
        console = Console(closed, closed, environment={})
        self.assertIsNone(console.on_text)
        console.say("x")
        console.trace("error", "x")
        self.assertFalse(console.can_ask)

    def run_script(self, script: str, stdout: int, **environment: str) -> subprocess.CompletedProcess[bytes]:
        start = (
            "import sys\nfrom mini_agent.terminal.console import Console\nconsole = Console(sys.stdout, sys.stderr)\n"
        )
        return subprocess.run(
            [sys.executable, "-c", start + script],
            stdout=stdout,
            stderr=subprocess.PIPE,
            env={"PYTHONPATH": str(Path(__file__).resolve().parents[2]), **COMPILED, **environment},
            timeout=30,
            check=False,
        )

    def test_a_full_disk_is_told_by_failure_and_python_ends_in_peace(self) -> None:
        if not Path("/dev/full").exists():
            self.skipTest("there is no /dev/full here")
        with open("/dev/full", "wb") as full:
            done = self.run_script("console.say('x' * 9999)\nconsole.trace('error', console.failure)", full.fileno())
        self.assertEqual((done.returncode, done.stderr), (0, b"error: No space left on device\n"))

    def test_text_that_the_stream_cannot_encode_is_written_out(self) -> None:
        script = "console.say('\\xe9\\u6587\\ud800')\nconsole.trace('info', '\\u6587')"
        variables = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        done = self.run_script(script, subprocess.PIPE, **variables)
        self.assertEqual(done.stdout.splitlines(), [b"\\xe9\\u6587\\ud800"])
        self.assertEqual(done.stderr.splitlines(), [b"\\u6587"])
