"""What a run of our agent cost and did, read from its event log. Nothing here is guessed: what is not told is None."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evals.harness.suite import Use
from mini_agent.conversation.events import (
    AssistantMessageAdded,
    HistorySummarized,
    SessionStarted,
    ToolOutputCompressed,
    ToolResultAdded,
    TurnEnded,
    UserMessageAdded,
)
from mini_agent.session.event_log import DamagedLog, LogEntry, read_log

_PATCH_TOOL = "apply_patch"


def read_session(folder: Path) -> list[LogEntry]:
    """Return the entries of the one log in a folder; nothing where there is none that can be read."""
    for path in sorted(folder.glob("*.jsonl")):
        try:
            return read_log(path)
        except (DamagedLog, OSError):
            break
    return []


def measure(entries: Sequence[LogEntry]) -> dict[str, Any]:
    """Return the measures of a session, by the names that results.jsonl has for them; all None without a log."""
    names = ("tokens", "requests", "rounds", "calls", "tool_errors", "compressions", "characters_saved", "model")
    if not entries:
        return dict.fromkeys(names)
    events = [entry.event for entry in entries]
    replies = [event for event in events if isinstance(event, AssistantMessageAdded)]
    summaries = [event for event in events if isinstance(event, HistorySummarized)]
    results = [event for event in events if isinstance(event, ToolResultAdded)]
    shortened = [event for event in events if isinstance(event, ToolOutputCompressed)]
    started = [event.model for event in events if isinstance(event, SessionStarted)]
    asked_for_summary = [event for event in summaries if event.usage]
    values = (
        _tokens(replies, asked_for_summary),
        len(replies) + len(asked_for_summary),
        len(replies),
        dict(Counter(result.tool_name for result in results)),
        dict(Counter(_error_kind(result.text) for result in results if result.is_error)),
        len(summaries),
        sum(event.characters_before - len(event.text) for event in shortened),
        next((event.model for event in reversed(replies) if event.model), started[0] if started else ""),
    )
    return dict(zip(names, values))


def _tokens(replies: Sequence[AssistantMessageAdded], summaries: Sequence[HistorySummarized]) -> dict[str, int] | None:
    """Return the server's own counts, summed up; None where it did not count each reply."""
    usages = [event.usage for event in replies] + [event.usage for event in summaries]
    counted = [usage for usage in usages if usage]
    if not counted or len(counted) < len(usages):
        return None
    return {
        "in": sum(usage.input_tokens for usage in counted),
        "out": sum(usage.output_tokens for usage in counted),
        "cached": sum(usage.cached_tokens for usage in counted),
    }


def _error_kind(text: str) -> str:
    match = re.match(r"(?:\d+\. )?Error \[(\w+)\]", text)
    return match[1] if match else "other"


def answers(entries: Sequence[LogEntry]) -> tuple[str, ...]:
    """Return the answer of each turn: the last reply of a turn that came to an end, otherwise ""."""
    found: list[str] = []
    said = ""
    for event in (entry.event for entry in entries):
        if isinstance(event, UserMessageAdded) and not event.steered:
            found.append("")
            said = ""
        elif isinstance(event, AssistantMessageAdded):
            said = "" if event.message.tool_calls else event.message.text
        elif isinstance(event, TurnEnded) and found:
            found[-1] = said
    return tuple(found)


def turn_ends(entries: Sequence[LogEntry]) -> list[TurnEnded]:
    """Return how the turns ended, of those that did."""
    return [entry.event for entry in entries if isinstance(entry.event, TurnEnded)]


def last_turn_end(entries: Sequence[LogEntry]) -> TurnEnded | None:
    """Return how the last turn ended; None where it did not."""
    ends = [entry.event for entry in entries if isinstance(entry.event, (TurnEnded, UserMessageAdded))]
    return ends[-1] if ends and isinstance(ends[-1], TurnEnded) else None


def last_patch_was_refused(entries: Sequence[LogEntry]) -> bool:
    """Tell whether the last patch that the model wrote was refused."""
    results = [entry.event for entry in entries if isinstance(entry.event, ToolResultAdded)]
    patches = [result for result in results if result.tool_name == _PATCH_TOOL]
    return bool(patches) and patches[-1].is_error


def use_of_tool(name: str, entries: Sequence[LogEntry]) -> Use:
    """Return how often a tool was used: for suites whose treatment is a tool."""
    results = [entry.event for entry in entries if isinstance(entry.event, ToolResultAdded)]
    errors = [result.is_error for result in results if result.tool_name == name]
    return Use(len(errors), errors.count(False), errors.count(True))


def use_of_compression(entries: Sequence[LogEntry]) -> Use:
    """Return how often the conversation was compressed: for suites whose treatment is that."""
    done = sum(isinstance(entry.event, HistorySummarized) for entry in entries)
    return Use(done, done, 0)
