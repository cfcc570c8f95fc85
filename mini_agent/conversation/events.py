"""Every fact of a session, one frozen dataclass each, to and from JSON.

This list is the program's public contract: the log holds these events, and everything else (the conversation, the
Markdown record, the trace, the terminal, resume) is a reader of them. One turn, as it is recorded:

    SessionStarted                      once per run of the program
    InstructionsSet                     only when they differ from the last ones
    UserMessageAdded
        AssistantMessageAdded           one round: what the model said, here with two tool calls
            ToolResultAdded             the first call's one result
            FilesWillChange             the second call edits files
            FilesChanged
            ToolResultAdded
        HistorySummarized               only when it grew too long
        AssistantMessageAdded           the answer: no tool calls
    TurnEnded

Events carry no time and no number: the log adds both. A new fact is a new type here.
`to_json` and `from_json` are written out for each type, so that the file format is read here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, ClassVar, Union

from mini_agent.conversation.messages import AssistantMessage, JsonObject, Summary, ToolCall, Usage, UserMessage

# ---------------------------------------------------------------------------------------------- reading checked values


def _value(data: JsonObject, name: str, kind: Any) -> Any:
    value = data[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{name!r} is {type(value).__name__}")
    return value


def _text(data: JsonObject, name: str) -> str:
    return str(_value(data, name, str))


def _texts(data: JsonObject, *names: str) -> tuple[str, ...]:
    return tuple(_text(data, name) for name in names)


def _flag(data: JsonObject, name: str) -> bool:
    return bool(_value(data, name, bool))


def _number(data: JsonObject, name: str) -> int:
    return int(_value(data, name, int))


def _objects(data: JsonObject, name: str) -> tuple[JsonObject, ...]:
    items = _value(data, name, list)
    if not all(isinstance(item, dict) for item in items):
        raise ValueError(f"{name!r} holds something that is no object")
    return tuple(items)


def _usage_to_json(usage: Usage | None) -> JsonObject | None:
    if usage is None:
        return None
    return {"input": usage.input_tokens, "output": usage.output_tokens, "cached": usage.cached_tokens}


def _usage_from_json(data: JsonObject | None) -> Usage | None:
    return None if data is None else Usage(_number(data, "input"), _number(data, "output"), _number(data, "cached"))


def _call_to_json(call: ToolCall) -> JsonObject:
    return {
        "id": call.id,
        "name": call.name,
        "arguments_text": call.arguments_text,
        "arguments": None if call.arguments is None else dict(call.arguments),
        "problem": call.problem,
        "provider_fields": dict(call.provider_fields),
    }


def _call_from_json(data: JsonObject) -> ToolCall:
    id, name, arguments_text, problem = _texts(data, "id", "name", "arguments_text", "problem")
    arguments = None if data["arguments"] is None else _value(data, "arguments", dict)
    return ToolCall(id, name, arguments_text, arguments, problem, _value(data, "provider_fields", dict))


# ------------------------------------------------------------------------------------------------ the session's frame


@dataclass(frozen=True)
class SessionStarted:
    """The program began to work on this session: at its start, and again at each resume."""

    type: ClassVar[str] = "session_started"
    workspace: str
    model: str
    base_url: str  # told to people; never read back as the place to send a request to
    version: str

    def to_json(self) -> JsonObject:
        """Return the fields as the log holds them."""
        return {"workspace": self.workspace, "model": self.model, "base_url": self.base_url, "version": self.version}

    @classmethod
    def from_json(cls, data: JsonObject) -> SessionStarted:
        """Read what `to_json` wrote."""
        return cls(*_texts(data, "workspace", "model", "base_url", "version"))


@dataclass(frozen=True)
class InstructionsSet:
    """The system message, and the tools that the model is offered, from here on."""

    type: ClassVar[str] = "instructions_set"
    text: str
    tools: tuple[JsonObject, ...]  # each {"name", "description", "parameters": JSON schema}
    hash: str  # of both, so that a resume records them only when they changed

    def to_json(self) -> JsonObject:
        """Return the fields as the log holds them."""
        return {"text": self.text, "tools": list(self.tools), "hash": self.hash}

    @classmethod
    def from_json(cls, data: JsonObject) -> InstructionsSet:
        """Read what `to_json` wrote."""
        return cls(_text(data, "text"), _objects(data, "tools"), _text(data, "hash"))


@dataclass(frozen=True)
class ModelChanged:
    """The user chose another model in the middle of the session."""

    type: ClassVar[str] = "model_changed"
    model: str
    base_url: str

    def to_json(self) -> JsonObject:
        """Return the fields as the log holds them."""
        return {"model": self.model, "base_url": self.base_url}

    @classmethod
    def from_json(cls, data: JsonObject) -> ModelChanged:
        """Read what `to_json` wrote."""
        return cls(*_texts(data, "model", "base_url"))


@dataclass(frozen=True)
class Notice:
    """Something a person should know (a retry, a cut, a warning): shown and recorded, never sent to the model."""

    type: ClassVar[str] = "notice"
    text: str
    level: str = "info"  # info or warn

    def to_json(self) -> JsonObject:
        """Return the fields as the log holds them."""
        return {"text": self.text, "level": self.level}

    @classmethod
    def from_json(cls, data: JsonObject) -> Notice:
        """Read what `to_json` wrote."""
        return cls(*_texts(data, "text", "level"))


# ------------------------------------------------------------------------------------------------- what is said


@dataclass(frozen=True)
class UserMessageAdded:
    """The user said something: it opens a turn, or, steered, it came in while one was running."""

    type: ClassVar[str] = "user_message_added"
    text: str
    steered: bool = False

    def to_json(self) -> JsonObject:
        """Return the fields as the log holds them."""
        return {"text": self.text, "steered": self.steered}

    @classmethod
    def from_json(cls, data: JsonObject) -> UserMessageAdded:
        """Read what `to_json` wrote."""
        return cls(_text(data, "text"), _flag(data, "steered"))


@dataclass(frozen=True)
class ReminderAdded:
    """The program told the model something in the user's place, for instance that it may call no more tools."""

    type: ClassVar[str] = "reminder_added"
    text: str

    def to_json(self) -> JsonObject:
        """Return the fields as the log holds them."""
        return {"text": self.text}

    @classmethod
    def from_json(cls, data: JsonObject) -> ReminderAdded:
        """Read what `to_json` wrote."""
        return cls(_text(data, "text"))


