"""What is sent only grows: through a real server, byte for byte, whatever a session does between two compressions."""

from __future__ import annotations

import json
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mini_agent.composition import Agent, open_agent
from mini_agent.context.compressor import Compressor
from mini_agent.conversation.events import HistorySummarized, ToolOutputCompressed, ToolResultAdded, UserMessageAdded
from mini_agent.session.event_log import LogEntry
from mini_agent.settings import Settings
from tests.model.loopback import Handler, Loopback, plain

Call = tuple[str, dict[str, Any]]
LOOK: list[Call] = [("list_files", {}), ("read_file", {"path": "one.txt"})]


def reads(number: int) -> list[Call]:
    return [("read_file", {"path": f"{number}.txt"})]


def messages_of(body: bytes) -> bytes:
    """Return the messages of a request as they are sent, without what closes their list."""
    text = body.decode("utf-8")
    start = text.index('"messages": [') + len('"messages": ')
    end = json.JSONDecoder().raw_decode(text, start)[1]
    return text[start : end - 1].encode("utf-8")


class Steering(Compressor):
    """Say something for the user before each request but the first."""

    def __call__(self, conversation: Any, record: Any, ask: Any, overflow: Any = None) -> bool:
        if len(conversation.visible_messages()) > 2:
            record(UserMessageAdded("And mind the tests.", steered=True))
        return super().__call__(conversation, record, ask, overflow)


