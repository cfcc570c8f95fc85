"""The plan of a compression: which messages are summarized, and which stay as they are. Pure.

    before   instructions │ task … requests, replies, calls and results … │ newest exchanges
    after    instructions │ task, other requests, latest request, summary │ newest exchanges

Three rules make it safe:
- A boundary lies only between whole exchanges (a reply with all its tool results): a call without its result is
  refused by servers, and would be for the rest of the session.
- The user's first message (the task), the latest one, and the request that is worked on stay in the user's own words,
  the others as far as they fit. A message too large for that is cut in the middle, with a mark. A steered or short
  message ("go on") is no new request. Reminders and summaries are not the user's words.
- A turn need not be kept whole: where it has grown too long, its request stays and its first part is summarized.

Where even the last exchange is too large, its large results are shortened to head and tail; where that does not help
either (the model itself wrote so much), the exchange is summarized too.

Before any of that there is a cheaper way, which asks no model: `results_to_shorten`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from mini_agent.context.tokens import CUT, TOKENS_PER_MESSAGE, cut_to_tokens, fair_share, head_and_tail, text_tokens
from mini_agent.conversation.conversation import EarlierResult
from mini_agent.conversation.messages import AssistantMessage, Message, Summary, SystemMessage, ToolResult, UserMessage

SMALLEST_SUMMARY_TOKENS, LARGEST_SUMMARY_TOKENS = 64, 4000
SMALLEST_RESULT_TOKENS = 64  # shortened further, a result says nothing
SHORTENED_TOKENS = 150  # of an old result: enough for head, tail and the note between them
SMALLEST_REQUEST_TOKENS = 16  # a message of the user that is shorter ("yes, go on") belongs to the request before it
_LONGEST_CALL = 150  # characters; a longer call is not named in full
_HINT = "Call it again for a part of it, if you need more"

Shortened = tuple[tuple[str, str], ...]  # call ids of results, each with its new text


@dataclass(frozen=True)
class Plan:
    """What a compression does. Positions are indexes into the visible messages."""

    start: int  # of the first message after the instructions
    kept_from: int  # of the first message that stays where it is
    turn_from: int  # of the request that is worked on: what follows it up to `kept_from` is a turn's first part
    requests: tuple[UserMessage, ...]  # of those before `kept_from`, what stays in the user's words, in order
    shortened: Shortened  # results of the last exchange
    summarized: tuple[int, ...]  # positions of what is lost but for the summary
    summary_tokens: int  # the most that the summary may take


def make_plan(messages: Sequence[Message], tokens: Sequence[int], room: int, recent: int) -> Plan:
    """Plan a compression of `messages`, which take `tokens` each.

    room: the tokens that everything but instructions and tools may take afterwards: up to a half is for the task and
    the requests that must stay, a sixth for the summary, an eighth for the user's other messages.
    recent: the tokens that the newest exchanges may take.
    """
    other_requests = room // 8
    summary = min(LARGEST_SUMMARY_TOKENS, max(SMALLEST_SUMMARY_TOKENS, room // 6))
    start = 1 if messages and isinstance(messages[0], SystemMessage) else 0
    own = [position for position, message in enumerate(messages) if isinstance(message, UserMessage)]
    turn_from = _request(messages, tokens, own)
    required = {own[0], turn_from, own[-1]} if own else set()
    largest = fair_share([tokens[position] for position in required], room // 2)
    too_large = {position for position in required if tokens[position] > largest}
    room -= summary + sum(min(tokens[position], largest) for position in required)
    costs = [0 if position in required else count for position, count in enumerate(tokens)]
    kept_from, shortened, room = _keep_recent(messages, costs, range(start, len(messages)), too_large, room, recent)

    kept = {position for position in required if position < kept_from}
    room = min(room, other_requests)
    for position in reversed(own):
        if position < kept_from and position not in required and tokens[position] <= room:
            room -= tokens[position]
            kept.add(position)
    requests = tuple(_cut(messages[position], largest - TOKENS_PER_MESSAGE) for position in sorted(kept))
    summarized = tuple(position for position in range(start, kept_from) if position not in kept - too_large)
    return Plan(start, kept_from, turn_from, requests, shortened, summarized, summary)


def _request(messages: Sequence[Message], tokens: Sequence[int], own: Sequence[int]) -> int:
    """Return the position of the request that is worked on: the user's last message that is no mere addition."""
    for position in reversed(own):
        message = messages[position]
        is_steered = isinstance(message, UserMessage) and message.steered
        if not is_steered and tokens[position] >= SMALLEST_REQUEST_TOKENS + TOKENS_PER_MESSAGE:
            return position
    return own[0] if own else 0


