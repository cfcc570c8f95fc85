from __future__ import annotations

import json
import time
import unittest

from mini_agent.conversation.messages import AssistantMessage
from mini_agent.model.text_calls import NOT_ALONE, ONLY_ECHO, TextCalls, find_text_calls
from mini_agent.model.tool_protocol import TextProtocol

NAMES = ["read_file", "grep", "apply_patch"]
CALL = '{"name": "read_file", "arguments": {"path": "a.txt"}}'
XML = "<function=read_file>\n<parameter=path>\na.txt\n</parameter>\n</function>"
KIMI = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>"
    '{"path": "a.txt"}<|tool_call_end|><|tool_calls_section_end|>'
)
DEFINITION = {"name": "read_file", "description": "Read.", "parameters": {"type": "object", "properties": {}}}
ECHO = f"<tools>\n{json.dumps({'type': 'function', 'function': DEFINITION})}\n</tools>\n"


def found_in(text: str, finish_reason: str = "stop", **fields: str) -> TextCalls | None:
    return find_text_calls(AssistantMessage(text, (), fields), NAMES, finish_reason)


class MeantCalls(unittest.TestCase):
    def check(self, text: str, left: str = "", **fields: str) -> None:
        found = found_in(text, **fields)
        assert found is not None, text
        self.assertEqual([(call.name, call.arguments) for call in found.calls], [("read_file", {"path": "a.txt"})])
        self.assertEqual((found.doubt, [call.problem for call in found.calls], found.text), ("", [""], left), text)

    def test_each_form_alone_is_a_call(self) -> None:
        for text in (
            CALL,
            CALL.replace("arguments", "parameters"),
            f"[{CALL}]",
            json.dumps({"type": "function", "function": json.loads(CALL)}),
            json.dumps({"name": "functions.read_file", "arguments": '{"path": "a.txt"}'}),
            f"```json\n{CALL}\n```",
            f"```\n{CALL}",
            f"<tool_call>\n{CALL}\n</tool_call>",
            f"<tool_call>\n{CALL}",
            f"<tools>\n{CALL}\n</tools>",
            f"<tool_call>\n{XML}\n</tool_call>",
            XML + "\n</tool_call>",
            KIMI,
            f"[TOOL_CALLS][{CALL}]",
            f"<|python_tag|>{CALL}<|eom_id|>",
        ):
            with self.subTest(text):
                self.check(text)

    def test_doubled_braces_are_taken_once_but_those_in_a_text_stay(self) -> None:
        self.check("{" + CALL + "}\n\n\n")
        self.check('{{"name": "read_file", "arguments": {{"path": "a.txt"}}}}')
        found = found_in('{{"name": "grep", "arguments": {{"pattern": "{{x}}"}}}}')
        assert found is not None
        self.assertEqual(found.calls[0].arguments, {"pattern": "{{x}}"})

    def test_the_one_block_of_a_reply_is_a_call_and_the_words_before_it_stay(self) -> None:
        self.check(f"I'll read it.\n\n{XML}\n</tool_call>", "I'll read it.")
        self.check(f"I look.\n```json\n{CALL}\n```\nThen I tell.", "I look.")
        self.check(f"<think>hm: ```json\n{CALL}\n```</think>\n{CALL}", f"<think>hm: ```json\n{CALL}\n```</think>")

    def test_the_offered_tools_said_again_and_a_call_said_twice_do_not_count(self) -> None:
        self.check(f"{ECHO}```json\n{CALL}\n```")
        self.check(f"{ECHO}{CALL}")
        self.check(f"First\n```json\n{CALL}\n```\nthen\n```json\n{CALL}\n```\nso.", "First")
        self.check(f"{ECHO}\n<result>\n  {CALL}\n</result>")
        self.check(f"<tools>\n{CALL}\n</tools>\n```json\n{CALL}\n```")

    def test_a_block_in_the_form_of_our_instructions_is_meant_whatever_is_made_up_behind_it(self) -> None:
        block = f"```tool_call\n{CALL}\n```\n"
        self.check(
            f"I look.\n{block}```tool_response\nport = 1\n```\n{block.replace('a.txt', 'b.txt')}So 1.", "I look."
        )

    def test_reasoning_holds_a_call_only_where_there_is_no_text(self) -> None:
        self.check("", reasoning_content=f"I read it. {KIMI}")
        self.check("", reasoning=f"I read it. <tool_call>{CALL}</tool_call>")
        self.assertIsNone(found_in("Done.", reasoning_content=KIMI))
        self.assertIsNone(found_in("", reasoning_content=f"As in\n```json\n{CALL}\n```"))

    def test_several_blocks_behind_one_another_are_several_calls(self) -> None:
        found = found_in(f"<tool_call>{CALL}</tool_call>\n<tool_call>{CALL.replace('a.txt', 'b.txt')}</tool_call>")
        assert found is not None
        self.assertEqual([call.arguments for call in found.calls], [{"path": "a.txt"}, {"path": "b.txt"}])
        self.assertEqual(found.doubt, "")


