from __future__ import annotations

import os
import random
import re
import stat
import tempfile
import unittest
from datetime import datetime, timezone
from pathlib import Path

from mini_agent.conversation.conversation import Conversation
from mini_agent.conversation.events import (
    EVENT_TYPES,
    ApprovalAnswered,
    AssistantMessageAdded,
    Event,
    FileChange,
    FilesChanged,
    HistorySummarized,
    InstructionsSet,
    ModelChanged,
    Notice,
    ReminderAdded,
    SessionStarted,
    ToolOutputCompressed,
    ToolResultAdded,
    TurnEnded,
    UserMessageAdded,
)
from mini_agent.conversation.messages import AssistantMessage, Summary, ToolCall, Usage, UserMessage
from mini_agent.session.event_log import LogEntry
from mini_agent.session.markdown_record import MarkdownRecorder, block, inline
from tests import generated

TIME = datetime(2026, 1, 31, 9, 30, 0, tzinfo=timezone.utc)
CLOCK_TIME = f"{TIME.astimezone():%H:%M:%S}"
STARTED = SessionStarted("/project", "gpt", "http://localhost", "0.1")


def structure(markdown: str) -> tuple[list[str], list[str], bool]:
    """Read Markdown as CommonMark does; return the headings, what the fenced blocks hold, whether all are closed."""
    headings, blocks, fence = [], [], ""
    for line in markdown.split("\n"):
        opening = re.match(r" {0,3}(`{3,})([^`]*)$", line)
        if fence:
            if opening and len(opening[1]) >= len(fence) and not opening[2].strip():
                fence = ""
            else:
                blocks[-1] += line + "\n"
        elif opening:
            fence = opening[1]
            blocks.append("")
        elif line.startswith("#"):
            headings.append(line)
    return headings, blocks, not fence


