"""The trace: a text file with one line per step, `ISO-time LEVEL [tag] text`, to be followed with `tail -f`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Callable

from mini_agent.conversation import events
from mini_agent.conversation.safe_text import safe_line
from mini_agent.session.event_log import LogEntry, format_time
from mini_agent.session.patient_file import PatientFile

_VALUE_LIMIT_CHARACTERS = 200
_LEVEL_OF_ENDING = {"completed": "info", "interrupted": "warn", "round_limit": "warn"}

Fields = Mapping[str, Any]
Step = tuple[str, str, Fields]  # level, the part of the program it is about, and what is told of it


class TraceLog:
    """A listener that writes the steps of every level; the times are those of the event log.

    It counts turns, rounds and calls along the way.
    """

    def __init__(self, path: Path) -> None:
        """Append to the file at `path`."""
        self._file = PatientFile(path)
        self._turn = 0
        self._round = 0
        self._positions: dict[str, str] = {}  # call id → "2/3", of the last reply

    def __call__(self, entry: LogEntry) -> None:
        """Write the lines for one entry; lines that cannot be written now are written with the next."""
        head = format_time(entry.time)
        lines = [
            f"{head} {level.upper()} [{tag}] {_pairs(fields)}\n" for level, tag, fields in self._steps(entry.event)
        ]
        self._file.append("".join(lines).encode("utf-8", errors="strict"))

    def _steps(self, event: events.Event) -> Iterator[Step]:
        """Yield the steps of the next event: one, and for a reply one more for each of its calls."""
        if isinstance(event, events.UserMessageAdded):
            if not event.steered:
                self._turn, self._round = self._turn + 1, 0
            yield "info", "turn", {"turn": self._turn, "steered" if event.steered else "request": event.text}
        elif isinstance(event, events.AssistantMessageAdded):
            yield from self._reply(event)
        elif isinstance(event, events.ToolResultAdded):
            position = self._positions.get(event.call_id)
            fields = {"round": self._round, "tool_result": position, "tool": event.tool_name}
            told = {"error": event.text} if event.is_error else {"characters": len(event.text)}
            yield "warn" if event.is_error else "info", "tool", {**fields, **told}
        elif isinstance(event, events.TurnEnded):
            fields = {"turn": self._turn, "status": event.status, "rounds": self._round, "reason": event.reason or None}
            yield _LEVEL_OF_ENDING.get(event.status, "error"), "turn", fields
        elif isinstance(event, events.Notice):
            yield "warn" if event.level == "warn" else "info", "notice", {"notice": event.text}
        else:
            level, tag, told_of = _PLAIN[type(event)]
            yield level, tag, told_of(event)

    def _reply(self, event: events.AssistantMessageAdded) -> Iterator[Step]:
        self._round += 1
        calls, usage = event.message.tool_calls, vars(event.usage) if event.usage else {}
        fields = {"round": self._round, "model": event.model or None, "finish": event.finish_reason or None, **usage}
        yield "info", "model", {**fields, "text": event.message.text or None}
        self._positions = {call.id: f"{number}/{len(calls)}" for number, call in enumerate(calls, 1)}
        for call in calls:
            fields = {"round": self._round, "tool_call": self._positions[call.id], "tool": call.name}
            arguments = {"arguments": call.arguments_text} if call.arguments is None else call.arguments
            yield "info", "tool", {**fields, **arguments, **fields}  # first, and not to be overruled


def _paths(event: Any) -> str:
    return ", ".join(file.path for file in event.files)


def _shortened(event: events.ToolOutputCompressed) -> Fields:
    sizes = {"characters_before": event.characters_before, "characters_after": len(event.text)}
    return {"compressed_result": event.call_id, **sizes}


# level, tag and fields of the events that need no counting
_PLAIN: dict[type, tuple[str, str, Callable[[Any], Fields]]] = {
    events.SessionStarted: ("info", "session", lambda event: event.to_json()),
    events.ModelChanged: ("info", "session", lambda event: event.to_json()),
    events.InstructionsSet: ("debug", "session", lambda event: {"instructions_characters": len(event.text)}),
    events.ReminderAdded: ("info", "turn", lambda event: {"reminder": event.text}),
    events.ApprovalAnswered: ("info", "tool", lambda event: {"approved": event.approved, "question": event.question}),
    events.FilesWillChange: ("debug", "files", lambda event: {"will_change": _paths(event)}),
    events.FilesChanged: ("info", "files", lambda event: {"changed": _paths(event)}),
    events.ToolOutputCompressed: ("info", "context", _shortened),
    events.HistorySummarized: ("info", "context", lambda event: {**event.to_json(), "head": None, "usage": None}),
}


def _pairs(fields: Fields) -> str:
    """Return `name=value` pairs; what is None is left out, and a value that is not one plain word is quoted."""
    return " ".join(f"{safe_line(name)}={_quoted(value)}" for name, value in fields.items() if value is not None)


def _quoted(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    shown = safe_line(text[:_VALUE_LIMIT_CHARACTERS]) + ("…" if len(text) > _VALUE_LIMIT_CHARACTERS else "")
    return shown if shown and not set(' "=') & set(shown) else f'"{shown}"'