class Answers(unittest.TestCase):
    def test_what_only_talks_about_a_call_is_an_answer(self) -> None:
        for text in (
            "Done.",
            f"Write `{CALL}` to read a file.",
            f"Like this:\n{CALL}\nIt reads a file.",
            '{"name": "demo", "version": "1.0", "parameters": {}}',
            '{"name": "read_file"}',
            '```json\n{"name": "read_file", "arguments": {"type": "object"}}\n```',
            json.dumps(DEFINITION),
            '<config>{"a": 1}</config>',
            "{{ template }}",
            "{",
            "```\n```",
        ):
            with self.subTest(text):
                self.assertIsNone(found_in(text))

    def test_a_long_text_of_beginnings_is_read_in_time(self) -> None:
        started = time.monotonic()
        beginnings = (
            "<tool_call>",
            "<function=x>",
            "<parameter=x>",
            "<|tool_call_begin|>",
            "```\n",
            "<a>{",
            "{{",
            '"',
            "\n{",
        )
        for text in (*beginnings, '```tool_call\n{"name": "grep", "arguments": {}}\n'):
            message = AssistantMessage("<function=x>" + text * (100_000 // len(text)))
            find_text_calls(message, NAMES, "stop")
            find_text_calls(AssistantMessage(text * (100_000 // len(text))), NAMES, "stop")
            TextProtocol().incoming(message, NAMES, "stop")
        self.assertLess(time.monotonic() - started, 20)


class DoubtfulCalls(unittest.TestCase):
    def check(self, text: str, doubt: str = "", problem: str = "", finish_reason: str = "stop") -> None:
        found = found_in(text, finish_reason)
        assert found is not None, text
        self.assertEqual(found.doubt, doubt)
        self.assertIn(problem, found.calls[0].problem)
        self.assertTrue(found.doubt or found.calls[0].problem)

    def test_what_has_the_form_of_a_call_is_one_though_no_tool_has_its_name(self) -> None:
        found = found_in('```json\n{"name": "settings.ini", "arguments": {"path": "settings.ini"}}\n```')
        assert found is not None
        self.assertEqual(found.calls[0].name, "settings.ini")
        self.assertIsNone(found_in('{"name": "settings.ini", "arguments": "none"}'))
        self.assertIsNone(found_in('{"name": "settings.ini", "arguments": {}, "size": 5}'))

    def test_a_bare_object_at_the_end_of_other_text(self) -> None:
        self.check(f"I read it.\n{CALL}", NOT_ALONE)

    def test_the_offered_tools_said_again(self) -> None:
        for text, left in (
            (ECHO, ""),
            (f"{ECHO}```", "```"),
            ("I look. <tools></tools>", "I look."),
            (ECHO.replace('"}', '"', 1), ""),
            ('<tools><function name="read_file" path="a.txt"/></tools>\nIt says: 5', "It says: 5"),
        ):
            self.assertEqual(found_in(text), TextCalls((), left, ONLY_ECHO))

    def test_a_call_with_other_code_and_text_behind_it_may_be_talk(self) -> None:
        for text in (
            f"```json\n{CALL}\n```\nIt says:\n```\nport = 1\n```\nSo the port is 1.",
            f"1. Look:\n```json\n{CALL}\n```\n2. Then:\n```json\n{CALL.replace('a.txt', 'b.txt')}\n```\nThat is all.",
        ):
            found = found_in(text)
            assert found is not None
            self.assertEqual((found.doubt, found.may_be_talk), (NOT_ALONE, True))

    def test_a_call_at_the_end_behind_other_code(self) -> None:
        self.check(f"```python\nx = 1\n```\n```json\n{CALL}\n```", NOT_ALONE)

    def test_what_is_not_whole_has_a_problem(self) -> None:
        self.check(f"<tool_call>{CALL[:-1]}</tool_call>", "", "invalid JSON")
        self.check(CALL[:-1], "", "invalid JSON")
        self.check(f"{CALL} and so on", "", "stands around it")
        self.check("<function=read_file>\n<parameter=path>\na.t", "", "no end")
        self.check("<function=read_file>\n<parameter=path>\na.t</function>", "", "no end")
        self.check(KIMI.split("<|tool_call_end|>")[0], "", "no end")
        self.check("<tool_call>soon</tool_call>", "", "invalid JSON")

    def test_a_reply_cut_at_its_limit_has_no_call_that_may_run(self) -> None:
        self.check(CALL, "", "cut off", finish_reason="length")


if __name__ == "__main__":
    unittest.main()