@dataclass(frozen=True)
class AssistantMessageAdded:
    """The model replied: each reply opens its tool calls, and is the answer where it has none."""

    type: ClassVar[str] = "assistant_message_added"
    message: AssistantMessage
    usage: Usage | None  # None where the server did not say
    model: str
    base_url: str
    finish_reason: str = ""

    def to_json(self) -> JsonObject:
        """Return the fields as the log holds them."""
        return {
            "text": self.message.text,
            "tool_calls": [_call_to_json(call) for call in self.message.tool_calls],
            "provider_fields": dict(self.message.provider_fields),
            "usage": _usage_to_json(self.usage),
            "model": self.model,
            "base_url": self.base_url,
            "finish_reason": self.finish_reason,
        }

    @classmethod
    def from_json(cls, data: JsonObject) -> AssistantMessageAdded:
        """Read what `to_json` wrote."""
        calls = tuple(_call_from_json(call) for call in _objects(data, "tool_calls"))
        message = AssistantMessage(_text(data, "text"), calls, _value(data, "provider_fields", dict))
        return cls(message, _usage_from_json(data["usage"]), *_texts(data, "model", "base_url", "finish_reason"))


@dataclass(frozen=True)
class ToolResultAdded:
    """A tool call came to its one result."""

    type: ClassVar[str] = "tool_result_added"
    call_id: str
    tool_name: str
    text: str
    is_error: bool
    canonical_call: str  # name and arguments in one comparable form, defaults filled in
    hidden: bool = False  # bookkeeping between model and program: the model is not shown call and result again

    def to_json(self) -> JsonObject:
        """Return the fields as the log holds them."""
        return {
            "call_id": self.call_id,
            "tool_name": self.tool_name,
            "text": self.text,
            "is_error": self.is_error,
            "canonical_call": self.canonical_call,
            "hidden": self.hidden,
        }

    @classmethod
    def from_json(cls, data: JsonObject) -> ToolResultAdded:
        """Read what `to_json` wrote."""
        call_id, tool_name, text, canonical = _texts(data, "call_id", "tool_name", "text", "canonical_call")
        return cls(call_id, tool_name, text, _flag(data, "is_error"), canonical, _flag(data, "hidden"))


