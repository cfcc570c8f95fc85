"""The record: a session as a Markdown document, for people to read.

    # Session 20260131-093000-125                   the title, and a list of what holds for the whole session
    ## 09:30:02 User                                one section per event: local time, title
    ```text
    Fix the failing test.                           what was said, in a fenced block
    ```
    ## 09:30:04 Tool call read_file
    …
    ## 09:30:09 What the model saw last             written when the session ends

Titles are System, User, Assistant, Tool call NAME, Tool result NAME, Compression, Tool output compressed, Notice, Turn
ended and What the model saw last. Whatever comes from a model, a file or a user stands inside a fence that is longer
than any run of backticks in it, so no content can close its block or look like a heading. Control characters are shown
as escapes; the event log beside the record has every character as it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Callable

from mini_agent.conversation import events, messages
from mini_agent.conversation.messages import AssistantMessage, Message, ToolCall, ToolResult
from mini_agent.conversation.safe_text import fence_around, safe_line, safe_text
from mini_agent.session.event_log import LogEntry, now
from mini_agent.session.patient_file import PatientFile


class MarkdownRecorder:
    """A listener that appends each event to the record.

    What cannot be written now is written with the next event. On a session that goes on it appends to the same record.
    """

    def __init__(self, path: Path, stamp: str, clock: Callable[[], datetime] = now) -> None:
        """Take the path of the record, whose folder exists, and the stamp for its title.

        Raises OSError when there is a record that cannot be read.
        """
        self._clock = clock
        self._stamp = stamp
        self._file = PatientFile(path)
        earlier = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        self._is_new = not earlier
        if earlier:  # a run that was killed while it wrote may have left a block open
            self._file.append(_missing_end(earlier).encode("ascii"))

    def __call__(self, entry: LogEntry) -> None:
        """Append what one entry tells."""
        if self._is_new and isinstance(entry.event, events.SessionStarted):
            started = f"{entry.time.astimezone():%Y-%m-%d %H:%M:%S %z}"
            self._write(f"# Session {self._stamp}\n\n- Started: {started}\n{_facts(entry.event)}")
        else:
            self._write("".join(_section(entry.time, *part) for part in _parts(entry.event)))

    def finish(self, visible: Sequence[Message]) -> None:
        """Append what the model would be sent now; to be called when the session ends."""
        self._write(_section(self._clock(), "What the model saw last", _messages(visible)))

    def _write(self, text: str) -> None:
        self._is_new = False
        self._file.append(text.encode("utf-8", errors="backslashreplace"))


# ---------------------------------------------------------------------------------------------- Markdown that is safe


def block(text: str, language: str = "text") -> str:
    """Return the text as a fenced block that nothing in it can close."""
    text = safe_text(text)
    fence = fence_around(text)
    return f"{fence}{language}\n{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{fence}\n"


def inline(text: str) -> str:
    """Return the text as inline code on one line, safe in a heading and in a list."""
    text = safe_line(text)
    fence = fence_around(text, shortest=1)
    blank = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{fence}{blank}{text}{blank}{fence}"


def _section(time: datetime, title: str, body: str) -> str:
    return f"\n## {time.astimezone():%H:%M:%S} {title}\n\n{body}"


def _missing_end(record: str) -> str:
    """Return what closes a record that breaks off in the middle: a line break, and the fence of an open block."""
    fence = ""
    for line in record.split("\n"):
        opening = re.fullmatch("(`{3,})[a-z]*", line)
        if fence:
            fence = "" if line == fence else fence
        elif opening:
            fence = opening[1]
    line_break = "" if record.endswith("\n") else "\n"
    return f"{line_break}{fence}\n" if fence else line_break


# ------------------------------------------------------------------------------------------------- from event to text


def _parts(event: Any) -> list[tuple[str, str]]:
    """Return the sections for an event, each title and body; none for what is no news to a person."""
    if isinstance(event, events.AssistantMessageAdded):
        calls = event.message.tool_calls
        return [("Assistant", _assistant(event)), *((f"Tool call {_name(call.name)}", _call(call)) for call in calls)]
    part = _PARTS.get(type(event))
    return [part(event)] if part else []


def _facts(event: events.SessionStarted) -> str:
    facts = {"Workspace": event.workspace, "Model": event.model, "Base URL": event.base_url, "Version": event.version}
    return "".join(f"- {name}: {inline(value)}\n" for name, value in facts.items())


def _name(tool_name: str) -> str:
    """Return a tool's name for a heading; one that a model made up is made harmless."""
    return tool_name if re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", tool_name) else inline(tool_name[:64])


