"""Generated input: events, and sessions of them that could have happened. The same seed gives the same ones."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Sequence
from typing import Any, Callable

from mini_agent.conversation.conversation import Conversation
from mini_agent.conversation.events import (
    ApprovalAnswered,
    AssistantMessageAdded,
    Event,
    FileChange,
    FilesChanged,
    FilesWillChange,
    HistorySummarized,
    InstructionsSet,
    ModelChanged,
    Notice,
    ReminderAdded,
    SessionStarted,
    ToolOutputCompressed,
    ToolResultAdded,
    TurnEnded,
    UserMessageAdded,
)
from mini_agent.conversation.messages import (
    AssistantMessage,
    Message,
    Summary,
    SystemMessage,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)

LONG = os.environ.get("MINI_AGENT_LONG_TESTS") == "1"

_PIECES = (
    "word ", "Zeile\n", "\r\n", "\t", "```", "````text\n", "## 09:00:00 User\n", "日本語", "🙂", "\x00", "\x1b[31m",
    "\u2028", "\ud83d", "\udce9", '"', "\\", "\\n", "\x85", "é", "{}", "", " ",
)  # fmt: skip


def seeds(short: int, long: int) -> Iterator[int]:
    """Yield the seeds of one test: a few fixed ones, or in the long run many, from MINI_AGENT_TEST_SEED on."""
    first = int(os.environ.get("MINI_AGENT_TEST_SEED", "0")) * 1000
    yield from range(first, first + (long if LONG else short))


def text(rng: random.Random, pieces: int = 6) -> str:
    joined = "".join(rng.choice(_PIECES) for _ in range(rng.randrange(pieces + 1)))
    return str(json.loads(json.dumps(joined)))  # two halves of a pair that met by chance become one character


def json_value(rng: random.Random, depth: int = 3) -> Any:
    kind = rng.randrange(8 if depth else 6)
    if kind == 6:
        return [json_value(rng, depth - 1) for _ in range(rng.randrange(3))]
    if kind == 7:
        return json_object(rng, depth - 1)
    return [None, True, False, rng.randrange(-(10**20), 10**20), rng.random() * 1e9, text(rng)][kind]


def json_object(rng: random.Random, depth: int = 3) -> dict[str, Any]:
    return {text(rng, 2): json_value(rng, depth) for _ in range(rng.randrange(3))}


def usage(rng: random.Random) -> Usage | None:
    return rng.choice([None, Usage(rng.randrange(10**6), rng.randrange(10**4), rng.randrange(10**4))])


def tool_call(rng: random.Random, id: str) -> ToolCall:
    arguments = rng.choice([None, json_object(rng)])
    problem = "" if arguments is not None else "the arguments are no JSON"
    return ToolCall(
        id, rng.choice(["grep", "read_file", text(rng, 2)]), text(rng), arguments, problem, json_object(rng)
    )


def reply(rng: random.Random, ids: Sequence[str] = ()) -> AssistantMessageAdded:
    calls = tuple(tool_call(rng, id) for id in ids)
    message = AssistantMessage(text(rng), calls, json_object(rng))
    return AssistantMessageAdded(message, usage(rng), text(rng, 2), text(rng, 2), rng.choice(["stop", "length", ""]))


def result(rng: random.Random, call_id: str) -> ToolResultAdded:
    is_error, hidden = rng.random() < 0.2, rng.random() < 0.2
    return ToolResultAdded(call_id, "grep", text(rng), is_error, text(rng, 2), hidden)


def file_change(rng: random.Random) -> FileChange:
    before, after = rng.choice([(None, "b" * 64), ("a" * 64, "b" * 64), ("a" * 64, None)])
    return FileChange(f"folder/{text(rng, 2)}.py", before, after, "folder/.mini_agent-1")


def files(rng: random.Random) -> tuple[FileChange, ...]:
    return tuple(file_change(rng) for _ in range(rng.randrange(1, 4)))


def instructions(rng: random.Random) -> InstructionsSet:
    tools = tuple({"name": text(rng, 2), "parameters": json_object(rng)} for _ in range(rng.randrange(3)))
    return InstructionsSet(text(rng), tools, text(rng, 2))


def summarized(rng: random.Random, kept_from: int) -> HistorySummarized:
    head = (UserMessage(text(rng), rng.random() < 0.5), Summary(text(rng)))[: rng.randrange(3)]
    return HistorySummarized(head, kept_from, rng.randrange(10**6), rng.randrange(10**5), text(rng), usage(rng))


def any_event(rng: random.Random, kind: str) -> Event:
    """Return an event of the named type that need not fit into any session."""
    make: dict[str, Callable[[], Event]] = {
        "session_started": lambda: SessionStarted(text(rng), text(rng), text(rng), text(rng)),
        "instructions_set": lambda: instructions(rng),
        "model_changed": lambda: ModelChanged(text(rng), text(rng)),
        "notice": lambda: Notice(text(rng), rng.choice(["info", "warn"])),
        "user_message_added": lambda: UserMessageAdded(text(rng), rng.random() < 0.5),
        "reminder_added": lambda: ReminderAdded(text(rng)),
        "assistant_message_added": lambda: reply(rng, [text(rng) for _ in range(rng.randrange(3))]),
        "tool_result_added": lambda: result(rng, text(rng)),
        "turn_ended": lambda: TurnEnded(rng.choice(["completed", "failed"]), text(rng, 1), text(rng)),
        "files_will_change": lambda: FilesWillChange(files(rng)),
        "files_changed": lambda: FilesChanged(files(rng)),
        "approval_answered": lambda: ApprovalAnswered(text(rng), rng.random() < 0.5),
        "tool_output_compressed": lambda: ToolOutputCompressed(text(rng), text(rng), rng.randrange(10**6)),
        "history_summarized": lambda: summarized(rng, rng.randrange(10)),
    }
    return make[kind]()


def session(rng: random.Random, length: int) -> list[Event]:
    """Return a session of that many events: parallel calls, compressions, hidden calls, interrupts and resumes."""
    conversation = Conversation()
    events: list[Event] = []
    while len(events) < length:
        event = _next_event(rng, conversation, len(events))
        conversation.apply(event)
        events.append(event)
    return events


def _next_event(rng: random.Random, conversation: Conversation, number: int) -> Event:
    if number < 2:
        return (SessionStarted("/project", "scripted", "http://localhost", "0"), instructions(rng))[number]
    if rng.random() < 0.1:
        return rng.choice([Notice(text(rng)), ApprovalAnswered(text(rng), True)])
    if conversation.open_calls:
        return _while_a_call_is_open(rng, conversation)
    if rng.random() < 0.08:
        return summarized(rng, _legal_cut(rng, conversation.visible_messages()))
    if not conversation.turn_is_open:
        between = [ModelChanged(text(rng), ""), instructions(rng), SessionStarted("/project", "other", "", "1")]
        return rng.choice(between) if rng.random() < 0.2 else UserMessageAdded(text(rng))
    if rng.random() < 0.15:
        return TurnEnded(rng.choice(["completed", "failed", "interrupted", "round_limit"]))
    if rng.random() < 0.1:
        return rng.choice([ReminderAdded(text(rng)), UserMessageAdded(text(rng), steered=True)])
    return reply(rng, [f"{number}.{position}" for position in range(rng.choice([0, 1, 1, 2, 3]))])


def _while_a_call_is_open(rng: random.Random, conversation: Conversation) -> Event:
    earlier = conversation.earlier_results()
    if earlier and rng.random() < 0.15:
        chosen = rng.choice(earlier)
        return ToolOutputCompressed(chosen.call_id, text(rng), len(chosen.text))
    if rng.random() < 0.15:
        in_flight = conversation.files_in_flight
        return (
            FilesChanged(in_flight[: rng.randrange(len(in_flight) + 1)]) if in_flight else FilesWillChange(files(rng))
        )
    return result(rng, conversation.open_calls[0].id)


def _legal_cut(rng: random.Random, messages: Sequence[Message]) -> int:
    cut = rng.randrange(1, len(messages) + 1)
    while cut < len(messages) and isinstance(messages[cut], ToolResult):
        cut += 1
    return cut


def problem_of(messages: Sequence[Message]) -> str:
    """Return what a server would refuse in these messages; "" for nothing. It knows nothing of how they came about."""
    waiting: list[str] = []
    for position, message in enumerate(messages):
        if isinstance(message, ToolResult):
            if not waiting or waiting.pop(0) != message.call_id:
                return f"message {position} is a result that no call waits for: {message.call_id}"
            continue
        if waiting:
            return f"message {position} comes before the results of {waiting}"
        if isinstance(message, SystemMessage) and position:
            return f"message {position} is a second system message"
        if isinstance(message, AssistantMessage):
            waiting = [call.id for call in message.tool_calls]
    return f"no results of {waiting}" if waiting else ""
