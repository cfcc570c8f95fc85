from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

from mini_agent.conversation.messages import AssistantMessage, ToolCall, Usage, UserMessage
from mini_agent.model.chat_model import BadReply, ContextOverflow, ModelReply, ServerFailed
from mini_agent.model.scripted import ScriptedModel, load_script
from tests.model.loopback import KeptWatch

TOOL = {"name": "grep", "description": "Search.", "parameters": {}}


class Scripts(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "script.json"
        self.watch = KeptWatch()

    def load(self, data: Any) -> ScriptedModel:
        self.path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
        return load_script(self.path)

    def ask(self, model: ScriptedModel) -> ModelReply:
        return model.reply([UserMessage("u")], [TOOL], self.watch)

    def test_each_reply_is_given_once_in_order_and_shown(self) -> None:
        calls = [{"name": "grep", "arguments": {"pattern": "x"}}]
        model = self.load({"replies": [{"text": "a", "tool_calls": calls}, {"text": "b", "usage": {"input": 7}}]})
        first, second = self.ask(model), self.ask(model)
        self.assertEqual(
            first.message, AssistantMessage("a", (ToolCall("", "grep", '{"pattern": "x"}', {"pattern": "x"}),))
        )
        self.assertEqual((first.finish_reason, second.finish_reason), ("tool_calls", "stop"))
        self.assertEqual((second.message.text, second.usage), ("b", Usage(7, 0, 0)))
        self.assertEqual(self.watch.texts, ["a", "b"])
        with self.assertRaisesRegex(BadReply, "no more replies"):
            self.ask(model)

    def test_a_script_can_fail_as_a_server_does(self) -> None:
        errors = [{"error": "server_failed", "text": "down"}, {"error": "context_overflow", "text": "too long"}]
        model = self.load({"replies": errors})
        with self.assertRaisesRegex(ServerFailed, "down"):
            self.ask(model)
        with self.assertRaisesRegex(ContextOverflow, "too long"):
            self.ask(model)

    def test_arguments_written_as_text_are_read_like_a_servers(self) -> None:
        calls = [{"name": "grep", "arguments": '{"pattern": "x'}, {"name": "grep", "arguments": '{"pattern": "x"}'}]
        cut, whole = self.ask(self.load({"replies": [{"tool_calls": calls}]})).message.tool_calls
        self.assertIsNone(cut.arguments)
        self.assertIn("invalid JSON", cut.problem)
        self.assertEqual((whole.arguments, whole.problem), ({"pattern": "x"}, ""))

    def test_a_request_without_tools_gets_the_next_summary_and_no_reply(self) -> None:
        model = self.load({"replies": [{"text": "a"}], "summaries": ["s1", "s2"]})
        summaries = [model.reply([], [], self.watch).message.text for _ in range(3)]
        self.assertEqual(summaries, ["s1", "s2", "(The script has no summary.)"])
        self.assertEqual(self.ask(model).message.text, "a")

    def test_steps_can_be_functions_of_the_request_and_come_from_a_generator(self) -> None:
        model = ScriptedModel(lambda messages, tools, n=n: ModelReply(AssistantMessage(str(n))) for n in (1, 2))
        self.assertEqual([self.ask(model).message.text for _ in range(2)], ["1", "2"])

    def test_what_is_no_script_is_told_with_its_place(self) -> None:
        for data, words in (
            ("{", "not JSON"),
            ("[" * 100_000, "nested"),
            ([], 'a list "replies"'),
            ({}, 'a list "replies"'),
            ({"replies": {}}, 'a list "replies"'),
            ({"replies": [], "summaries": "s"}, "summaries"),
            ({"replies": [{}, 5]}, "reply 2"),
            ({"replies": [{"error": "no_such_error"}]}, "reply 1: no such error: 'no_such_error'; there are"),
            ({"replies": [{"error": []}]}, "reply 1"),
            ({"replies": [{"tool_calls": [{}]}]}, "reply 1: a tool call has no name"),
            ({"replies": [{"tool_calls": 5}]}, "reply 1"),
            ({"replies": [{"usage": 5}]}, "reply 1"),
            ({"replies": [{"content": "Hello."}]}, "and no content"),
            ({"replies": [{"usage": {"input": "many"}}]}, "reply 1"),
        ):
            with self.subTest(data=str(data)[:40]), self.assertRaises(ValueError) as caught:
                self.load(data)
            self.assertIn(words, str(caught.exception))
            self.assertIn(str(self.path), str(caught.exception))

    def test_a_script_that_is_no_text_is_told_and_one_with_a_byte_order_mark_is_read(self) -> None:
        self.path.write_bytes(b"\xff\xfe{}")
        with self.assertRaisesRegex(ValueError, "not JSON"):
            load_script(self.path)
        self.assertIsInstance(self.load('\ufeff{"replies": []}'), ScriptedModel)

    def test_a_missing_file_is_an_os_error(self) -> None:
        with self.assertRaises(FileNotFoundError):
            load_script(self.path)
