from __future__ import annotations

import unittest
from collections.abc import Sequence

from evals.harness.measures import answers, last_patch_was_refused, last_turn_end, measure, use_of_tool
from evals.harness.suite import Use
from mini_agent.conversation.events import (
    AssistantMessageAdded,
    Event,
    HistorySummarized,
    ToolOutputCompressed,
    ToolResultAdded,
    TurnEnded,
    UserMessageAdded,
)
from mini_agent.conversation.messages import AssistantMessage, Summary, ToolCall, Usage
from mini_agent.session.event_log import LogEntry, now


def log(*events: Event) -> list[LogEntry]:
    return [LogEntry(number, now(), event) for number, event in enumerate(events, 1)]


def said(text: str, *calls: str, usage: Usage | None = Usage(100, 10, 50)) -> AssistantMessageAdded:  # noqa: B008
    message = AssistantMessage(text, tuple(ToolCall(name, name, "{}", {}) for name in calls))
    return AssistantMessageAdded(message, usage, "some-model", "")


def result(name: str, text: str, is_error: bool = False) -> ToolResultAdded:
    return ToolResultAdded(name, name, text, is_error, f"{name}()")


def summary(usage: Usage | None) -> HistorySummarized:
    return HistorySummarized((Summary("short"),), 1, 500, 50, "too long", usage)


WHOLE: Sequence[Event] = (
    UserMessageAdded("first"),
    said("I look", "grep", "apply_patch"),
    result("grep", "Error [bad_pattern]: no", is_error=True),
    result("apply_patch", "Error [no_match]: no", is_error=True),
    ToolOutputCompressed("grep", "shorter", 100),
    summary(Usage(300, 30, 0)),
    said("one"),
    TurnEnded("completed"),
    UserMessageAdded("second"),
    said("looking", "grep"),
)


class Measures(unittest.TestCase):
    def test_they_are_summed_up_from_the_events(self) -> None:
        self.assertEqual(
            measure(log(*WHOLE)),
            {
                "tokens": {"in": 600, "out": 60, "cached": 150},
                "requests": 4,
                "rounds": 3,
                "calls": {"grep": 1, "apply_patch": 1},
                "tool_errors": {"bad_pattern": 1, "no_match": 1},
                "compressions": 1,
                "characters_saved": 93,
                "model": "some-model",
            },
        )

    def test_tokens_are_not_told_where_the_server_did_not_count_each_reply(self) -> None:
        self.assertIsNone(measure(log(said("one"), said("two", usage=None)))["tokens"])

    def test_without_a_log_nothing_is_guessed(self) -> None:
        self.assertEqual(set(measure([]).values()), {None})

    def test_an_answer_is_what_ended_a_turn(self) -> None:
        self.assertEqual(answers(log(*WHOLE)), ("one", ""))
        self.assertEqual(
            answers(log(*WHOLE, result("grep", "found"), TurnEnded("failed", "server_failed"))), ("one", "")
        )

    def test_the_end_of_the_last_turn_is_not_that_of_one_before(self) -> None:
        self.assertIsNone(last_turn_end(log(*WHOLE)))
        self.assertEqual(last_turn_end(log(*WHOLE[:8])), TurnEnded("completed"))

    def test_a_refused_patch_counts_only_where_none_followed(self) -> None:
        self.assertTrue(last_patch_was_refused(log(*WHOLE)))
        self.assertFalse(last_patch_was_refused(log(*WHOLE, result("apply_patch", "done"))))

    def test_use_is_calls_successes_and_errors(self) -> None:
        self.assertEqual(use_of_tool("grep", log(*WHOLE, result("grep", "found"))), Use(2, 1, 1))