class OnlyGrown(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.workspace = Path(folder.name).resolve()
        for name in ("one", *range(20)):
            (self.workspace / f"{name}.txt").write_text(f"this is {name}\n" + f"line of {name} \u4e2d\n" * 150, "utf-8")
        self.sent: list[tuple[int, bytes]] = []  # requests of the loop, each with the number of changes before it
        self.changes = self.summaries = 0
        self.server = Loopback(self.answer)
        self.server.__enter__()
        self.addCleanup(self.server.__exit__)

    def open(self, *replies: list[Call], resume: str | None = None, **settings: Any) -> Agent:
        """Open an agent whose model makes these calls in turn and answers then, and after every turn again."""
        self.replies: Iterator[list[Call]] = iter(replies)
        values = {"context_window_tokens": 32_768, "stream": "off", **settings}
        agent = open_agent(
            Settings(self.workspace, "m", base_url=self.server.base_url, **values),
            resume=resume,
            listeners=[self.follow],
        )
        self.addCleanup(agent.close)
        return agent

    def follow(self, entry: LogEntry) -> None:
        event = entry.event
        is_change = isinstance(event, (HistorySummarized, ToolOutputCompressed))
        self.changes += is_change or (isinstance(event, ToolResultAdded) and event.hidden)

    def answer(self, handler: Handler) -> None:
        body = handler.loopback.bodies[-1]
        request = json.loads(body)
        usage = {"prompt_tokens": len(body) // 4, "completion_tokens": 9}
        if request["messages"][0]["content"].startswith("You write the summary"):
            self.summaries += 1
            message: dict[str, Any] = {"role": "assistant", "content": "## Done\nmuch"}
        else:
            self.sent.append((self.changes, messages_of(body)))
            message = self.said(next(self.replies, []) if request.get("tool_choice") != "none" else [], request)
        if not request.get("stream"):
            choice = {"message": message, "finish_reason": "stop"}
            return plain(200, json.dumps({"choices": [choice], "usage": usage}))(handler)
        for number, call in enumerate(message.get("tool_calls", [])):
            call["index"] = number
        chunks = [
            {"choices": [{"delta": message}]},
            {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage},
        ]
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
        plain(200, "".join(lines) + "data: [DONE]\n\n", {"Content-Type": "text/event-stream"})(handler)

    def said(self, calls: list[Call], request: dict[str, Any]) -> dict[str, Any]:
        if not calls:
            return {"role": "assistant", "content": "That is all."}
        if "tools" not in request:
            blocks = [json.dumps({"name": name, "arguments": arguments}) for name, arguments in calls]
            return {"role": "assistant", "content": "".join(f"```tool_call\n{block}\n```\n" for block in blocks)}
        made = [
            {
                "id": f"{len(self.sent)}_{at}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(given)},
            }
            for at, (name, given) in enumerate(calls)
        ]
        return {"role": "assistant", "content": "I look.", "tool_calls": made}

    def assert_only_grown(self, requests: int, changes: int = 0) -> None:
        self.assertEqual(len(self.sent), requests)
        broken = 0
        for (changes_before, one), (changes_now, later) in zip(self.sent, self.sent[1:]):
            if changes_before == changes_now:
                self.assertTrue(later.startswith(one), f"{one[-300:]!r} is not how this begins: {later[:300]!r}")
                self.assertGreater(len(later), len(one))
            else:
                broken += not later.startswith(one)
        self.assertEqual(broken, changes)

    def test_with_tools_side_by_side_and_over_several_turns(self) -> None:
        agent = self.open(LOOK, reads(1), [("no_such_tool", {"\u4e2d": 1})], [], LOOK)
        for request in ("What is there?", "Look again. \u4f60\u597d", "Thanks."):
            self.assertEqual(agent.run_turn(request).status, "completed")
        self.assert_only_grown(7)

    def test_streamed(self) -> None:
        agent = self.open(LOOK, reads(1), stream="on")
        self.assertEqual(agent.run_turn("What is there?").status, "completed")
        self.assert_only_grown(3)

    def test_with_tools_called_in_the_text(self) -> None:
        agent = self.open(LOOK, reads(1), [], LOOK, tool_protocol="text")
        for _ in range(2):
            self.assertEqual(agent.run_turn("What is there?").status, "completed")
        self.assertTrue(b"[Result of list_files]" in self.sent[-1][1])
        self.assert_only_grown(5)

    def test_with_words_of_the_user_and_of_the_program_in_between(self) -> None:
        agent = self.open(*[LOOK] * 9, max_tool_rounds=3)
        agent.compressor.__class__ = Steering
        self.assertEqual(agent.run_turn("What is there?").status, "round_limit")
        self.assertTrue(b"And mind the tests." in self.sent[-1][1])
        self.assertTrue(b"has used all of its rounds" in self.sent[-1][1])
        self.assert_only_grown(4)

    def test_resumed(self) -> None:
        agent = self.open(LOOK)
        agent.run_turn("What is there?")
        agent.close()
        self.open(LOOK, resume="").run_turn("And now?")
        self.assert_only_grown(4)

    def test_with_compress_tool_it_changes_where_a_result_is_replaced_and_only_there(self) -> None:
        replacement = {"tool_name": "read_file", "tool_arguments": {"path": "one.txt"}, "replace_content": "one"}
        agent = self.open(LOOK, reads(1), [("compress_tool", {"replacements": [replacement]})], reads(2), reads(3))
        self.assertEqual(agent.run_turn("What is there?").status, "completed")
        self.assertFalse(b'"name": "compress_tool"' in self.sent[-1][1])
        self.assert_only_grown(6, changes=1)

    def test_where_results_are_shortened_it_changes_in_one_step(self) -> None:
        agent = self.open(*map(reads, range(20)), context_window_tokens=16_384)
        self.assertEqual(agent.run_turn("What is there?").status, "completed")
        self.assertEqual(self.summaries, 0)
        self.assertTrue(b"To see all of it, call again: read_file" in self.sent[-1][1])
        self.assert_only_grown(21, changes=len({changes for changes, _ in self.sent}) - 1)

    def test_where_it_is_summarized_it_changes_once_for_each_summary(self) -> None:
        agent = self.open(*map(reads, range(14)), context_window_tokens=4096, shortening=False)
        self.assertEqual(agent.run_turn("What is there?").status, "completed")
        self.assertGreater(self.summaries, 2)
        self.assert_only_grown(15, changes=len({changes for changes, _ in self.sent}) - 1)