def _assistant(event: events.AssistantMessageAdded) -> str:
    text, usage = event.message.text, event.usage
    facts = [f"model: {inline(event.model)}"] if event.model else []
    if usage:
        facts.append(f"tokens: {usage.input_tokens:,} in ({usage.cached_tokens:,} cached), {usage.output_tokens:,} out")
    if event.message.tool_calls:
        facts.append("calls: " + ", ".join(_name(call.name) for call in event.message.tool_calls))
    parts = [f"{'; '.join(facts)}\n"] if facts else []
    return "\n".join(parts + ([block(text)] if text else []))


def _call(call: ToolCall) -> str:
    """Return a call: short arguments together as JSON, each one of several lines (a patch) in a block of its own."""
    if call.arguments is None:
        return f"Call {inline(call.id)}, which cannot run:\n\n{block(call.problem)}\n{block(call.arguments_text)}"
    long = {name: value for name, value in call.arguments.items() if isinstance(value, str) and "\n" in value}
    short = {name: value for name, value in call.arguments.items() if name not in long}
    blocks = [block(json.dumps(short, ensure_ascii=False, indent=2), "json")] if short or not long else []
    blocks += [f"{inline(name)}:\n\n{block(value)}" for name, value in long.items()]
    return f"Call {inline(call.id)}\n\n" + "\n".join(blocks)


def _tool_result(event: events.ToolResultAdded) -> tuple[str, str]:
    outcome = "Error" if event.is_error else "Result"
    hidden = ", which the model is not shown again" if event.hidden else ""
    head = f"{outcome} of {inline(event.call_id)}{hidden}, {len(event.text):,} characters"
    return f"Tool result {_name(event.tool_name)}", f"{head}\n\n{block(event.text)}"


def _files_changed(event: events.FilesChanged) -> tuple[str, str]:
    lines = [f"- {inline(file.path)} ({_kind_of_change(file)})\n" for file in event.files]
    return "Notice", "Files changed:\n\n" + "".join(lines) if lines else "No file was changed.\n"


def _kind_of_change(file: events.FileChange) -> str:
    if file.hash_before is None:
        return "new"
    return "removed" if file.hash_after is None else "changed"


def _approval(event: events.ApprovalAnswered) -> tuple[str, str]:
    return "Notice", f"Asked, and answered {'yes' if event.approved else 'no'}:\n\n{block(event.question)}"


def _output_compressed(event: events.ToolOutputCompressed) -> tuple[str, str]:
    sizes = f"{event.characters_before:,} characters became {len(event.text):,}"
    return "Tool output compressed", f"Result of {inline(event.call_id)}: {sizes}\n\n{block(event.text)}"


def _summarized(event: events.HistorySummarized) -> tuple[str, str]:
    sizes = f"About {event.tokens_before:,} tokens became {event.tokens_after:,}."
    return "Compression", f"{sizes}\n\n{block(event.reason)}\nIn the place of what went:\n\n{_messages(event.head)}"


def _messages(listed: Sequence[Message]) -> str:
    return "\n".join(f"{number}. {_message(message)}" for number, message in enumerate(listed, 1)) or "Nothing.\n"


def _message(message: Message) -> str:
    if isinstance(message, ToolResult):
        return f"Tool result of {inline(message.call_id)}\n\n{block(message.text)}"
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    blocks = [block(message.text)] if message.text or not calls else []
    return f"{_ROLES[type(message)]}\n\n" + "\n".join(blocks + [f"{_name(call.name)}: {_call(call)}" for call in calls])


_ROLES: dict[type, str] = {
    messages.SystemMessage: "System",
    messages.UserMessage: "User",
    messages.Reminder: "Reminder, in the user's place",
    messages.Summary: "Summary, in the user's place",
    AssistantMessage: "Assistant",
}

_PARTS: dict[type, Callable[[Any], tuple[str, str]]] = {
    events.SessionStarted: lambda event: ("Notice", f"The session goes on.\n\n{_facts(event)}"),
    events.InstructionsSet: lambda event: ("System", block(event.text)),
    events.ModelChanged: lambda event: ("Notice", f"From here on: {inline(event.model)} at {inline(event.base_url)}\n"),
    events.Notice: lambda event: ("Notice", block(event.text)),
    events.UserMessageAdded: lambda event: ("User", block(event.text)),
    events.ReminderAdded: lambda event: ("Notice", f"Told to the model in the user's place:\n\n{block(event.text)}"),
    events.ToolResultAdded: _tool_result,
    events.TurnEnded: lambda event: ("Turn ended", block(": ".join(filter(None, (event.status, event.reason))))),
    events.FilesChanged: _files_changed,
    events.ApprovalAnswered: _approval,
    events.ToolOutputCompressed: _output_compressed,
    events.HistorySummarized: _summarized,
}