def _cut(message: Message, limit_tokens: int) -> UserMessage:
    """Return a message of the user in at most `limit_tokens`.

    One that was cut before is cut at the same place, so that what is left is still the beginning and the end of it.
    """
    assert isinstance(message, UserMessage)
    text, mark = message.text, CUT.search(message.text)
    if mark and text_tokens(text) > limit_tokens:
        return replace(message, text=head_and_tail(text[: mark.start()], text[mark.end() :], limit_tokens))
    return replace(message, text=cut_to_tokens(text, limit_tokens))


def _keep_recent(
    messages: Sequence[Message], costs: Sequence[int], span: range, too_large: set[int], room: int, recent: int
) -> tuple[int, Shortened, int]:
    """Return from where messages are kept, which results are shortened for that, and the room that is left.

    The newest exchange may take all the room, for the model has not read its results yet; what is older keeps to the
    share of the recent. A summary is never kept: the next one takes it up.
    """
    kept_from, is_newest = span.stop, True
    for unit in reversed(_units(messages, span)):
        message, cost = messages[unit.start], sum(costs[unit.start : unit.stop])
        is_newest_reply = is_newest and isinstance(message, AssistantMessage)
        if isinstance(message, Summary) or unit.start in too_large:
            break
        if cost > (room if is_newest_reply else min(room, recent)):
            shortened = _fitted(messages, costs, unit, room) if is_newest_reply else ()
            return (unit.start, shortened, 0) if shortened else (kept_from, (), room)
        kept_from, room, recent = unit.start, room - cost, recent - cost
        is_newest = is_newest and not is_newest_reply
    return kept_from, (), room


def _units(messages: Sequence[Message], span: range) -> list[range]:
    """Return what may not be parted: a reply with its results, or any other message alone."""
    starts = [position for position in span if not isinstance(messages[position], ToolResult)]
    return [range(start, stop) for start, stop in zip(starts, [*starts[1:], span.stop])]


def _fitted(messages: Sequence[Message], costs: Sequence[int], unit: range, room: int) -> Shortened:
    """Return shorter texts of the largest results of an exchange, so that it fits; none where it cannot."""
    largest = fair_share([costs[position] for position in unit[1:]], room - costs[unit.start])
    if largest < SMALLEST_RESULT_TOKENS:
        return ()
    shortened = []
    for position in unit[1:]:
        result = messages[position]
        if costs[position] > largest and isinstance(result, ToolResult):
            overhead = costs[position] - text_tokens(result.text)
            shortened.append((result.call_id, cut_to_tokens(result.text, largest - overhead, _HINT)))
    return tuple(shortened)


# -------------------------------------------------------------------------------------------------- the cheap way


def results_to_shorten(
    results: Sequence[EarlierResult], old: Collection[str], unread: Collection[str], excess_tokens: int
) -> Shortened:
    """Return shorter texts of results that can be had again, so that `excess_tokens` are saved; none where they can't.

    results: all that can be seen, oldest first. old, unread: call ids of those that a compression would not keep, and
    of the last exchange's, which the model has not read yet. First go those that a later identical call repeats, then
    large old ones, the oldest first, and no more than needed. What was made shorter once is left alone: so the next
    time there is something else to be shortened, or nothing.
    """
    newest = {result.canonical_call: result.call_id for result in results}
    repeated = [result for result in results if newest[result.canonical_call] != result.call_id]
    shortened: dict[str, str] = {}
    for result in [*repeated, *(result for result in results if result.call_id in old)]:
        if excess_tokens <= 0:
            break
        if result.compressions or result.call_id in shortened or result.call_id in unread:
            continue
        is_repeated = newest[result.canonical_call] != result.call_id
        hint = (
            "The same call was made again: its later result is the one to read" if is_repeated else _how_again(result)
        )
        text = cut_to_tokens(result.text, SHORTENED_TOKENS, hint)
        saved = text_tokens(result.text) - text_tokens(text)
        if saved >= SHORTENED_TOKENS:
            shortened[result.call_id] = text
            excess_tokens -= saved
    return tuple(shortened.items()) if excess_tokens <= 0 else ()


def _how_again(result: EarlierResult) -> str:
    if len(result.canonical_call) > _LONGEST_CALL:
        return f"To see all of it, make the same call of {result.tool_name} again"
    return f"To see all of it, call again: {result.canonical_call}"
