"""The compressor: keeps the conversation inside the model's window.

    trigger     the conversation is over its line, or the server refused it, or the user asks for it
    plan        what stays and what is summarized (planner.py)
    summarize   one request to the model (summarizer.py)
    check       what would be sent then is whole and smaller; where it is not, nothing is replaced
    replace     one HistorySummarized event

A turn never fails because of it: whatever goes wrong here, the conversation stays as it was, and valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from os.path import commonprefix
from typing import Callable

from mini_agent.context.budget import Budget
from mini_agent.context.planner import SMALLEST_SUMMARY_TOKENS, Plan, make_plan
from mini_agent.context.summarizer import Ask, summarize
from mini_agent.context.tokens import TokenCounter, message_tokens, tools_tokens
from mini_agent.conversation.conversation import Conversation
from mini_agent.conversation.events import Event, HistorySummarized, Notice, ToolOutputCompressed
from mini_agent.conversation.messages import AssistantMessage, Message, Summary, SystemMessage, ToolResult, UserMessage
from mini_agent.model.chat_model import ContextOverflow

Record = Callable[[Event], None]

SMALLEST_ROOM_TOKENS = 192  # with less beside the instructions and tools, nothing useful could be kept
_MARK_CHARACTERS = 120  # how long the mark in a cut request may be


class Compressor:
    """Make room in a conversation; called before each request, and after one that the server refused as too large."""

    def __init__(self, budget: Budget, counter: TokenCounter, enabled: bool = True) -> None:
        """Take the parts; with `enabled` False only `compress_now` does anything."""
        self.budget = budget  # may be replaced: another model has another window
        self._counter = counter
        self._enabled = enabled
        self._useless: tuple[int, ...] = ()  # what was tried last and did not help, so that it is not tried again

    def __call__(
        self, conversation: Conversation, record: Record, ask: Ask, overflow: ContextOverflow | None = None
    ) -> bool:
        """Compress where it is needed; return whether anything was made smaller.

        record: takes the events of what is done. ask: sends messages to the model without tools.
        overflow: the server's refusal of what is visible now. Then it is compressed in any case, and the window taken
        for what the server says.
        """
        if not self._enabled:
            return False
        tokens = self._counter.count(conversation)
        if overflow is not None:
            self._learn_window(overflow, tokens, record)
            return self._compress(conversation, record, ask, "the server refused it as too large", forced=True)
        if tokens <= self.budget.compress_above_tokens or tokens <= self._line(conversation):
            return False
        return self._compress(conversation, record, ask, "it has grown too long", forced=False)

    def compress_now(self, conversation: Conversation, record: Record, ask: Ask) -> bool:
        """Compress because the user wants it, however short it is; return whether anything was made smaller."""
        return self._compress(conversation, record, ask, "you asked for it", forced=True)

    def _learn_window(self, overflow: ContextOverflow, tokens: int, record: Record) -> None:
        """Take over the window from a refusal. What was refused is over it, whatever the estimate or the server say."""
        named = overflow.window_tokens or tokens * 3 // 4
        budget = self.budget.shrunk_to(min(named, tokens))
        if budget.window_tokens < self.budget.window_tokens:
            self.budget = budget
            record(Notice(f"from now on the model's window is taken to be {budget.window_tokens:,} tokens", "warn"))

    def _fixed(self, conversation: Conversation) -> int:
        """Return the tokens of what goes with every request: instructions and tools."""
        first = conversation.visible_messages()[:1]
        instructions = sum(message_tokens(message) for message in first if isinstance(message, SystemMessage))
        return instructions + tools_tokens(conversation.tools)

    def _line(self, conversation: Conversation) -> int:
        """Return the size above which it is compressed: higher than the budget's where that leaves too little room."""
        fixed, line = self._fixed(conversation), self.budget.compress_above_tokens
        if _room(line, fixed) < SMALLEST_ROOM_TOKENS:
            return max(line, fixed + (self.budget.window_tokens - fixed) * 3 // 4)
        return line

    def _compress(self, conversation: Conversation, record: Record, ask: Ask, why: str, *, forced: bool) -> bool:
        fixed, line = self._fixed(conversation), self._line(conversation)
        messages, tokens = conversation.visible_messages(), self._counter.count_each(conversation)
        recent = self.budget.keep_recent_tokens
        room = _room(line, fixed)
        if room < SMALLEST_ROOM_TOKENS:
            return self._tell_that_there_is_no_room(fixed, record)
        plan = make_plan(messages, tokens, room, min(recent, sum(tokens[1:]) // 3) if forced else recent)
        if self._useless == (conversation.generation, plan.kept_from, line):
            return False
        shortened = self._shorten(plan, conversation, record)
        if shortened and self._counter.count(conversation) <= fixed + room:
            return True
        if self._summarize(plan, conversation, record, ask, why):
            return True
        self._useless = (conversation.generation, plan.kept_from, line)
        return shortened

    def _tell_that_there_is_no_room(self, fixed: int, record: Record) -> bool:
        if self._useless != (fixed, self.budget.window_tokens):
            self._useless = (fixed, self.budget.window_tokens)
            taken = f"instructions and tools alone take {fixed:,} of the window's {self.budget.window_tokens:,} tokens"
            record(Notice(f"{taken}: too little is left for a conversation; a larger window is needed", "warn"))
        return False

    def _shorten(self, plan: Plan, conversation: Conversation, record: Record) -> bool:
        """Shorten the results that the plan names; return whether there were any."""
        if not plan.shortened:
            return False
        before = self._counter.count(conversation)
        lengths = {result.call_id: len(result.text) for result in conversation.earlier_results()}
        for call_id, text in plan.shortened:
            record(ToolOutputCompressed(call_id, text, lengths[call_id]))
        change = f"{before:,} → {self._counter.count(conversation):,} tokens"
        record(Notice(f"Large results of the last tool calls were cut to head and tail, to fit: {change}", "warn"))
        return True

    def _summarize(self, plan: Plan, conversation: Conversation, record: Record, ask: Ask, why: str) -> bool:
        """Carry the plan out, where that helps; return whether it did."""
        messages, tokens = list(conversation.visible_messages()), self._counter.count_each(conversation)
        before = self._counter.count(conversation)
        saved = sum(tokens[plan.start : plan.kept_from]) - sum(map(message_tokens, plan.requests))
        limit = min(plan.summary_tokens, saved * 3 // 4)
        only_old = all(isinstance(messages[position], Summary) for position in plan.summarized)
        if only_old or limit < SMALLEST_SUMMARY_TOKENS:
            return False
        reason = _reason(plan, tokens, why)
        record(Notice(f"Compressing the conversation ({before:,} tokens): {reason}"))
        summary = summarize(
            messages[plan.start : plan.kept_from],
            plan.requests,
            ask,
            limit_tokens=limit,
            input_tokens=max(self.budget.compress_above_tokens, self.budget.window_tokens // 2),
        )
        replacement = Summary(summary.text)
        head: tuple[UserMessage | Summary, ...] = (*plan.requests, replacement)
        after = before - saved + message_tokens(replacement)
        found = problem_with(messages, [*messages[: plan.start], *head, *messages[plan.kept_from :]])
        if found or after >= before or after > self._line(conversation):
            found = found or f"it would take {after:,} tokens instead of {before:,}"
            record(Notice(f"The conversation was not compressed: {found}", "warn"))
            return False
        record(HistorySummarized(head, plan.kept_from, before, after, reason, summary.usage))
        text = f"Compressed: {before:,} → {after:,} tokens, of a window of {self.budget.window_tokens:,}"
        if summary.problem:
            text += f". The summary was made without the model: {summary.problem}"
        record(Notice(text, "warn" if summary.problem else "info"))
        return True


def _room(line: int, fixed: int) -> int:
    """Return what instructions and tools leave for the rest after a compression: a quarter below the line, to grow."""
    return (line - fixed) * 3 // 4


def _reason(plan: Plan, tokens: Sequence[int], why: str) -> str:
    lost, kept = sum(tokens[position] for position in plan.summarized), sum(tokens[plan.kept_from :])
    return (
        f"{why}. Summarized: {len(plan.summarized)} messages ({lost:,} tokens). Kept: {len(plan.requests)} of the "
        f"user's messages in their own words, and the newest {len(tokens) - plan.kept_from} messages ({kept:,} tokens)"
    )


def problem_with(before: Sequence[Message], after: Sequence[Message]) -> str:
    """Return what a compression of `before` to `after` would break, for people; "" where it is sound.

    Each call must have its result, right behind it and in order; the user's first and latest message must be there,
    word for word, or with all but the middle word for word.
    """
    expected: list[str] = []
    for message in after:
        if isinstance(message, ToolResult):
            if message.call_id not in expected[:1]:
                return f"the result of the call {message.call_id} would stand without its call"
            del expected[0]
        elif expected:
            return f"the call {expected[0]} would stand without its result"
        elif isinstance(message, AssistantMessage):
            expected = [call.id for call in message.tool_calls]
    if expected:
        return f"the call {expected[0]} would stand without its result"
    own = [message.text for message in before if isinstance(message, UserMessage)]
    left = [message.text for message in after if isinstance(message, UserMessage)]
    if own and not (left and _says(left[0], own[0]) and _says(left[-1], own[-1])):
        return "the user's task or latest request would be lost"
    return ""


def _says(text: str, original: str) -> bool:
    """Tell whether `text` is the original, or its head and its tail with a mark between."""
    if text == original:
        return True
    text, original = (words.encode("utf-8", "ignore").decode("utf-8") for words in (text, original))
    head = len(commonprefix([text, original]))  # noqa: RUF071 - of characters is what is meant
    tail = len(commonprefix([text[::-1], original[::-1]]))  # noqa: RUF071
    return head > 0 and tail > 0 and 0 < len(text) - head - tail <= _MARK_CHARACTERS
