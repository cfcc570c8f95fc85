"""The compressor: keeps the conversation inside the model's window.

    trigger     the conversation is over its line, or the server refused it, or the user asks for it
    shorten     old results that can be had again, to head and tail; where that is enough, it is all that is done
    plan        what stays and what is summarized (planner.py)
    summarize   one request to the model (summarizer.py)
    check       what would be sent then is whole, smaller and under the line; where it is not, nothing is replaced
    replace     one HistorySummarized event

A turn never fails because of it: whatever goes wrong here, the conversation stays as it was, and valid. Nothing is done
between two of these steps, so that what is sent only grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable

from mini_agent.context.budget import SMALLEST_ROOM_TOKENS, Budget, Lines
from mini_agent.context.planner import SMALLEST_SUMMARY_TOKENS, Plan, Shortened, make_plan, results_to_shorten
from mini_agent.context.summarizer import Ask, Material, summarize
from mini_agent.context.tokens import CUT, TokenCounter, message_tokens
from mini_agent.conversation.conversation import Conversation
from mini_agent.conversation.events import Event, HistorySummarized, Notice, ToolOutputCompressed
from mini_agent.conversation.messages import AssistantMessage, Message, Summary, ToolResult, UserMessage
from mini_agent.model.chat_model import ContextOverflow

Record = Callable[[Event], None]

MOST_USELESS = 3  # compressions that did not help, in one session, before no more are tried unasked


class Compressor:
    """Make room in a conversation; called before each request, and after one that the server refused as too large."""

    def __init__(self, budget: Budget, counter: TokenCounter, enabled: bool = True, shortening: bool = True) -> None:
        """Take the parts.

        enabled: False, and only `compress_now` does anything. shortening: False, and it is summarized at once.
        """
        self.budget = budget  # may be replaced: another model has another window
        self._counter = counter
        self._enabled = enabled
        self._shortening = shortening
        self._useless: tuple[int, ...] = ()  # what was tried last and did not help, so that it is not tried again
        self._useless_count = 0
        self._told = ""  # the last warning of too large instructions

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
        if overflow is not None:
            self._learn_window(overflow, conversation, record)
            return self._compress(conversation, record, ask, "the server refused it as too large", forced=True)
        tokens = self._counter.count(conversation)
        is_over = tokens > self.budget.compress_above_tokens and tokens > self.lines(conversation).compress
        if not is_over or self._useless_count >= MOST_USELESS:
            return False
        return self._compress(conversation, record, ask, "it has grown too long", forced=False)

    def compress_now(self, conversation: Conversation, record: Record, ask: Ask) -> bool:
        """Compress because the user wants it, however short it is; return whether anything was made smaller."""
        return self._compress(conversation, record, ask, "you asked for it", forced=True)

    def warn_of_large_instructions(self, conversation: Conversation, record: Record) -> None:
        """Tell, with numbers and each thing once, where instructions and tools leave too little of the window."""
        warning = self.budget.warning(self.lines(conversation).fixed)
        if warning != self._told:
            self._told = warning
            if warning:
                record(Notice(warning, "warn"))

    def outlook(self, conversation: Conversation) -> str:
        """Return, for people, what `compress_now` would keep and summarize."""
        plan = self._plan(conversation, forced=True)
        return _reason(plan, self._counter.estimate_each(conversation), "")

    def _learn_window(self, overflow: ContextOverflow, conversation: Conversation, record: Record) -> None:
        """Take over the window from a refusal. What was refused is over it, whatever our count or the server say."""
        was_counted = self._counter.is_counted
        self._counter.learn_from_refusal(conversation, overflow.window_tokens)
        tokens = self._counter.count(conversation)
        named = overflow.window_tokens or (tokens * 3 // 4 if was_counted else tokens // 2)
        budget = self.budget.shrunk_to(min(named, tokens))
        if budget.window_tokens < self.budget.window_tokens:
            self.budget = budget
            record(Notice(f"from now on the model's window is taken to be {budget.window_tokens:,} tokens", "warn"))

    def lines(self, conversation: Conversation) -> Lines:
        """Return the sizes that matter now, in tokens as the server counts them."""
        return self.budget.lines(self._counter.scaled(self._counter.fixed_estimate(conversation)))

    def _plan(self, conversation: Conversation, *, forced: bool) -> Plan:
        """Plan in estimated tokens, in which the messages are measured."""
        factor, tokens = self._counter.factor, self._counter.estimate_each(conversation)
        room, recent = int(self.lines(conversation).room / factor), int(self.budget.keep_recent_tokens / factor)
        recent = min(recent, sum(tokens[1:]) // 3) if forced else recent
        return make_plan(conversation.visible_messages(), tokens, room, recent)

    def _compress(self, conversation: Conversation, record: Record, ask: Ask, why: str, *, forced: bool) -> bool:
        lines = self.lines(conversation)
        if lines.room < SMALLEST_ROOM_TOKENS:
            self.warn_of_large_instructions(conversation, record)
            return False
        plan = self._plan(conversation, forced=forced)
        attempt = (conversation.generation, plan.kept_from, lines.compress)
        if self._useless == attempt:
            return False
        text = f"Old results of tool calls were cut to head and tail, as {why}"
        if self._replace_results(self._old_results(plan, lines, conversation), text, conversation, record):
            return True
        text = "Large results of the last tool calls were cut to head and tail, to fit"
        shortened = self._replace_results(plan.shortened, text, conversation, record)
        if shortened and self._counter.count(conversation) <= lines.target:
            return True
        if self._summarize(plan, conversation, record, ask, why):
            return True
        self._count_as_useless(attempt, record, forced)
        return shortened

    def _count_as_useless(self, attempt: tuple[int, ...], record: Record, forced: bool) -> None:
        self._useless = attempt
        self._useless_count += not forced
        if self._useless_count == MOST_USELESS and not forced:
            text = f"{MOST_USELESS} compressions did not help: from now on it is compressed on /compress only, and"
            record(Notice(f"{text} when the server refuses what is sent", "warn"))

    def _old_results(self, plan: Plan, lines: Lines, conversation: Conversation) -> Shortened:
        """Return shorter texts of old results, where those alone bring the conversation down to its target."""
        excess = self._counter.count(conversation) - lines.target
        if not self._shortening:
            return ()
        messages = conversation.visible_messages()
        last_reply = max((n for n, message in enumerate(messages) if isinstance(message, AssistantMessage)), default=0)
        old, unread = (
            {message.call_id for message in part if isinstance(message, ToolResult)}
            for part in (messages[: plan.kept_from], messages[last_reply:])
        )
        return results_to_shorten(conversation.earlier_results(), old, unread, int(excess / self._counter.factor) + 1)

    def _replace_results(self, shortened: Shortened, what: str, conversation: Conversation, record: Record) -> bool:
        """Show these results shorter from now on; return whether there were any."""
        if not shortened:
            return False
        before = self._counter.count(conversation)
        lengths = {result.call_id: len(result.text) for result in conversation.earlier_results()}
        for call_id, text in shortened:
            record(ToolOutputCompressed(call_id, text, lengths[call_id]))
        change = f"{before:,} → {self._counter.count(conversation):,} tokens"
        record(Notice(f"{what} ({len(shortened)}): {change}"))
        return True

    def _summarize(self, plan: Plan, conversation: Conversation, record: Record, ask: Ask, why: str) -> bool:
        """Carry the plan out, where that helps; return whether it did."""
        messages, tokens = list(conversation.visible_messages()), self._counter.estimate_each(conversation)
        estimate, scaled, lines = self._counter.estimate(conversation), self._counter.scaled, self.lines(conversation)
        saved = sum(tokens[plan.start : plan.kept_from]) - sum(map(message_tokens, plan.requests))
        limit = min(plan.summary_tokens, saved * 3 // 4)
        only_old = all(isinstance(messages[position], Summary) for position in plan.summarized)
        if only_old or limit < SMALLEST_SUMMARY_TOKENS:
            return False
        before, reason = scaled(estimate), _reason(plan, tokens, why)
        record(Notice(f"Compressing the conversation ({before:,} tokens): {reason}"))
        turn_from = plan.turn_from + 1 - plan.start if plan.turn_from + 1 < plan.kept_from else None
        material = Material(
            messages[plan.start : plan.kept_from], plan.requests, turn_from, list(conversation.changed_files)
        )
        input_tokens = int(max(self.budget.compress_above_tokens, lines.limit // 2) / self._counter.factor)
        summary = summarize(material, ask, limit_tokens=limit, input_tokens=input_tokens)
        replacement = Summary(summary.text)
        head: tuple[UserMessage | Summary, ...] = (*plan.requests, replacement)
        after = scaled(estimate - saved + message_tokens(replacement))
        found = problem_with(messages, [*messages[: plan.start], *head, *messages[plan.kept_from :]])
        if found or after >= before or after > lines.compress:
            found = found or f"it would take {after:,} tokens instead of {before:,}"
            record(Notice(f"The conversation was not compressed: {found}", "warn"))
            return False
        record(HistorySummarized(head, plan.kept_from, before, after, reason, summary.usage))
        text = f"Compressed: {before:,} → {after:,} tokens, of a window of {lines.limit:,}"
        if summary.problem:
            text += f". The summary was made without the model: {summary.problem}"
        record(Notice(text, "warn" if summary.problem else "info"))
        return True


def _reason(plan: Plan, tokens: Sequence[int], why: str) -> str:
    lost, kept = sum(tokens[position] for position in plan.summarized), sum(tokens[plan.kept_from :])
    is_split = plan.kept_from < len(tokens) and any(position > plan.turn_from for position in plan.summarized)
    return (
        f"{why}{'. ' if why else ''}Summarized: {len(plan.summarized)} messages (about {lost:,} tokens)"
        f"{', the first part of this turn among them' if is_split else ''}. Kept: {len(plan.requests)} of the user's "
        f"messages in their own words, and the newest {len(tokens) - plan.kept_from} messages (about {kept:,} tokens)"
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
    parts = [(text[: mark.start()], text[mark.end() :]) for mark in CUT.finditer(text)]
    return any(head + tail and original.startswith(head) and original.endswith(tail) for head, tail in parts)
