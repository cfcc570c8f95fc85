"""How many tokens a conversation takes: estimated from its bytes, at a cost that does not grow with its length.

A token is taken for 4 bytes of UTF-8. So plain English counts as characters / 4, and a Chinese character as three
quarters of a token, which is about what it costs; counting characters alone would take it for a quarter.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mini_agent.conversation.conversation import Conversation
from mini_agent.conversation.cutting import cut_middle
from mini_agent.conversation.messages import AssistantMessage, JsonObject, Message, ToolResult

BYTES_PER_TOKEN = 4
TOKENS_PER_MESSAGE = 4  # its role, and the marks around it; as many again for each tool call
_CUT_NOTE_BYTES = 100  # the line that says what is missing, without its hint


def _size(text: str) -> int:
    """Return the length in bytes of UTF-8; for ASCII, which is most of it, without encoding anything."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _json_size(fields: Mapping[str, Any]) -> int:
    return _size(json.dumps(fields, ensure_ascii=False, default=str)) if fields else 0


def _in_tokens(size_bytes: int) -> int:
    return -(-size_bytes // BYTES_PER_TOKEN)  # rounded up


def text_tokens(text: str) -> int:
    """Estimate the tokens of a text alone."""
    return _in_tokens(_size(text))


def message_tokens(message: Message) -> int:
    """Estimate the tokens of one message as it is sent, calls and provider fields included."""
    size, parts = _size(message.text), 1
    if isinstance(message, ToolResult):
        size += _size(message.call_id)
    elif isinstance(message, AssistantMessage):
        size += _json_size(message.provider_fields)
        for call in message.tool_calls:
            size += _size(call.id) + _size(call.name) + _size(call.arguments_text) + _json_size(call.provider_fields)
        parts += len(message.tool_calls)
    return _in_tokens(size) + TOKENS_PER_MESSAGE * parts


def tools_tokens(tools: Iterable[JsonObject]) -> int:
    """Estimate the tokens of the tool definitions, which go with every request."""
    return sum(_in_tokens(_json_size(tool)) + TOKENS_PER_MESSAGE for tool in tools)


def cut_to_tokens(text: str, limit_tokens: int, hint: str = "") -> str:
    """Return `text` in at most `limit_tokens`: where it is longer, head and tail with a line between that says so.

    A limit that has no place for that line gives the beginning alone. hint: what the reader may do about it.
    """
    if text_tokens(text) <= limit_tokens:
        return text
    limit_bytes = limit_tokens * BYTES_PER_TOKEN
    room = limit_bytes - _CUT_NOTE_BYTES - _size(hint)
    if room >= _CUT_NOTE_BYTES:
        return cut_middle(text, room, hint)
    return text.encode("utf-8", "surrogatepass")[: max(limit_bytes - 3, 0)].decode("utf-8", "ignore") + "…"


def fair_share(sizes: Sequence[int], limit: int) -> int:
    """Return the most that each of `sizes` may have so that together they keep to `limit`: only the large ones give."""
    left = limit
    for position, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - position)
        if size > share:
            return max(share, 0)
        left -= size
    return limit


class TokenCounter:
    """Count a conversation, each message once.

    As long as messages are only appended, a count costs as much as what is new. A compression changes the
    conversation's `generation`; then all are added up again, those known by heart from memory.
    """

    def __init__(self) -> None:
        self._conversation: Conversation | None = None
        self._generation = -1
        self._counts: list[int] = []  # of each visible message
        self._total = 0
        self._known: dict[int, tuple[Message, int]] = {}  # by id(); holding the message keeps its id from another

    def count(self, conversation: Conversation) -> int:
        """Return the estimate for what would be sent now, tool definitions included."""
        self._catch_up(conversation)
        return self._total + tools_tokens(conversation.tools)

    def count_each(self, conversation: Conversation) -> list[int]:
        """Return the estimate for each visible message, in order."""
        self._catch_up(conversation)
        return list(self._counts)

    def _catch_up(self, conversation: Conversation) -> None:
        messages = conversation.visible_messages()
        known = self._known
        if conversation is not self._conversation or conversation.generation != self._generation:
            self._conversation, self._generation = conversation, conversation.generation
            self._counts, self._total, self._known = [], 0, {}
        for message in messages[len(self._counts) :]:
            entry = known.get(id(message)) or (message, message_tokens(message))
            self._known[id(message)] = entry
            self._counts.append(entry[1])
            self._total += entry[1]
