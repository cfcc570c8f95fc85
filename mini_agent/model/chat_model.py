"""The seam to a chat model: what the loop asks of one, and how it fails.

Two things stand behind it: `OpenAIChatModel`, which asks a server, and `ScriptedModel`, which follows a script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mini_agent.conversation.messages import AssistantMessage, JsonObject, Message, Usage


@dataclass(frozen=True)
class ModelReply:
    """What one model call returned."""

    message: AssistantMessage
    usage: Usage | None = None  # None where the server did not say
    model: str = ""  # as the server names it, else as it was asked for
    base_url: str = ""
    finish_reason: str = ""  # stop, tool_calls, length … in the server's word


class Watch(Protocol):
    """Who follows a model call while it runs."""

    def text(self, delta: str) -> None:
        """Take text of the reply, as soon as it is there: whole, or in pieces one after the other."""

    def notice(self, text: str) -> None:
        """Take a sentence for people: a retry, a fall-back."""


class ChatModel(Protocol):
    """Anything that answers a conversation."""

    def reply(
        self, messages: Sequence[Message], tools: Sequence[JsonObject], watch: Watch, may_call_tools: bool = True
    ) -> ModelReply:
        """Return what the model says next.

        messages: oldest first; every tool call in them has its result.
        tools: what it may call, each {"name", "description", "parameters": JSON schema}; empty for a plain question.
        may_call_tools: False asks for words only, though the tools are still named (so that a prompt cache holds).
        Raises ModelError, and nothing else but KeyboardInterrupt.
        """
        ...


class ModelError(Exception):
    """A model call that failed: one clear line for people, with a hint where one is known."""

    kind = "model_error"


class RateLimited(ModelError):
    """The server asks for fewer requests (429)."""

    kind = "rate_limited"


class ServerFailed(ModelError):
    """The server failed (5xx)."""

    kind = "server_failed"


class ConnectionFailed(ModelError):
    """No whole answer came: unreachable, broken off, or too slow."""

    kind = "connection_failed"


class StreamFailed(ConnectionFailed):
    """A streamed answer that can't be read, or that never comes to its end."""


class Refused(ModelError):
    """The server will not serve this user, model or address (401, 403, 404, an empty account)."""

    kind = "refused"


class UnknownModel(Refused):
    """The server has no model of this name."""


class BadRequest(ModelError):
    """The server does not accept the request as it is (400, 422)."""

    kind = "bad_request"


class ToolsRefused(BadRequest):
    """The server takes no tools for this model, or not as it was started."""


class ContextOverflow(ModelError):
    """The conversation is larger than the model's window."""

    kind = "context_overflow"

    def __init__(self, message: str, window_tokens: int | None = None) -> None:
        """Keep the window that the server named, in tokens, where it named one."""
        super().__init__(message)
        self.window_tokens = window_tokens


class BadReply(ModelError):
    """The server answered, but not with a chat completion."""

    kind = "bad_reply"


class EmptyReply(BadReply):
    """The model was asked twice and said nothing at all."""

    kind = "empty_reply"
