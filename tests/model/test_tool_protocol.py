from __future__ import annotations

import json
import unittest

from mini_agent.conversation.messages import (
    AssistantMessage,
    Reminder,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserMessage,
)
from mini_agent.model.tool_call_reading import CUT_OFF
from mini_agent.model.tool_protocol import NativeProtocol, TextProtocol
from mini_agent.tools.compress_tool import CompressTool
from mini_agent.tools.tool import parameters_schema

NAMES = ["read_file", "apply_patch"]


def block(name: str, **arguments: str) -> str:
    return f"```tool_call\n{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}\n```"


def read(text: str, finish_reason: str = "stop") -> AssistantMessage:
    return TextProtocol().incoming(AssistantMessage(text), NAMES, finish_reason)


class CallsInBlocks(unittest.TestCase):
    def test_a_block_is_a_call_of_any_tool_and_the_words_before_it_stay(self) -> None:
        message = read("I change it.\n" + block("apply_patch", patch="--- a\n+++ b"))
        [call] = message.tool_calls
        self.assertEqual(
            (message.text, call.name, call.arguments), ("I change it.", "apply_patch", {"patch": "--- a\n+++ b"})
        )
        self.assertEqual(call.problem, "")

    def test_several_blocks_are_calls_in_their_order(self) -> None:
        message = read(block("read_file", path="a") + "\n" + block("read_file", path="b"))
        self.assertEqual([call.arguments for call in message.tool_calls], [{"path": "a"}, {"path": "b"}])

    def test_a_fence_inside_of_an_argument_does_not_end_the_block(self) -> None:
        text = '```tool_call\n{"name": "apply_patch", "arguments": {"patch": "+```\n+x\n```\n"}}\n```\nbehind'
        message = read(text)
        self.assertEqual(message.tool_calls[0].arguments, {"patch": "+```\n+x\n```\n"})
        self.assertEqual(message.text, "")

    def test_a_made_up_result_behind_a_block_is_left_out_with_all_that_follows(self) -> None:
        behind = f"[Result of read_file]\n1\n{block('read_file', path='b')}\nIt is 1."
        text = f"I look.\n{block('read_file', path='a')}\n{behind}"
        message = read(text)
        self.assertEqual([call.arguments for call in message.tool_calls], [{"path": "a"}])
        self.assertEqual(message.text, "I look.")

    def test_a_block_in_the_thoughts_is_no_call(self) -> None:
        message = read(f"<think>{block('read_file', path='a')}</think>\n{block('read_file', path='b')}")
        self.assertEqual([call.arguments for call in message.tool_calls], [{"path": "b"}])

    def test_what_is_left_out_at_the_end_does_not_matter(self) -> None:
        for text in (block("read_file", path="a")[:-4], '```tool_call\n{"name": "read_file"}\n```'):
            with self.subTest(text):
                self.assertEqual([call.problem for call in read(text).tool_calls], [""])

    def test_a_block_that_cannot_be_read_is_a_call_with_a_problem(self) -> None:
        [call] = read(block("read_file", path="a").replace("}}", "}")).tool_calls
        self.assertEqual((call.name, call.arguments), ("read_file", None))
        self.assertIn("invalid JSON", call.problem)

    def test_a_reply_cut_at_its_limit_has_no_call_that_may_run(self) -> None:
        self.assertEqual([call.problem for call in read(block("read_file", path="a"), "length").tool_calls], [CUT_OFF])

    def test_a_reply_without_a_block_is_an_answer(self) -> None:
        for text in ("Done.", "Write ```tool_call to call.", "```json\n{}\n```", "```tool_call\n```"):
            with self.subTest(text):
                self.assertEqual(read(text), AssistantMessage(text))


class MessagesAsText(unittest.TestCase):
    CALLS = (ToolCall("1", "read_file", "", {"path": "é"}), ToolCall("2", "read_file", "{half", None, "broken"))
    HISTORY = (
        SystemMessage("s"),
        UserMessage("u"),
        AssistantMessage("I look.", CALLS, {"reasoning": "hm"}),
        ToolResult("1", "read_file", "one"),
        ToolResult("2", "read_file", "two", True),
        AssistantMessage("Done."),
    )

    def test_calls_become_blocks_and_the_results_of_a_reply_one_message(self) -> None:
        sent = TextProtocol().outgoing(self.HISTORY)
        calls = f"I look.\n\n{block('read_file', path='é')}\n\n```tool_call\n{{half\n```"
        self.assertEqual(sent, [
            SystemMessage("s"),
            UserMessage("u"),
            AssistantMessage(calls, (), {"reasoning": "hm"}),
            Reminder("[Result of read_file]\none\n\n[Result of read_file]\ntwo\n\n"
            "[If this is enough to answer the request, answer it now in plain words and without a call.]"),
            AssistantMessage("Done."),
        ])  # fmt: skip

    def test_what_is_sent_only_grows(self) -> None:
        sent = TextProtocol().outgoing(self.HISTORY)
        for end in (2, 5):
            before = TextProtocol().outgoing(self.HISTORY[:end])
            self.assertEqual(sent[: len(before)], before)

    def test_a_call_reads_back_as_it_was(self) -> None:
        [call, _] = read(TextProtocol().outgoing(self.HISTORY)[2].text).tool_calls
        self.assertEqual((call.name, call.arguments), ("read_file", {"path": "é"}))


class WhereToolsAreTold(unittest.TestCase):
    def test_natively_all_stays_as_it_is(self) -> None:
        native, tools = NativeProtocol(), [{"name": "grep"}]
        message = AssistantMessage(block("read_file", path="a"))
        self.assertEqual((native.instructions(tools), native.offered(tools)), ("", tools))
        self.assertEqual(native.outgoing(MessagesAsText.HISTORY), MessagesAsText.HISTORY)
        self.assertEqual(native.incoming(message, NAMES, "stop"), message)

    def test_in_text_the_instructions_name_each_argument_with_its_type_and_default(self) -> None:
        tool = CompressTool(list, lambda name, arguments: "")
        described = {
            "name": tool.name,
            "description": tool.description,
            "parameters": parameters_schema(tool.parameters),
        }
        text = TextProtocol().instructions([described])
        self.assertEqual(TextProtocol().offered([described]), ())
        for line in ("- compress_tool: ", "\n    replacements (array): ", "\n        tool_name (string): "):
            self.assertIn(line, text)


if __name__ == "__main__":
    unittest.main()
