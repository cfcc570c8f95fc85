"""The messages of a conversation: what a model is shown and what it says.

They know nothing of any server's wire format; `model/openai_chat.py` renders them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Union

JsonObject = dict[str, Any]


@dataclass(frozen=True)
class ToolCall:
    """One request of the model to run a tool."""

    id: str  # unique within a session: `with_unique_ids` sees to it
    name: str
    arguments_text: str  # as the model wrote them
    arguments: Mapping[str, Any] | None  # as they were read; None where they could not be, and then there is a problem
    problem: str = ""  # why this call must not run, in words for the model; "" for a call that may
    provider_fields: Mapping[str, Any] = field(default_factory=dict)  # what else the server sent on the call


@dataclass(frozen=True)
class Usage:
    """What one model call cost, in tokens, as the server counted them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0  # the part of input_tokens that the server had in its prompt cache

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
        )

    @property
    def total_tokens(self) -> int:
        """Return what was read and written together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True)
class SystemMessage:
    """The instructions: always the first message."""

    text: str


@dataclass(frozen=True)
class UserMessage:
    """What the user said, in the user's own words."""

    text: str
    steered: bool = False  # it came in while a turn was running, and opened none


@dataclass(frozen=True)
class Reminder:
    """What the program tells the model in the user's place, as at the round limit: never the user's own words."""

    text: str


@dataclass(frozen=True)
class Summary:
    """What stands in for the messages that a compression took away."""

    text: str


@dataclass(frozen=True)
class AssistantMessage:
    """What the model said, and the tools it asked for."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    provider_fields: Mapping[str, Any] = field(default_factory=dict)  # reasoning and the like: goes back as it came
    origin: tuple[str, str] = ("", "")  # model and base URL that were asked, as the fold knows them

    @property
    def is_empty(self) -> bool:
        """Tell whether there is neither text nor a call in it."""
        return not self.text.strip() and not self.tool_calls


@dataclass(frozen=True)
class ToolResult:
    """What a tool call came to: exactly one for each call, right after the call's message."""

    call_id: str
    tool_name: str
    text: str
    is_error: bool = False


Message = Union[SystemMessage, UserMessage, Reminder, Summary, AssistantMessage, ToolResult]


def with_unique_ids(calls: Iterable[ToolCall], used: set[str]) -> tuple[ToolCall, ...]:
    """Return the calls under ids that are neither empty, nor repeated, nor in `used`.

    Servers exist that send no id, or number the calls of every reply from zero; a result must still find its call.
    """
    unique: dict[str, ToolCall] = {}
    for call in calls:
        id, number = call.id, len(used) + len(unique)  # from here on a number is most likely free: no search from 1
        while not id or id in used or id in unique:
            number += 1
            id = f"{call.id or 'call'}_{number}"
        unique[id] = call if id == call.id else replace(call, id=id)
    return tuple(unique.values())
