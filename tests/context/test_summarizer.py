from __future__ import annotations

import json
import unittest
from collections.abc import Sequence
from typing import Any

from mini_agent.context.summarizer import (
    ATTEMPTS,
    HEADER,
    MOST_PIECES,
    Material,
    WrittenSummary,
    read_summary,
    summarize,
    transcript,
)
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


FILES = "\n\n## Files, by the program's own record\nRead: parser.py"


class Asked:
    """Answer the requests for a summary in turn, the last answer again and again, and keep them."""

    def __init__(self, *answers: str | ModelError) -> None:
        self.answers = answers
        self.requests: list[Sequence[Message]] = []

    def __call__(self, messages: Sequence[Message]) -> ModelReply:
        self.requests.append(messages)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if isinstance(answer, ModelError):
            raise answer
        return ModelReply(AssistantMessage(answer), Usage(100, 20))

    def pieces(self) -> list[str]:
        return [messages[1].text.partition("\n</conversation>")[0] for messages in self.requests]


def summary_by(
    asked: Asked, history: Sequence[Message] = HISTORY, limit: int = 500, size: int = 3000, **material: Any
) -> WrittenSummary:
    return summarize(Material(history, KEPT, **material), asked, limit_tokens=limit, input_tokens=size)


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
    def test_the_earlier_summary_goes_in_without_what_the_program_wrote_of_it(self) -> None:
        asked = Asked("## Done\nall")
        summary_by(asked, [*HISTORY, Summary(HEADER + "## Done\nmore" + FILES)])
        (piece,) = asked.pieces()
        self.assertIn("### Earlier summary\n## Done\nThe lexer is read.", piece)
        self.assertIn("### Earlier summary\n## Done\nmore", piece)
        self.assertNotIn(HEADER, piece)
        self.assertNotIn("own record", piece)
        self.assertIn("### Result of read_file\ndef parse():", piece)

    def test_a_request_keeps_to_the_input_limit_whatever_the_history(self) -> None:
        histories = [[UserMessage("x" * 100_000)], [UserMessage("一二\udc80" * 30)] * 5000, [*HISTORY * 300]]
        for history in histories:
            asked = Asked("all " * 2000)
            summary_by(asked, history, limit=300, size=1200)
            for messages in asked.requests:
                self.assertLessEqual(sum(map(message_tokens, messages)), 1200)
            self.assertLessEqual(len(asked.requests), MOST_PIECES + 1)

    def test_the_longest_messages_are_cut_first(self) -> None:
        history = [UserMessage("short one"), UserMessage("x" * 9000), UserMessage("short two")]
        text = transcript(Material(history), 300)
        self.assertIn("short one", text)
        self.assertIn("short two", text)
        self.assertLessEqual(text_tokens(text), 300)

    def test_what_is_too_long_for_one_request_goes_in_pieces_and_nothing_is_left_out(self) -> None:
        history = [UserMessage(f"fact {number} " + "x" * 400) for number in range(40)]
        asked = Asked(*(f"summary {number}" for number in range(40)))
        summary = summary_by(asked, history, limit=200, size=1500)
        self.assertGreater(len(asked.requests), 3)
        told = "".join(asked.pieces())
        self.assertEqual([number for number in range(40) if f"fact {number} " not in told], [])
        for number, piece in enumerate(asked.pieces()[1:]):
            self.assertIn(f"### Earlier summary\nsummary {number}\n\n### User", piece)  # cut between two messages
        self.assertEqual(summary.text, f"{HEADER}summary {len(asked.requests) - 1}")
        self.assertEqual(summary.usage, Usage(100 * len(asked.requests), 20 * len(asked.requests)))

    def test_the_first_part_of_a_turn_that_goes_on_is_told_apart(self) -> None:
        asked = Asked("all")
        summary_by(asked, turn_from=3)
        before, mark, behind = asked.pieces()[0].partition("the first part of the turn that goes on")
        self.assertIn("Leave the tests alone.", before)
        self.assertTrue(mark and "I look." in behind)


