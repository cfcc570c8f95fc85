from __future__ import annotations

import json
import unittest
from typing import Any

from mini_agent.conversation.messages import ToolCall
from mini_agent.model.tool_call_reading import CUT_OFF, clean_name, read_arguments, read_tool_calls

TOOLS = ("read_file", "grep")


def call(arguments: Any = "{}", name: Any = "read_file", **more: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def read(raw_calls: Any, finish_reason: str = "tool_calls") -> tuple[ToolCall, ...]:
    return read_tool_calls(raw_calls, TOOLS, finish_reason)


class Arguments(unittest.TestCase):
    def test_every_shape_of_one_whole_object_is_taken(self) -> None:
        whole = {"path": "a.txt"}
        text = json.dumps(whole)
        for raw in (
            whole,
            text,
            f"  {text}\n",
            json.dumps(text),
            json.dumps(f"```json\n{text}\n```"),
            f"```json\n{text}\n```",
            f"```\n{text}```",
            f"{text}\n</tool_call>",
            f"{text}<|im_end|>",
            f"{text}}}",
            f"{text} That reads the file.",
        ):
            with self.subTest(raw=raw):
                self.assertEqual(read_arguments(raw), (whole, ""))

    def test_no_arguments_are_an_empty_object(self) -> None:
        for raw in (None, "", "  \n", "null", "{}", {}, [], '""'):
            with self.subTest(raw=raw):
                self.assertEqual(read_arguments(raw), ({}, ""))

    def test_a_newline_inside_a_string_is_taken_as_it_stands(self) -> None:
        self.assertEqual(read_arguments('{"patch": "a\n\tb"}'), ({"patch": "a\n\tb"}, ""))

    def test_what_is_not_one_whole_object_does_not_run_and_the_model_is_told_why(self) -> None:
        for raw, words in (
            ('{"path": "a.tx', "invalid JSON: Unterminated string"),
            ('{"path": "a.txt"', "comes the end"),
            ('{"path": "a.txt"}{"path": "b.txt"}', 'where after `{"path": "a.txt"}` comes `{"path": "b.txt"}`'),
            ('{"path": "a.txt"}, "limit": 5}', "there is more after the end of the object"),
            ('{"path": "a.txt"} [1]', "there is more after the end of the object"),
            ("{'path': 'a.txt'}", "comes `'path': 'a.txt'}`"),
            ('{"path": "C:\\dir"}', "Invalid \\escape"),
            ("path=a.txt", "invalid JSON"),
            ("[1, 2]", "must be one JSON object, not an array"),
            ("true", "not a boolean"),
            (5, "not a number"),
            ('"a.txt"', "invalid JSON"),
            ('"\\"a\\""', "not a string"),
            ("[" * 100_000, "nested over 100 levels deep"),
        ):
            with self.subTest(raw=str(raw)[:40]):
                arguments, problem = read_arguments(raw)
                self.assertIsNone(arguments)
                self.assertIn(words, problem)
                self.assertLess(len(problem), 400)

    def test_the_place_of_the_mistake_is_shown_with_what_stands_around_it(self) -> None:
        text = '{"patch": "' + "x" * 5000 + '" "more": 1}'
        _, problem = read_arguments(text)
        self.assertIn("at character 5013 of 5023", problem)
        self.assertIn('xxxx" ` comes `"more": 1}`', problem)


class Calls(unittest.TestCase):
    def test_a_call_keeps_its_arguments_as_written_beside_those_that_were_read(self) -> None:
        [found] = read([call('{"path":\n"a"} ')])
        self.assertEqual(found, ToolCall("c1", "read_file", '{"path":\n"a"} ', {"path": "a"}))

    def test_a_reply_that_was_cut_off_voids_all_of_its_calls(self) -> None:
        calls = read([call('{"path": "a"}'), call('{"path": "b')], finish_reason="length")
        self.assertEqual([found.problem for found in calls], [CUT_OFF, CUT_OFF])

    def test_no_calls_come_in_many_shapes(self) -> None:
        for raw in (None, [], {}, "", "none", 0, [None]):
            with self.subTest(raw=raw):
                self.assertEqual([found for found in read(raw) if found.name], [])

    def test_a_call_alone_and_a_call_without_its_function_object_are_read(self) -> None:
        self.assertEqual(read(call())[0].name, "read_file")
        [flat] = read([{"name": "grep", "arguments": {"pattern": "x"}}])
        self.assertEqual(flat, ToolCall("", "grep", '{"pattern": "x"}', {"pattern": "x"}))

    def test_what_is_no_call_at_all_becomes_one_that_cannot_run(self) -> None:
        for raw in ("read_file", 5, [1], {"function": None}, {"function": "read_file"}, {"function": {"name": None}}):
            with self.subTest(raw=raw):
                [found] = read([raw])
                self.assertEqual(found.name, "")

    def test_an_id_that_is_missing_or_no_text_is_left_for_later(self) -> None:
        self.assertEqual([read([call(id=id)])[0].id for id in (None, "", 7, [1], "x")], ["", "", "7", "", "x"])

    def test_what_the_server_put_on_a_call_beyond_the_standard_is_kept(self) -> None:
        raw = call(extra_content={"google": {"thought_signature": "c2ln"}}, index=0, nothing=None)
        raw["function"]["provider_specific_fields"] = {"signature": "s"}
        [found] = read([raw])
        self.assertEqual(
            found.provider_fields,
            {
                "extra_content": {"google": {"thought_signature": "c2ln"}},
                "function": {"provider_specific_fields": {"signature": "s"}},
            },
        )


class Names(unittest.TestCase):
    def test_a_prefix_and_leaked_markers_are_taken_off_a_known_name(self) -> None:
        for name in (
            "functions.read_file",
            "read_file<|channel|>commentary",
            "<|python_tag|>read_file",
            "functions.read_file<|",
            " read_file ",
            "assistant<|channel|>functions.read_file<|message|>",
        ):
            with self.subTest(name):
                self.assertEqual(clean_name(name, TOOLS), "read_file")

    def test_an_unknown_name_stays_as_it_is(self) -> None:
        for name in ("functions.bash", "bash<|x|>", "read_files", "functions.functions.read_file", ""):
            with self.subTest(name):
                self.assertEqual(clean_name(name, TOOLS), name)
