from __future__ import annotations

import unittest
from datetime import datetime, timedelta, timezone

from mini_agent.conversation.events import (
    AssistantMessageAdded,
    Event,
    FileChange,
    FilesChanged,
    HistorySummarized,
    ToolOutputCompressed,
    TurnEnded,
    UserMessageAdded,
)
from mini_agent.conversation.messages import AssistantMessage, Usage
from mini_agent.session.event_log import LogEntry
from mini_agent.session.totals import Totals


class Sums(unittest.TestCase):
    def totals(self, *events: Event) -> Totals:
        """Return the totals over these events, one a second."""
        totals = Totals()
        start = datetime(2026, 1, 31, tzinfo=timezone.utc)
        for number, event in enumerate(events):
            totals(LogEntry(number + 1, start + timedelta(seconds=number), event))
        return totals

    def reply(self, usage: Usage | None) -> AssistantMessageAdded:
        return AssistantMessageAdded(AssistantMessage("x"), usage, "", "")

    def test_a_turn_is_summed_up_by_itself_and_the_session_over_all(self) -> None:
        first = (UserMessageAdded("a"), self.reply(Usage(10, 1, 5)), self.reply(None), TurnEnded("completed"))
        second = (UserMessageAdded("b"), self.reply(Usage(20, 2, 0)), TurnEnded("failed"))
        totals = self.totals(*first, *second)
        self.assertEqual((totals.turn.rounds, totals.turn.usage), (1, Usage(20, 2, 0)))
        self.assertEqual((totals.session.rounds, totals.session.usage), (3, Usage(30, 3, 5)))
        self.assertEqual((totals.turn.seconds, totals.session.seconds), (2, 5))

    def test_results_shown_shorter_are_summed_up(self) -> None:
        totals = self.totals(ToolOutputCompressed("1", "short", 1000), ToolOutputCompressed("2", "x", 500))
        self.assertEqual((totals.session.shortened_results, totals.session.saved_characters), (2, 1494))

    def test_a_summary_costs_tokens_and_is_no_round(self) -> None:
        summarized = HistorySummarized((), 1, 2, 1, "", Usage(7, 3))
        totals = self.totals(UserMessageAdded("a"), summarized, self.reply(Usage(1, 1)), TurnEnded("completed"))
        self.assertEqual((totals.turn.rounds, totals.turn.usage), (1, Usage(8, 4)))

    def test_a_steered_message_begins_no_turn(self) -> None:
        totals = self.totals(UserMessageAdded("a"), self.reply(Usage(1, 1)), UserMessageAdded("b", steered=True))
        self.assertEqual(totals.turn.rounds, 1)

    def test_each_file_that_really_changed_counts_once_in_the_order_of_the_first_change(self) -> None:
        new, again = FileChange("b.py", None, "1"), FileChange("b.py", "1", "2")
        other, same = FileChange("a.py", "1", None), FileChange("c.py", "1", "1")
        totals = self.totals(UserMessageAdded("a"), FilesChanged((new, other)), FilesChanged((again, same)))
        self.assertEqual(list(totals.session.files_changed), ["b.py", "a.py"])
        totals = self.totals(UserMessageAdded("a"), FilesChanged((new,)), TurnEnded("completed"), UserMessageAdded("b"))
        self.assertEqual((list(totals.turn.files_changed), list(totals.session.files_changed)), ([], ["b.py"]))