@dataclass(frozen=True)
class TurnEnded:
    """A turn came to its end, good or bad; what it said and did stays."""

    type: ClassVar[str] = "turn_ended"
    status: str  # completed, failed, interrupted or round_limit
    kind: str = ""  # of a failure, in one word: repeated_call, token_limit, rate_limited …
    reason: str = ""  # in a sentence, for people

    def to_json(self) -> JsonObject:
        """Return the fields as the log holds them."""
        return {"status": self.status, "kind": self.kind, "reason": self.reason}

    @classmethod
    def from_json(cls, data: JsonObject) -> TurnEnded:
        """Read what `to_json` wrote."""
        return cls(*_texts(data, "status", "kind", "reason"))


# -------------------------------------------------------------------------------------------------- what changed


TEMPORARY_PREFIX = ".mini_agent-"  # so begins the name of every temporary file: a resume removes no others
KEPT_SUFFIX = ".old"  # added to the temporary name: what the file held before


@dataclass(frozen=True)
class FileChange:
    """One file, before and after a change."""

    path: str  # relative to the workspace, with forward slashes
    hash_before: str | None  # SHA-256 of its bytes; None where there was no such file
    hash_after: str | None  # None where the file is removed
    temporary_path: str = ""  # where the new bytes lie until they are renamed into place: relative, the same folder

    @property
    def leftover_paths(self) -> tuple[str, ...]:
        """Return what a crash may leave behind: the new bytes, and the old file, kept until all are in place."""
        return (self.temporary_path, self.temporary_path + KEPT_SUFFIX) if self.temporary_path else ()

    def to_json(self) -> JsonObject:
        """Return the fields as the log holds them."""
        return {
            "path": self.path,
            "hash_before": self.hash_before,
            "hash_after": self.hash_after,
            "temporary_path": self.temporary_path,
        }

    @classmethod
    def from_json(cls, data: JsonObject) -> FileChange:
        """Read what `to_json` wrote."""
        before, after = (None if data[name] is None else _text(data, name) for name in ("hash_before", "hash_after"))
        return cls(_text(data, "path"), before, after, _text(data, "temporary_path"))


@dataclass(frozen=True)
class FilesWillChange:
    """These files are about to be written: recorded first, so that a crash in between can be told afterwards."""

    type: ClassVar[str] = "files_will_change"
    files: tuple[FileChange, ...]

    def to_json(self) -> JsonObject:
        """Return the fields as the log holds them."""
        return {"files": [file.to_json() for file in self.files]}

    @classmethod
    def from_json(cls, data: JsonObject) -> FilesWillChange:
        """Read what `to_json` wrote."""
        return cls(tuple(FileChange.from_json(file) for file in _objects(data, "files")))


@dataclass(frozen=True)
class FilesChanged:
    """What became of the files announced last: those that did change (none, where all were put back)."""

    type: ClassVar[str] = "files_changed"
    files: tuple[FileChange, ...]

    def to_json(self) -> JsonObject:
        """Return the fields as the log holds them."""
        return {"files": [file.to_json() for file in self.files]}

    @classmethod
    def from_json(cls, data: JsonObject) -> FilesChanged:
        """Read what `to_json` wrote."""
        return cls(tuple(FileChange.from_json(file) for file in _objects(data, "files")))


