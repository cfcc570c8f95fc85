from __future__ import annotations

import json
import unittest
from typing import Any
from unittest import mock

from mini_agent.conversation.conversation import Conversation
from mini_agent.conversation.events import (
    AssistantMessageAdded,
    HistorySummarized,
    Notice,
    ToolOutputCompressed,
    ToolResultAdded,
    UserMessageAdded,
)
from mini_agent.conversation.messages import AssistantMessage, Summary, ToolCall, ToolResult
from mini_agent.tools.compress_tool import CompressTool
from mini_agent.tools.tool import Parameter, ToolOutcome
from mini_agent.tools.toolbox import Toolbox

LONG = "line of a file\n" * 20


class ReadFile:
    name = "read_file"
    description = "Read a file."
    parameters = (
        Parameter("path", "string", "which", required=True),
        Parameter("offset", "integer", "from where", 1),
        Parameter("limit", "integer", "how much", 2000),
    )
    time_limit_seconds = 60.0
    narrowing = ""
    only_reads = True

    def run(self, arguments: Any) -> ToolOutcome:
        return ToolOutcome(LONG)


class CompressToolTest(unittest.TestCase):
    """The tool in its toolbox, with the conversation that the runner would keep."""

    def setUp(self) -> None:
        self.conversation = Conversation()
        compress_tool = CompressTool(
            self.conversation.earlier_results, lambda name, arguments: self.toolbox.canonical(name, arguments)
        )
        self.toolbox = Toolbox([ReadFile(), compress_tool])
        self.conversation.apply(UserMessageAdded("the task"))
        self.number = 0

    def call(self, name: str, arguments: Any, text: str = "") -> ToolOutcome:
        """Do what the runner does for one reply with one call."""
        self.number += 1
        call = ToolCall(f"call_{self.number}", name, json.dumps(arguments), arguments)
        self.conversation.apply(AssistantMessageAdded(AssistantMessage(text, (call,)), None, "", ""))
        return self.run_call(call)

    def run_call(self, call: ToolCall) -> ToolOutcome:
        outcome = self.toolbox.run(call)
        for event in outcome.events:
            self.conversation.apply(event)
        canonical = self.toolbox.canonical_form(call)
        self.conversation.apply(
            ToolResultAdded(call.id, call.name, outcome.text, outcome.is_error, canonical, outcome.hide_call)
        )
        return outcome

    def read(self, path: str = "a.py", **more: Any) -> None:
        self.call("read_file", {"path": path, **more})

    def compress(self, content: str, arguments: Any = None, name: str = "read_file", text: str = "") -> ToolOutcome:
        return self.compress_all(self.item(content, arguments, name), text=text)

    def compress_all(self, *items: Any, text: str = "") -> ToolOutcome:
        return self.call("compress_tool", {"replacements": list(items)}, text)

    @staticmethod
    def item(content: str, arguments: Any = None, name: str = "read_file") -> dict[str, Any]:
        return {"tool_name": name, "tool_arguments": arguments or {"path": "a.py"}, "replace_content": content}

    def seen(self) -> list[str]:
        """Return the results that the model sees."""
        return [m.text for m in self.conversation.visible_messages() if isinstance(m, ToolResult)]


class Replacing(CompressToolTest):
    def test_the_named_result_is_replaced_and_the_call_for_it_is_hidden(self) -> None:
        self.read("a.py")
        self.read("b.py")
        outcome = self.compress("a.py: nothing of note")
        self.assertTrue(outcome.hide_call)
        self.assertFalse(outcome.is_error)
        self.assertEqual(
            outcome.events,
            (
                ToolOutputCompressed("call_1", "a.py: nothing of note", len(LONG)),
                Notice("compress_tool: Replaced 1 result; 279 characters saved."),
            ),
        )
        self.assertEqual(self.seen(), ["a.py: nothing of note", LONG])
        self.assertEqual(len(self.conversation.visible_messages()), 5)

    def test_text_beside_the_hidden_call_stays(self) -> None:
        self.read()
        self.compress("short", text="I note what matters.")
        self.assertEqual(self.conversation.visible_messages()[-1], AssistantMessage("I note what matters."))

    def test_key_order_written_out_defaults_numbers_as_text_and_a_prefix_do_not_matter(self) -> None:
        same = {"limit": "2000", "offset": 1, "path": "a.py"}
        for name in ("read_file", "functions.read_file"):
            for arguments in ({"path": "a.py"}, same, json.dumps(same), {"path": "a.py", "offset": None}):
                with self.subTest(name=name, arguments=arguments):
                    self.setUp()
                    self.read()
                    self.assertTrue(self.compress("short", arguments, name).hide_call)
                    self.assertEqual(self.seen(), ["short"])

    def test_other_arguments_are_another_call(self) -> None:
        self.read(offset=5)
        self.assertTrue(self.compress("short").is_error)

    def test_the_replacements_may_come_as_json_text(self) -> None:
        self.read()
        self.assertTrue(self.call("compress_tool", {"replacements": json.dumps([self.item("short")])}).hide_call)

    def test_arguments_may_be_left_out_where_the_call_had_none(self) -> None:
        self.call("list_files", {})
        outcome = self.call("compress_tool", {"replacements": [{"tool_name": "list_files", "replace_content": "no"}]})
        self.assertTrue(outcome.hide_call, outcome.text)

    def test_it_may_stand_in_one_batch_behind_the_call_that_it_names(self) -> None:
        arguments = {"replacements": [self.item("short")]}
        calls = (ToolCall("1", "read_file", "", {"path": "a.py"}), ToolCall("2", "compress_tool", "", arguments))
        self.conversation.apply(AssistantMessageAdded(AssistantMessage("", calls), None, "", ""))
        for call in calls:
            self.run_call(call)
        self.assertEqual(self.seen(), ["short"])
        self.assertEqual(self.conversation.visible_messages()[1], AssistantMessage("", calls[:1]))


