"""How many tokens a conversation takes: estimated from its bytes, and put right by the server's own counts.

A token is taken for 4 bytes of UTF-8. So plain English counts as characters / 4, and a Chinese character as three
quarters of a token, which is about what it costs; counting characters alone would take it for a quarter.

Every tokenizer differs from that by a factor of its own. A server that tells how many tokens the last request had
tells the factor, too: `count` is the estimate times it. For the last request that is just what the server counted, and
what came after is added at the same rate; after a compression, and from a server that stops telling, the factor still
holds. All of it costs a round as much at 10,000 messages as at 10.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mini_agent.conversation.conversation import Conversation, ServerCount
from mini_agent.conversation.cutting import cut_middle
from mini_agent.conversation.messages import AssistantMessage, JsonObject, Message, SystemMessage, ToolResult

BYTES_PER_TOKEN = 4
TOKENS_PER_MESSAGE = 4  # its role, and the marks around it; as many again for each tool call
_CUT_NOTE_BYTES = 100  # the line that says what is missing, without its hint
_CUT_MARK = " […] "  # where there is no place for that line
CUT = re.compile(r"\n\[… [^\n]{1,100} …\]\n| \[…\] ")  # finds both

# A byte is one token at most: no tokenizer needs 4 for what is estimated as 1. None gets 8 bytes of text into one on
# average either: a count below half of the estimate is the count of a prompt that was cut.
SMALLEST_FACTOR, LARGEST_FACTOR = 0.5, 4.0
UNCOUNTED_FACTOR = 1.5  # a server that has counted nothing yet and refuses is likely to count more than we do
_TOO_SHORT_TO_JUDGE = 1_500  # in tokens; here what a template adds, or leaves out of the tools, weighs too much
_SMALLEST_STEP = 256  # in tokens: by less than this a conversation has to grow before its count is read anew


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

    A limit that has no place for that line gets a mark instead. hint: what the reader may do about it.
    """
    if text_tokens(text) <= limit_tokens:
        return text
    limit_bytes = limit_tokens * BYTES_PER_TOKEN
    room = limit_bytes - _CUT_NOTE_BYTES - _size(hint)
    if room >= _CUT_NOTE_BYTES:
        return cut_middle(text, room, hint)
    return head_and_tail(text, text, limit_tokens)


def head_and_tail(head: str, tail: str, limit_tokens: int) -> str:
    """Return the beginning of `head` and the end of `tail` with a mark between, in at most `limit_tokens`."""
    room = limit_tokens * BYTES_PER_TOKEN - len(_CUT_MARK.encode("utf-8"))
    if room <= 0:
        return "…"
    first, last = (text.encode("utf-8", "surrogatepass") for text in (head, tail))
    first, last = first[: room - room // 3], last[max(len(last) - room // 3, 0) :]
    return f"{first.decode('utf-8', 'ignore')}{_CUT_MARK}{last.decode('utf-8', 'ignore')}"


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
        self.factor = 1.0  # of the server's tokens to estimated ones
        self.is_counted = False  # the server has told of a request how many tokens it had, and was believed
        self._taken: ServerCount | None = None  # the last count that was looked at
        self._believed = (-1, 0, 0)  # generation, estimate and count of the request that the factor comes from
        self._conversation: Conversation | None = None
        self._generation = -1
        self._estimates: list[int] = []  # of each visible message
        self._sums: list[int] = [0]  # of the first 0, 1, 2 … of them
        self._known: dict[int, tuple[Message, int]] = {}  # by id(); holding the message keeps its id from another
        self._tools: tuple[tuple[JsonObject, ...], int] = ((), 0)

    def count(self, conversation: Conversation) -> int:
        """Return how many tokens the server would count in what would be sent now, tool definitions included."""
        estimate = self.estimate(conversation)
        self._learn(conversation)
        return self.scaled(estimate)

    def scaled(self, estimate: int) -> int:
        """Return what the server is likely to count where so much is estimated."""
        return round(estimate * self.factor)

    def estimate(self, conversation: Conversation) -> int:
        """Return the bare estimate for what would be sent now, tool definitions included."""
        self._catch_up(conversation)
        return self._sums[-1] + self._tools[1]

    def estimate_each(self, conversation: Conversation) -> list[int]:
        """Return the bare estimate for each visible message, in order."""
        self._catch_up(conversation)
        return list(self._estimates)

    def fixed_estimate(self, conversation: Conversation) -> int:
        """Return the bare estimate for what goes with every request: instructions and tools."""
        self._catch_up(conversation)
        has_instructions = isinstance(next(iter(conversation.visible_messages()), None), SystemMessage)
        return self._sums[int(has_instructions)] + self._tools[1]

    def forget(self) -> None:
        """Begin anew with the factor: another model answers."""
        self.factor, self.is_counted = 1.0, False

    def learn_from_refusal(self, conversation: Conversation, window_tokens: int | None) -> None:
        """Take in that what is visible is larger than this window, where no count has told how the server counts."""
        if not self.is_counted:
            least = (window_tokens or 0) / max(self.estimate(conversation), 1)
            least = least if least <= LARGEST_FACTOR else 0  # then it was not for its own size that it was refused
            self.factor = _bounded(max(UNCOUNTED_FACTOR * self.factor, least * 1.25))

    def _learn(self, conversation: Conversation) -> None:
        """Take in the server's count of the last request, where that is new and can be believed.

        A server may cut a prompt that it finds too long without a word, and count what it left: then the count stands
        still while the conversation grows, and says nothing of its size. (It may well grow slowly: templates leave out
        the reasoning of earlier replies.)
        """
        counted = conversation.server_count
        if counted is None or counted is self._taken or counted.generation != conversation.generation:
            return
        self._taken = counted
        sent = self._sums[counted.messages] + self._tools[1]
        generation, sent_before, counted_before = self._believed
        if generation == counted.generation:
            step = sent - sent_before
            is_news = step >= _SMALLEST_STEP and counted.tokens - counted_before >= step / 8
        else:
            is_news = sent < _TOO_SHORT_TO_JUDGE or counted.tokens >= sent * min(self.factor, 1) * SMALLEST_FACTOR
        if is_news:
            self._believed = (counted.generation, sent, counted.tokens)
            self.factor, self.is_counted = _bounded(counted.tokens / max(sent, 1)), True

    def _catch_up(self, conversation: Conversation) -> None:
        messages = conversation.visible_messages()
        known = self._known
        if conversation is not self._conversation:
            self._believed = (-1, 0, 0)
        if conversation is not self._conversation or conversation.generation != self._generation:
            self._conversation, self._generation = conversation, conversation.generation
            self._estimates, self._sums, self._known = [], [0], {}
        if conversation.tools is not self._tools[0]:
            self._tools = (conversation.tools, tools_tokens(conversation.tools))
        for position in range(len(self._estimates), len(messages)):
            message = messages[position]
            entry = known.get(id(message)) or (message, message_tokens(message))
            self._known[id(message)] = entry
            self._estimates.append(entry[1])
            self._sums.append(self._sums[-1] + entry[1])


def _bounded(factor: float) -> float:
    return min(max(factor, SMALLEST_FACTOR), LARGEST_FACTOR)
