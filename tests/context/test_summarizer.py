from __future__ import annotations

import json
import unittest
from collections.abc import Sequence

from mini_agent.context.summarizer import HEADER, WrittenSummary, read_summary, summarize, transcript
from mini_agent.context.tokens import message_tokens, text_tokens
from mini_agent.conversation.messages import (
    AssistantMessage,
    Message,
    Summary,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from mini_agent.model.chat_model import BadReply, ContextOverflow, ModelError, ModelReply, ServerFailed

HISTORY: list[Message] = [
    UserMessage("Mend the parser."),
    Summary(HEADER + "## Done\nThe lexer is read."),
    UserMessage("Leave the tests alone."),
    AssistantMessage("I look.", (ToolCall("1", "read_file", '{"path": "parser.py"}', {"path": "parser.py"}),)),
    ToolResult("1", "read_file", "def parse():\n    raise KeyError"),
]
KEPT = [UserMessage("Mend the parser.")]


class Asked:
    """Answer the request for a summary, and keep it."""

    def __init__(self, answer: str | ModelError) -> None:
        self.answer = answer
        self.messages: list[Message] = []

    def __call__(self, messages: Sequence[Message]) -> ModelReply:
        self.messages = list(messages)
        if isinstance(self.answer, ModelError):
            raise self.answer
        return ModelReply(AssistantMessage(self.answer), Usage(100, 20))


def summary_of(answer: str | ModelError, history: Sequence[Message] = HISTORY, limit: int = 500) -> WrittenSummary:
    return summarize(history, KEPT, Asked(answer), limit_tokens=limit, input_tokens=3000)


class Answers(unittest.TestCase):
    def test_prose_is_taken_as_it_is(self) -> None:
        self.assertEqual(read_summary("  ## Done\nAll of it.\n"), "## Done\nAll of it.")
        self.assertEqual(read_summary("```markdown\n## Done\nAll of it.\n```"), "## Done\nAll of it.")

    def test_json_becomes_sections_bare_fenced_or_with_words_around_it(self) -> None:
        data = {"goal": "to parse", "done": ["a", {"b": 1}], "exact_values": {"port": 80}, "next_step": None}
        bare = json.dumps(data)
        expected = "## Goal\nto parse\n\n## Done\n- a\n- - b: 1\n\n## Exact values\n- port: 80"
        for answer in (bare, f"```json\n{bare}\n```", f"Here it is:\n```\n{bare}\n```\nBye", f"Here: {bare} Bye"):
            self.assertEqual(read_summary(answer), expected)

    def test_json_that_the_prose_only_quotes_stays_where_it_is(self) -> None:
        prose = 'The settings are {"port": 80} and must stay.'
        self.assertEqual(read_summary(prose), prose)

    def test_an_answer_of_empty_sections_is_empty(self) -> None:
        self.assertEqual(read_summary('{"goal": " ", "done": []}'), "")

    def test_json_too_deep_to_be_read_is_prose(self) -> None:
        for deep in ("[" * 100_000, '{"goal": ' + "[" * 800 + "]" * 800 + "}"):
            self.assertTrue(read_summary(deep))


class Requests(unittest.TestCase):
    def test_the_earlier_summary_goes_in_without_its_header(self) -> None:
        asked = Asked("## Done\nall")
        summarize(HISTORY, KEPT, asked, limit_tokens=500, input_tokens=3000)
        text = asked.messages[1].text
        self.assertIn("### Earlier summary\n## Done\nThe lexer is read.", text)
        self.assertNotIn(HEADER, text)
        self.assertIn("### Result of read_file\ndef parse():", text)

    def test_the_request_keeps_to_the_input_limit_whatever_the_history(self) -> None:
        histories = [[UserMessage("x" * 100_000)], [UserMessage("一二" * 30)] * 5000, [*HISTORY * 300]]
        for history in histories:
            asked = Asked("all")
            summarize(history, [], asked, limit_tokens=300, input_tokens=1200)
            self.assertLessEqual(sum(map(message_tokens, asked.messages)), 1200)

    def test_the_longest_messages_are_cut_first(self) -> None:
        text = transcript([UserMessage("short one"), UserMessage("x" * 9000), UserMessage("short two")], 300)
        self.assertIn("short one", text)
        self.assertIn("short two", text)
        self.assertLessEqual(text_tokens(text), 300)


class Failures(unittest.TestCase):
    def test_a_summary_has_its_header_its_usage_and_no_problem(self) -> None:
        self.assertEqual(summary_of("## Done\nall"), WrittenSummary(HEADER + "## Done\nall", Usage(100, 20)))

    def test_a_summary_longer_than_its_limit_is_cut(self) -> None:
        self.assertLessEqual(text_tokens(summary_of("word " * 9000, limit=200).text), 200)

    def test_a_failing_model_gives_a_summary_from_the_messages(self) -> None:
        for error in (ServerFailed("it is down"), ContextOverflow("too large"), BadReply("")):
            summary = summary_of(error)
            self.assertEqual(summary.problem, str(error) or "the model failed (bad_reply)")
            for part in ("The lexer is read.", "Leave the tests alone.", "parser.py", "def parse(): raise KeyError"):
                self.assertIn(part, summary.text)
            self.assertNotIn("Mend the parser.", summary.text)  # it stays in the user's own words

    def test_an_empty_answer_gives_a_summary_from_the_messages_and_is_paid_for(self) -> None:
        for answer in ("", " \n ", '{"goal": ""}'):
            summary = summary_of(answer)
            self.assertTrue(summary.problem)
            self.assertEqual(summary.usage, Usage(100, 20))
            self.assertIn("read_file", summary.text)

    def test_ctrl_c_passes_through(self) -> None:
        def ask(messages: Sequence[Message]) -> ModelReply:
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            summarize(HISTORY, KEPT, ask, limit_tokens=500, input_tokens=3000)

    def test_a_summary_from_the_messages_keeps_to_its_limit_and_repeats_no_header(self) -> None:
        history = HISTORY * 200
        for _ in range(3):
            for limit in (64, 200, 1000):
                summary = summary_of(ServerFailed("down"), history, limit)
                self.assertLessEqual(text_tokens(summary.text), limit)
                self.assertEqual(summary.text.count(HEADER), 1)
            history = [Summary(summary.text), *history]