class RepeatedCalls(CompressToolTest):
    def test_all_but_the_newest_are_replaced_and_then_the_newest_too(self) -> None:
        for _ in range(3):
            self.read()
        self.compress("short")
        self.assertEqual(self.seen(), ["short", "short", LONG])
        self.compress("newest")
        self.assertEqual(self.seen(), ["short", "short", "newest"])

    def test_the_only_one_left_uncompressed_is_replaced_even_when_it_is_the_newest(self) -> None:
        self.read()
        self.compress("short")
        self.read()
        self.compress("again")
        self.assertEqual(self.seen(), ["short", "again"])

    def test_an_earlier_result_that_is_short_anyway_does_not_keep_the_newest_from_being_replaced(self) -> None:
        with mock.patch.object(ReadFile, "run", lambda tool, arguments: ToolOutcome("no such file", is_error=True)):
            self.read()
        self.read()
        self.assertTrue(self.compress("the facts of that file").hide_call)
        self.assertEqual(self.seen(), ["no such file", "the facts of that file"])

    def test_a_result_can_be_replaced_twice_and_no_more(self) -> None:
        self.read()
        self.assertTrue(self.compress("shorter text").hide_call)
        self.assertTrue(self.compress("short").hide_call)
        outcome = self.compress("no")
        self.assertIn("Error [compressed_already]", outcome.text)
        self.assertEqual(self.seen()[0], "short")

    def test_two_replacements_of_one_result_in_one_call_count_as_two(self) -> None:
        self.read()
        outcome = self.compress_all(self.item("first text"), self.item("second"), self.item("3"))
        self.assertEqual(self.seen()[0], "second")
        self.assertIn("3. Error [compressed_already]", outcome.text)


class Refusals(CompressToolTest):
    def test_each_replacement_succeeds_or_fails_alone_and_the_answer_says_which(self) -> None:
        self.read("a.py")
        self.read("b.py")
        outcome = self.compress_all(
            self.item("short"), self.item(" \n", {"path": "b.py"}), self.item("x", {"path": "c"})
        )
        self.assertEqual([line[:10] for line in outcome.text.splitlines()], ["1. Replace", "2. Error [", "3. Error ["])
        self.assertFalse(outcome.hide_call or outcome.is_error)
        self.assertEqual(self.seen()[:2], ["short", LONG])
        self.assertEqual(len(self.seen()), 3)  # the answer is shown, for something in it failed

    def test_a_replacement_must_be_shorter_in_bytes_too(self) -> None:
        self.read()
        for content in (LONG, LONG + "x", "一" * (len(LONG) // 2)):
            self.assertIn("Error [not_shorter]", self.compress(content).text)
        self.assertEqual(self.seen()[0], LONG)

    def test_a_blank_replacement_is_refused(self) -> None:
        self.read()
        self.assertIn("Error [blank]", self.compress(" \n\t").text)

    def test_a_call_that_was_not_made_is_answered_with_those_that_were(self) -> None:
        self.read("lib/a.py")
        text = self.compress("short").text
        self.assertIn("Error [no_such_call]", text)
        self.assertIn('read_file {"limit": 2000, "offset": 1, "path": "lib/a.py"}', text)
        self.assertIn("There are results of: read_file", self.compress("short", {}, "grep").text)

    def test_its_own_calls_cannot_be_named(self) -> None:
        self.read()
        self.compress("x" * 5000)
        arguments = {"replacements": [self.item("x" * 5000)]}
        for name in ("compress_tool", "functions.compress_tool"):
            self.assertIn("Error [not_compressible]", self.compress("no", arguments, name).text)

    def test_what_a_compression_of_the_history_took_away_cannot_be_named(self) -> None:
        self.read()
        self.conversation.apply(HistorySummarized((Summary("all"),), 3, 2, 1, ""))
        self.assertIn("There are results of: no tool", self.compress("short").text)

    def test_malformed_arguments_are_all_told_at_once(self) -> None:
        outcome = self.compress_all({"tool_name": 1, "tool_arguments": "no JSON"}, "text")
        for part in ("replacements[0].tool_name", "tool_arguments", "replace_content", "replacements[1]"):
            self.assertIn(part, outcome.text)
        self.assertIn("Error [bad_arguments]", self.compress_all().text)

    def test_the_description_tells_when_to_use_it_and_when_not(self) -> None:
        for part in (
            "facts",
            "names, numbers, paths",
            "line numbers",
            "error",
            "diffs",
            "stack traces",
            "test failures",
        ):
            self.assertIn(part, CompressTool.description)
