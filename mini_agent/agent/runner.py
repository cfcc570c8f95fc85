"""The loop: ask the model, run the tools it asks for, ask again, until it answers.

The loop knows no tool, no server, no file and no terminal. It knows the model seam, the toolbox, and the session
in which it records every fact before it acts on it. Whatever ends a turn, the history stays whole: each call has its
one result, and the turn its `TurnEnded`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Callable, Protocol

from mini_agent.agent.guards import ENDS_AT, TOLD_AT, RepeatGuard, TurnLimits
from mini_agent.conversation.conversation import Conversation
from mini_agent.conversation.events import (
    AssistantMessageAdded,
    Event,
    Notice,
    ReminderAdded,
    ToolResultAdded,
    TurnEnded,
    UserMessageAdded,
)
from mini_agent.conversation.messages import Message, ToolCall, Usage, with_unique_ids
from mini_agent.model.chat_model import BadReply, ChatModel, ContextOverflow, ModelError, ModelReply
from mini_agent.session.session import Session
from mini_agent.tools.toolbox import Toolbox

CLOSING_REMINDER = (
    "This turn has used all of its rounds of tool calls. Call no more tools. Say in a few sentences what is done, "
    "what is left, and what you would do next; the user can then tell you to go on."
)


class MakeRoom(Protocol):
    """What keeps the conversation inside the window; see `context/compressor.py`."""

    def __call__(
        self,
        conversation: Conversation,
        record: Callable[[Event], None],
        ask: Callable[[Sequence[Message]], ModelReply],
        overflow: ContextOverflow | None = None,
    ) -> bool:
        """Compress where it is needed (with `overflow`: in any case); return whether anything was made smaller."""
        ...


@dataclass(frozen=True)
class TurnResult:
    """What one turn came to."""

    status: str  # completed, failed, interrupted or round_limit
    answer: str  # what the model said last; "" where it said nothing
    kind: str  # of the failure; "" where there was none
    reason: str
    rounds: int
    usage: Usage
    seconds: float


@dataclass
class _Turn:
    """The counts of the turn that runs now."""

    started: float  # on the monotonic clock
    rounds: int = 0
    usage: Usage = field(default_factory=Usage)
    answer: str = ""


class _RunnerWatch:
    """Pass on what a model call tells while it runs: text to the eyes, notices to the session."""

    def __init__(self, record: Callable[[Event], None], on_text: Callable[[str], None]) -> None:
        self.text = on_text
        self._record = record

    def notice(self, text: str) -> None:
        self._record(Notice(text))


class AgentRunner:
    """Run turns of one session."""

    def __init__(
        self,
        model: ChatModel,
        toolbox: Toolbox,
        session: Session,
        make_room: MakeRoom,
        *,
        limits: TurnLimits | None = None,
        on_text: Callable[[str], None] = lambda delta: None,
        notes_for: Callable[[tuple[Path, ...]], str] = lambda paths: "",
    ) -> None:
        """Take the parts.

        on_text: gets the pieces of an answer as they come.
        notes_for: gets the files that a tool has read; returns what the project says about them, "" for nothing.
        """
        self.model = model  # may be exchanged between two turns
        self._toolbox = toolbox
        self._session = session
        self._make_room = make_room
        self._limits = limits or TurnLimits()
        self._notes_for = notes_for
        self._watch = _RunnerWatch(session.record, on_text)

    def run_turn(self, request: str) -> TurnResult:
        """Run one turn, from the user's message to the model's answer, and return what it came to.

        A failing model and Ctrl-C end the turn and are told in the result; nothing that was done is lost.
        """
        turn = _Turn(time.monotonic())
        ending = TurnEnded("failed", "internal", "a fault in the program ended this turn")
        try:
            self._session.record(UserMessageAdded(request))
            ending = self._run_rounds(turn)
        except ModelError as error:
            ending = TurnEnded("failed", error.kind, str(error))
        except KeyboardInterrupt:
            ending = TurnEnded("interrupted", "interrupted", "interrupted by the user")
        finally:
            self._close_open_calls(ending)
            self._session.record(ending)
        seconds = time.monotonic() - turn.started
        return TurnResult(ending.status, turn.answer, ending.kind, ending.reason, turn.rounds, turn.usage, seconds)

    def _run_rounds(self, turn: _Turn) -> TurnEnded:
        """Go round until the model answers or a guard ends it; return how it ended."""
        guard = RepeatGuard()
        while turn.rounds < self._limits.max_rounds:
            reply = self._ask(turn)
            if not reply.message.tool_calls:
                return TurnEnded("completed")
            if self._limits.max_tokens and turn.usage.total_tokens > self._limits.max_tokens:
                reason = (
                    f"this turn has cost {turn.usage.total_tokens:,} tokens; the limit is {self._limits.max_tokens:,}"
                )
                return TurnEnded("failed", "token_limit", reason)
            for call in reply.message.tool_calls:
                times = self._run_call(call, guard)
                if times >= ENDS_AT:
                    reason = f"the model made the same call {times} times running, with the same result: {call.name}"
                    return TurnEnded("failed", "repeated_call", reason)
        return self._last_word(turn)

    def _ask(self, turn: _Turn, may_call_tools: bool = True) -> ModelReply:
        """Ask the model for its next message and record it; where it is empty, ask once more."""
        turn.rounds += 1
        self._make_room(self._session.conversation, self._session.record, self._ask_plainly)
        for attempt in (1, 2):
            reply = self._reply(may_call_tools)
            turn.usage += reply.usage or Usage()
            if not reply.message.is_empty:
                return self._record_reply(reply, turn)
            self._session.record(
                Notice(f"the model's reply was empty{'; it is asked once more' if attempt == 1 else ''}")
            )
        raise EmptyReply("the model replied twice with nothing at all; ask again, or try another model")

    def _reply(self, may_call_tools: bool) -> ModelReply:
        """Send what is visible; where it does not fit into the model's window, compress and send it once more."""
        conversation, tools = self._session.conversation, self._toolbox.schemas()
        try:
            return self.model.reply(conversation.visible_messages(), tools, self._watch, may_call_tools)
        except ContextOverflow as overflow:
            if not self._make_room(conversation, self._session.record, self._ask_plainly, overflow):
                raise
            return self.model.reply(conversation.visible_messages(), tools, self._watch, may_call_tools)

    def _ask_plainly(self, messages: Sequence[Message]) -> ModelReply:
        """Ask a question beside the conversation, without tools: the compressor's request for a summary."""
        return self.model.reply(messages, (), _RunnerWatch(self._session.record, lambda delta: None))

    def _record_reply(self, reply: ModelReply, turn: _Turn) -> ModelReply:
        calls = with_unique_ids(reply.message.tool_calls, self._session.conversation.call_ids)
        message = replace(reply.message, tool_calls=calls)
        self._session.record(
            AssistantMessageAdded(message, reply.usage, reply.model, reply.base_url, reply.finish_reason)
        )
        turn.answer = message.text
        return replace(reply, message=message)

    def _run_call(self, call: ToolCall, guard: RepeatGuard) -> int:
        """Run one call and record what it came to; return how many times running it came to just this."""
        outcome = self._toolbox.run(call)
        for event in outcome.events:
            self._session.record(event)
        canonical = self._toolbox.canonical(call.name, call.arguments)
        times = guard.times(canonical if call.arguments is not None else call.arguments_text, outcome.text)
        text = outcome.text
        if outcome.is_error:
            text += self._already_changed()
        if TOLD_AT <= times < ENDS_AT:
            text += f"\n[This very call has now had this very result {times} times running. Do something else.]"
        text += self._notes_for(outcome.read_paths)
        self._session.record(ToolResultAdded(call.id, call.name, text, outcome.is_error, canonical, outcome.hide_call))
        return times

    def _already_changed(self) -> str:
        """Return a sentence on the files that the open call changed before it failed or was stopped."""
        changed = self._session.conversation.changed_by_open_call
        return f" It had changed already: {', '.join(changed)}." if changed else ""

    def _last_word(self, turn: _Turn) -> TurnEnded:
        """Let the model say where things stand, without tools, and end the turn."""
        self._session.record(ReminderAdded(CLOSING_REMINDER))
        self._ask(turn, may_call_tools=False)
        return TurnEnded("round_limit", "round_limit", f"{self._limits.max_rounds} rounds of tool calls are used up")

    def _close_open_calls(self, ending: TurnEnded) -> None:
        """Give every call that has no result yet the one that says why it did not run."""
        for call in self._session.conversation.open_calls:
            why = "interrupted by the user" if ending.status == "interrupted" else f"not run: {ending.reason}"
            text = f"Error [{ending.kind}]: {why}.{self._already_changed()}"
            canonical = self._toolbox.canonical(call.name, call.arguments)
            self._session.record(ToolResultAdded(call.id, call.name, text, True, canonical))


class EmptyReply(BadReply):
    """The model was asked twice and said nothing."""

    kind = "empty_reply"