@dataclass(frozen=True)
class ApprovalAnswered:
    """The user was asked for permission and answered (or was not there, which is a no)."""

    type: ClassVar[str] = "approval_answered"
    question: str
    approved: bool

    def to_json(self) -> JsonObject:
        """Return the fields as the log holds them."""
        return {"question": self.question, "approved": self.approved}

    @classmethod
    def from_json(cls, data: JsonObject) -> ApprovalAnswered:
        """Read what `to_json` wrote."""
        return cls(_text(data, "question"), _flag(data, "approved"))


# ------------------------------------------------------------------------------------------- what was made smaller


@dataclass(frozen=True)
class ToolOutputCompressed:
    """One tool result is shown shorter from here on; the log keeps the original."""

    type: ClassVar[str] = "tool_output_compressed"
    call_id: str  # of the result that is replaced
    text: str
    characters_before: int

    def to_json(self) -> JsonObject:
        """Return the fields as the log holds them."""
        return {"call_id": self.call_id, "text": self.text, "characters_before": self.characters_before}

    @classmethod
    def from_json(cls, data: JsonObject) -> ToolOutputCompressed:
        """Read what `to_json` wrote."""
        return cls(_text(data, "call_id"), _text(data, "text"), _number(data, "characters_before"))


_HEAD_ROLES: dict[str, Callable[[str], UserMessage | Summary]] = {
    "user": UserMessage,
    "steered": lambda text: UserMessage(text, steered=True),
    "summary": Summary,
}


def _head_role(message: UserMessage | Summary) -> str:
    if isinstance(message, Summary):
        return "summary"
    return "steered" if message.steered else "user"


@dataclass(frozen=True)
class HistorySummarized:
    """The visible messages before `kept_from` (the instructions excepted) are replaced by `head`.

    `head` holds all that stands in their place, in order: the user's own requests and the summary.
    """

    type: ClassVar[str] = "history_summarized"
    head: tuple[UserMessage | Summary, ...]
    kept_from: int  # index into the visible messages as they were before; their number, where none is kept
    tokens_before: int  # of all visible messages and the tools, as the server would count them
    tokens_after: int
    reason: str  # for people: why now, what was kept, what was summarized
    usage: Usage | None = None  # what asking for the summary cost

    def to_json(self) -> JsonObject:
        """Return the fields as the log holds them."""
        return {
            "head": [{"role": _head_role(message), "text": message.text} for message in self.head],
            "kept_from": self.kept_from,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "reason": self.reason,
            "usage": _usage_to_json(self.usage),
        }

    @classmethod
    def from_json(cls, data: JsonObject) -> HistorySummarized:
        """Read what `to_json` wrote."""
        head = tuple(_HEAD_ROLES[_text(item, "role")](_text(item, "text")) for item in _objects(data, "head"))
        kept_from, before, after = (_number(data, name) for name in ("kept_from", "tokens_before", "tokens_after"))
        return cls(head, kept_from, before, after, _text(data, "reason"), _usage_from_json(data["usage"]))


# --------------------------------------------------------------------------------------------------- all of them

Event = Union[
    SessionStarted,
    InstructionsSet,
    ModelChanged,
    Notice,
    UserMessageAdded,
    ReminderAdded,
    AssistantMessageAdded,
    ToolResultAdded,
    TurnEnded,
    FilesWillChange,
    FilesChanged,
    ApprovalAnswered,
    ToolOutputCompressed,
    HistorySummarized,
]

EVENT_TYPES: dict[str, type[Any]] = {cls.type: cls for cls in Event.__args__}  # type: ignore[attr-defined]


def event_to_json(event: Event) -> JsonObject:
    """Return the event as one JSON object whose "type" names it."""
    return {"type": event.type, **event.to_json()}


def event_from_json(data: JsonObject) -> Event:
    """Read an event; raise ValueError, saying what is wrong, for anything that `event_to_json` did not write."""
    kind = data.get("type")
    if not isinstance(kind, str) or kind not in EVENT_TYPES:
        raise ValueError(f"unknown type of event {kind!r}: was it written by a newer version?")
    try:
        event: Event = EVENT_TYPES[kind].from_json(data)
    except KeyError as error:
        raise ValueError(f"the event {kind!r} has no {error}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"the event {kind!r} is damaged: {error}") from error
    return event