class Files(unittest.TestCase):
    def test_what_was_read_and_changed_is_told_by_the_program_and_not_by_the_model(self) -> None:
        summary = summary_by(Asked("I read nothing."), changed_files=["a.py", "b.py"])
        files = "## Files, by the program's own record\nChanged: a.py, b.py\nRead: parser.py"
        self.assertEqual(summary.text, f"{HEADER}I read nothing.\n\n{files}")

    def test_what_was_read_before_the_earlier_summary_stays_and_failed_reads_do_not_count(self) -> None:
        first = summary_by(Asked("one"))
        call = ToolCall("2", "read_file", "{}", {"path": "lexer.py"})
        missing = ToolCall("3", "read_file", "{}", {"path": "none.py"})
        results = [ToolResult("2", "read_file", "text"), ToolResult("3", "read_file", "Error [missing]", True)]
        second = summary_by(Asked("two"), [Summary(first.text), AssistantMessage("", (call, missing)), *results])
        self.assertTrue(second.text.endswith("\nRead: parser.py, lexer.py"), second.text)

    def test_of_too_many_the_last_are_named(self) -> None:
        changed = [f"folder/file_{number}.py" for number in range(500)]
        summary = summary_by(Asked("all"), limit=200, changed_files=changed)
        self.assertLessEqual(text_tokens(summary.text), 200)
        self.assertRegex(summary.text, r"Changed: .*file_498.py, folder/file_499.py\n")


class Failures(unittest.TestCase):
    def test_a_summary_has_its_header_its_usage_and_no_problem(self) -> None:
        expected = WrittenSummary(HEADER + "## Done\nall" + FILES, Usage(100, 20))
        self.assertEqual(summary_by(Asked("## Done\nall")), expected)

    def test_a_summary_longer_than_its_limit_is_cut(self) -> None:
        self.assertLessEqual(text_tokens(summary_by(Asked("word " * 9000), limit=200).text), 200)

    def test_a_failing_model_is_asked_twice_more_with_half_as_much(self) -> None:
        history = [UserMessage(f"fact {number} " + "x" * 400) for number in range(40)]
        for failure in (ServerFailed("it is down"), ContextOverflow("too large"), "", '{"goal": ""}'):
            asked = Asked(failure, failure, "at last")
            summary = summary_by(asked, history, size=4000)
            self.assertEqual((summary.text, summary.problem), (HEADER + "at last", ""))
            sizes = [len(piece) for piece in asked.pieces()]
            self.assertGreater(sizes[0], sizes[1] * 1.8)
            self.assertGreater(sizes[1], sizes[2] * 1.8)
            told = "".join(asked.pieces()[2:])
            self.assertEqual([number for number in range(40) if f"fact {number} " not in told], [])

    def test_a_model_that_goes_on_failing_gives_a_summary_from_the_messages(self) -> None:
        for error in (ServerFailed("it is down"), ContextOverflow("too large"), BadReply("")):
            asked = Asked(error)
            summary = summary_by(asked)
            self.assertEqual(len(asked.requests), ATTEMPTS)
            self.assertEqual(summary.problem, str(error) or "the model failed (bad_reply)")
            for part in ("The lexer is read.", "Leave the tests alone.", "parser.py", "def parse(): raise KeyError"):
                self.assertIn(part, summary.text)
            self.assertNotIn("Mend the parser.", summary.text)  # it stays in the user's own words

    def test_where_it_fails_at_a_later_piece_what_it_said_of_the_first_is_kept(self) -> None:
        history = [UserMessage(f"fact {number} " + "x" * 400) for number in range(40)]
        summary = summary_by(Asked("the beginning", ServerFailed("it is down")), history, size=1500)
        self.assertIn("the beginning", summary.text)
        self.assertIn("fact 39", summary.text)

    def test_errors_stand_under_the_exact_values_of_a_summary_from_the_messages(self) -> None:
        history = [*HISTORY[:-1], ToolResult("1", "read_file", "Error [not_found]: no parser.py", True)]
        summary = summary_by(Asked(ServerFailed("down")), history)
        self.assertRegex(summary.text, r"## Exact values\n- read_file .*Error \[not_found\]: no parser.py")

    def test_empty_answers_give_a_summary_from_the_messages_and_are_paid_for(self) -> None:
        for answer in ("", " \n ", '{"goal": ""}'):
            summary = summary_by(Asked(answer))
            self.assertTrue(summary.problem)
            self.assertEqual(summary.usage, Usage(300, 60))
            self.assertIn("read_file", summary.text)

    def test_ctrl_c_passes_through(self) -> None:
        def ask(messages: Sequence[Message]) -> ModelReply:
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            summarize(Material(HISTORY), ask, limit_tokens=500, input_tokens=3000)

    def test_a_summary_from_the_messages_keeps_to_its_limit_and_repeats_no_header(self) -> None:
        history = HISTORY * 200
        for _ in range(3):
            for limit in (64, 200, 1000):
                summary = summary_by(Asked(ServerFailed("down")), history, limit)
                self.assertLessEqual(text_tokens(summary.text), limit)
                self.assertEqual(summary.text.count(HEADER), 1)
                self.assertLessEqual(summary.text.count("own record"), 1)
            history = [Summary(summary.text), *history]
