"""What the session has cost and done so far, summed up from its events."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from mini_agent.conversation import events
from mini_agent.conversation.messages import Usage
from mini_agent.session.event_log import LogEntry


@dataclass
class Sums:
    """The sums over one turn, or over a session."""

    rounds: int = 0
    seconds: float = 0  # of the turns that have ended
    usage: Usage = field(default_factory=Usage)  # as the servers counted, summaries included
    shortened_results: int = 0  # those of which a shorter text is shown
    saved_characters: int = 0  # by that
    files_changed: dict[str, None] = field(default_factory=dict)  # paths, the first changed first


class Totals:
    """A listener with two sums: of the turn that runs or ran last, and of the session.

    For a session that goes on, feed it the entries that are in the log already.
    """

    def __init__(self) -> None:
        self.turn = Sums()
        self.session = Sums()
        self.last_input_tokens: int | None = None  # of the last request, as the server counted; None: it did not
        self._turn_started: datetime | None = None

    def __call__(self, entry: LogEntry) -> None:
        """Add what one entry tells."""
        if isinstance(entry.event, events.UserMessageAdded) and not entry.event.steered:
            self.turn = Sums()
            self._turn_started = entry.time
        if isinstance(entry.event, events.AssistantMessageAdded):
            self.last_input_tokens = entry.event.usage.input_tokens if entry.event.usage else None
        self._add(self.turn, entry)
        self._add(self.session, entry)
        if isinstance(entry.event, events.TurnEnded):
            self._turn_started = None

    def _add(self, sums: Sums, entry: LogEntry) -> None:
        event = entry.event
        if isinstance(event, events.AssistantMessageAdded):
            sums.rounds += 1
            sums.usage += event.usage or Usage()
        elif isinstance(event, events.HistorySummarized):
            sums.usage += event.usage or Usage()
        elif isinstance(event, events.ToolOutputCompressed):
            sums.shortened_results += 1
            sums.saved_characters += event.characters_before - len(event.text)
        elif isinstance(event, events.FilesChanged):
            sums.files_changed.update((file.path, None) for file in event.files if file.hash_before != file.hash_after)
        elif isinstance(event, events.TurnEnded) and self._turn_started:
            sums.seconds += (entry.time - self._turn_started).total_seconds()