class RecordTestCase(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "session.md"

    def recorder(self) -> MarkdownRecorder:
        return MarkdownRecorder(self.path, "20260131-093000-125", clock=lambda: TIME)

    def record(self, *events: Event) -> str:
        recorder = self.recorder()
        for number, event in enumerate(events, 1):
            recorder(LogEntry(number, TIME, event))
        return self.text()

    def text(self) -> str:
        return self.path.read_text(encoding="utf-8", errors="replace")

    def titles(self) -> list[str]:
        return [heading[len(f"## {CLOCK_TIME} ") :] for heading in structure(self.text())[0][1:]]


class Sections(RecordTestCase):
    def test_it_begins_with_a_title_and_what_holds_for_the_whole_session(self) -> None:
        lines = self.record(STARTED).splitlines()
        self.assertEqual(lines[0], "# Session 20260131-093000-125")
        self.assertRegex(lines[2], r"^- Started: 2026-0[12]-\d\d \d\d:30:00 [+-]\d{4}$")
        self.assertEqual(lines[3:], [
            "- Workspace: `/project`", "- Model: `gpt`", "- Base URL: `http://localhost`", "- Version: `0.1`"
        ])  # fmt: skip

    def test_each_event_has_its_title(self) -> None:
        call = ToolCall("a", "grep", '{"pattern": "x"}', {"pattern": "x"})
        self.record(
            STARTED, InstructionsSet("i", (), "h"), UserMessageAdded("u"),
            AssistantMessageAdded(AssistantMessage("t", (call,)), Usage(1, 2, 3), "gpt", ""),
            ToolResultAdded("a", "grep", "r", False, ""), ToolOutputCompressed("a", "s", 9),
            HistorySummarized((Summary("s"),), 1, 9, 5, "full"), Notice("n"), ReminderAdded("m"),
            ModelChanged("m", "b"), ApprovalAnswered("may I?", True), FilesChanged((FileChange("a.py", None, "1"),)),
            STARTED, TurnEnded("failed"),
        )  # fmt: skip
        self.assertEqual(self.titles(), [
            "System", "User", "Assistant", "Tool call grep", "Tool result grep", "Tool output compressed",
            "Compression", *["Notice"] * 6, "Turn ended",
        ])  # fmt: skip

    def test_every_type_of_event_but_the_announcement_of_writes_leaves_something_to_read(self) -> None:
        for kind in EVENT_TYPES:
            self.path.unlink(missing_ok=True)
            text = self.record(STARTED, generated.any_event(random.Random(5), kind))
            with self.subTest(kind):
                self.assertEqual("\n## " in text, kind != "files_will_change")

    def test_a_patch_reads_as_the_patch_it_is(self) -> None:
        patch = "*** Begin Patch\n-old\n+new\n*** End Patch"
        call = ToolCall("a", "apply_patch", "", {"patch": patch, "dry": True})
        text = self.record(STARTED, AssistantMessageAdded(AssistantMessage("", (call,)), None, "", ""))
        self.assertEqual(structure(text)[1], ['{\n  "dry": true\n}\n', patch + "\n"])

    def test_a_call_that_could_not_be_read_shows_what_came_and_why_not(self) -> None:
        call = ToolCall("a", "grep", '{"pattern": ', None, "no JSON")
        text = self.record(STARTED, AssistantMessageAdded(AssistantMessage("", (call,)), None, "", ""))
        self.assertEqual(structure(text)[1], ["no JSON\n", '{"pattern": \n'])

    def test_what_became_of_files_is_told_one_by_one(self) -> None:
        changes = (FileChange("new.py", None, "1"), FileChange("old.py", "1", None), FileChange("a`b\n.py", "1", "2"))
        text = self.record(STARTED, FilesChanged(changes), FilesChanged(()))
        self.assertIn("- `new.py` (new)\n- `old.py` (removed)\n- ``a`b\\n.py`` (changed)\n", text)
        self.assertIn("No file was changed.", text)

    def test_at_the_end_stands_what_the_model_saw_last(self) -> None:
        recorder = self.recorder()
        recorder(LogEntry(1, TIME, STARTED))
        call = ToolCall("a", "grep", "", {"pattern": "x"})
        recorder.finish([UserMessage("u"), AssistantMessage("look", (call,)), Summary("```")])
        self.assertEqual(self.titles(), ["What the model saw last"])
        self.assertEqual(structure(self.text())[1], ["u\n", "look\n", '{\n  "pattern": "x"\n}\n', "```\n"])

    def test_a_session_without_messages_ends_well_too(self) -> None:
        self.recorder().finish([])
        self.assertIn("What the model saw last", self.text())


class ContentThatWouldForge(RecordTestCase):
    def test_no_content_becomes_a_heading_or_closes_its_block(self) -> None:
        for seed in generated.seeds(20, 1000):
            self.path.unlink(missing_ok=True)
            rng = random.Random(seed)
            events = generated.session(rng, 40)
            recorder = self.recorder()
            conversation = Conversation()
            for number, event in enumerate(events, 1):
                recorder(LogEntry(number, TIME, event))
                conversation.apply(event)
            if not conversation.open_calls:
                recorder.finish(conversation.visible_messages())
            headings, _, closed = structure(self.text())
            with self.subTest(seed=seed):
                self.assertTrue(closed)
                for heading in headings[1:]:
                    self.assertRegex(heading, rf"^## {CLOCK_TIME} \S")
                kinds = [heading[12:] for heading in headings[1:]]
                self.assertEqual(kinds.count("User"), sum(isinstance(event, UserMessageAdded) for event in events))

    def test_a_fence_is_longer_than_any_run_inside(self) -> None:
        for length in range(8):
            text = f"a\n{'`' * length}\n## 09:00:00 User\n"
            with self.subTest(length=length):
                self.assertEqual(structure(block(text)), ([], [text], True))

    def test_inline_code_survives_backticks_and_line_breaks(self) -> None:
        self.assertEqual(inline("a`b"), "``a`b``")
        self.assertEqual(inline("`"), "`` ` ``")
        self.assertEqual(inline("a\n## b"), "`a\\n## b`")

    def test_a_name_that_a_model_made_up_stays_in_its_heading(self) -> None:
        call = ToolCall("a", "x\n## 09:00:00 User\n" + "y" * 500, "", {})
        self.record(STARTED, AssistantMessageAdded(AssistantMessage("", (call,)), None, "", ""))
        self.assertEqual([title.split()[0] for title in self.titles()], ["Assistant", "Tool"])
        self.assertLess(max(map(len, self.titles())), 100)

    def test_control_characters_are_shown_and_not_obeyed(self) -> None:
        text = self.record(STARTED, UserMessageAdded("a\x1b[2J\x00\rb\r\nc\td\x9b\ud800"))
        self.assertIn("\na\\x1b[2J\\x00\\rb\nc\td\\x9b\\ud800\n", text)


class FilesThatFail(RecordTestCase):
    def test_a_failed_write_throws_nothing_and_comes_with_the_next_event(self) -> None:
        recorder = self.recorder()
        away = self.path.parent / "away"
        events = [STARTED, UserMessageAdded("one"), UserMessageAdded("two"), TurnEnded("completed")]
        recorder(LogEntry(1, TIME, events[0]))
        self.path.rename(away)
        self.path.mkdir()
        for event in events[1:3]:
            recorder(LogEntry(2, TIME, event))
        self.path.rmdir()
        away.rename(self.path)
        recorder(LogEntry(4, TIME, events[3]))
        broken = self.text()
        self.path.unlink()
        self.assertEqual(broken, self.record(*events))

    def test_a_record_that_was_deleted_is_made_anew_for_the_users_eyes_only(self) -> None:
        recorder = self.recorder()
        recorder(LogEntry(1, TIME, STARTED))
        self.path.unlink()
        recorder(LogEntry(2, TIME, UserMessageAdded("u")))
        self.assertIn("User", self.text())
        if os.name == "posix":
            self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)

    @unittest.skipUnless(os.name == "posix", "needs links")
    def test_a_link_in_its_place_is_not_written_through(self) -> None:
        target = self.path.parent / "target"
        target.write_bytes(b"mine")
        self.path.symlink_to(target)
        self.recorder()(LogEntry(1, TIME, UserMessageAdded("u")))
        self.assertEqual(target.read_bytes(), b"mine")


class Resuming(RecordTestCase):
    def test_a_session_that_goes_on_is_appended_and_says_so(self) -> None:
        before = self.record(STARTED, UserMessageAdded("one"))
        after = self.record(STARTED, UserMessageAdded("two"))
        self.assertTrue(after.startswith(before))
        self.assertEqual(self.titles(), ["User", "Notice", "User"])
        self.assertEqual(len([heading for heading in structure(after)[0] if heading.startswith("# ")]), 1)

    def test_after_a_record_cut_off_at_any_byte_new_sections_are_sections(self) -> None:
        call = ToolCall("a", "grep", "", {"pattern": "````x"})
        reply = AssistantMessageAdded(AssistantMessage("``` é", (call,)), Usage(), "gpt", "")
        whole = self.record(STARTED, UserMessageAdded("```\none"), reply).encode("utf-8")
        for cut in range(0, len(whole), 1 if generated.LONG else 3):
            self.path.write_bytes(whole[:cut])
            after = self.record(TurnEnded("completed")) if cut else self.record(STARTED, TurnEnded("completed"))
            headings, blocks, closed = structure(after)
            with self.subTest(cut=cut):
                self.assertTrue(closed)
                self.assertEqual(headings[-1], f"## {CLOCK_TIME} Turn ended")
                self.assertEqual(blocks[-1], "completed\n")
