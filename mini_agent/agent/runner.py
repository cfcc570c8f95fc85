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
from mini_agent.conversation.interrupts import uninterrupted
from mini_agent.conversation.messages import AssistantMessage, Message, ToolCall, Usage, with_unique_ids
from mini_agent.model.chat_model import ChatModel, ContextOverflow, EmptyReply, ModelError, ModelReply, ToolsRefused
from mini_agent.model.text_calls import find_text_calls
from mini_agent.session.session import Session
from mini_agent.tools.toolbox import Toolbox

CLOSING_REMINDER = (
    "This turn has used all of its rounds of tool calls. Call no more tools. Say in a few sentences what is done, "
    "what is left, and what you would do next; the user can then tell you to go on."
)

CALL_AS_TEXT_REMINDER = (
    "Your last message holds a tool call in a form that is not the one of your tools, and it was not run: {} Make the "
    "call in the right form now, and write nothing else. If it was meant as no call, answer again without it."
)
SMALLEST_CUT_PROMPT = 1_500  # in tokens; below this an estimate says too little
MOST_TEXT_CALL_REMINDERS = 3  # in one turn; after that such a reply is the answer

_INTERRUPTED = TurnEnded(status="interrupted", kind="interrupted", reason="interrupted by the user")


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


class ChangeProtocol(Protocol):
    """What lets tools be called in another way where the one that was tried does not work."""

    def __call__(self, refusal: ToolsRefused | None = None, is_certain: bool = False) -> bool:
        """Take the server's refusal of tools, or, without, that the model wrote a call as text.

        is_certain: in a way in which it cannot be run, so that there is nothing to be lost by the change.
        Return whether tools are called in another way from now on.
        """
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
    cost_tokens: int = 0  # what the guard counts: the usage, or an estimate where the server does not say
    answer: str = ""
    doubt: str = ""  # why a call that the last reply holds as text was not run; "" where it holds none
    reminders: int = 0  # how often the model was told of that


class _RunnerWatch:
    """Pass on what a model call tells while it runs: text to the eyes, notices to the session."""

    def __init__(self, record: Callable[[Event], None], on_text: Callable[[str], None]) -> None:
        self.come = ""  # the text of the reply that is coming in
        self._record = record
        self._on_text = on_text

    def text(self, delta: str) -> None:
        self.come += delta
        self._on_text(delta)

    def notice(self, text: str) -> None:
        self.come = ""  # it is asked again, from the beginning
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
        estimate: Callable[[Conversation], int] = lambda conversation: 0,
        on_text: Callable[[str], None] = lambda delta: None,
        notes_for: Callable[[tuple[Path, ...]], str] = lambda paths: "",
        change_protocol: ChangeProtocol = lambda refusal=None, is_certain=False: False,
    ) -> None:
        """Take the parts.

        estimate: tells the tokens of what would be sent now, for servers that do not count.
        on_text: gets the text of each reply in the moment it comes, before it is recorded.
        notes_for: gets the files that a tool has read; returns what the project says about them, "" for nothing.
        """
        self.model = model  # may be exchanged between two turns
        self._toolbox = toolbox
        self._session = session
        self._make_room = make_room
        self._limits = limits or TurnLimits()
        self._estimate = estimate
        self._notes_for = notes_for
        self._change_protocol = change_protocol
        self._told_of_cut_prompt = False
        self._watch = _RunnerWatch(session.record, on_text)

    def run_turn(self, request: str) -> TurnResult:
        """Run one turn, from the user's message to the model's answer, and return what it came to.

        A failing model and Ctrl-C end the turn and are told in the result; nothing that was done is lost. Only a
        Ctrl-C in the moment in which a turn ends anyway comes out as KeyboardInterrupt.
        """
        self._end_turn(_INTERRUPTED)  # of a turn before, if such a Ctrl-C kept it from being ended
        turn = _Turn(time.monotonic())
        ending = TurnEnded("failed", "internal", "a fault in the program ended this turn")
        try:
            self._session.record(UserMessageAdded(request))
            ending = self._run_rounds(turn)
        except ModelError as error:
            ending = TurnEnded("failed", error.kind, str(error))
        except KeyboardInterrupt:
            ending = _INTERRUPTED
        finally:
            self._end_turn(ending)
        seconds = time.monotonic() - turn.started
        return TurnResult(ending.status, turn.answer, ending.kind, ending.reason, turn.rounds, turn.usage, seconds)

    def _end_turn(self, ending: TurnEnded) -> None:
        """Record the end of the turn that is open, if one is, after the results that its calls still lack."""
        with uninterrupted():
            if self._session.conversation.turn_is_open:
                self._keep_what_came(ending)
                self._close_open_calls(ending)
                self._session.record(ending)

    def _keep_what_came(self, ending: TurnEnded) -> None:
        """Record the part of a reply that the user has seen before stopping it."""
        come, self._watch.come = self._watch.come, ""
        if ending.status == "interrupted" and come.strip():
            self._session.record(AssistantMessageAdded(AssistantMessage(come), None, "", "", "interrupted"))

    def _run_rounds(self, turn: _Turn) -> TurnEnded:
        """Go round until the model answers or a guard ends it; return how it ended."""
        guard = RepeatGuard()
        while turn.rounds < self._limits.max_rounds:
            reply = self._ask(turn)
            if not reply.message.tool_calls and self._tells_of_doubt(turn):
                continue
            if not reply.message.tool_calls:
                return TurnEnded("completed")
            if self._limits.max_tokens and turn.cost_tokens > self._limits.max_tokens:
                reason = f"this turn has cost {turn.cost_tokens:,} tokens; the limit is {self._limits.max_tokens:,}"
                return TurnEnded("failed", "token_limit", reason)
            guard.next_round()
            for call in reply.message.tool_calls:
                times = self._run_call(call, guard)
                if times >= ENDS_AT:
                    reason = (
                        f"the model made the same call in {times} rounds running, with the same result: {call.name}"
                    )
                    return TurnEnded("failed", "repeated_call", reason)
        return self._last_word(turn)

    def _ask(self, turn: _Turn, may_call_tools: bool = True) -> ModelReply:
        """Ask the model for its next message and record it; where it is empty, ask once more."""
        turn.rounds += 1
        self._begin_request(turn)
        for attempt in (1, 2):
            reply = self._reply(turn, may_call_tools)
            self._count_cost(reply, turn)
            self._tell_of_cut_prompt(reply)
            if may_call_tools and not reply.message.tool_calls:
                reply = self._with_text_calls(reply, turn)
            if not reply.message.is_empty:
                reply = self._record_reply(reply)
                if not may_call_tools or not reply.message.tool_calls:
                    turn.answer = reply.message.text
                return reply
            self._session.record(
                Notice(f"the model's reply was empty{'; it is asked once more' if attempt == 1 else ''}")
            )
        raise EmptyReply("the model replied twice with nothing at all; ask again, or try another model")

    def _with_text_calls(self, reply: ModelReply, turn: _Turn) -> ModelReply:
        """Return the reply with the calls that it holds as text made real, where they may be run; else as it is."""
        turn.doubt = ""
        found = find_text_calls(reply.message, self._toolbox.names, reply.finish_reason)
        if found is None or (found.may_be_talk and self._session.conversation.call_ids):
            return reply  # who has called before knows how: it is an answer
        objections = map(self._toolbox.objection_to_text_call, found.calls)
        turn.doubt = next(filter(None, objections), found.doubt)
        has_changed = self._change_protocol(is_certain=bool(turn.doubt))
        if turn.doubt and has_changed:
            return self._asked_in_the_other_way(reply, turn)
        if turn.doubt:
            return reply
        return replace(reply, message=replace(reply.message, text=found.text, tool_calls=found.calls))

    def _asked_in_the_other_way(self, reply: ModelReply, turn: _Turn) -> ModelReply:
        """Put aside a reply that cannot be used, and ask again: small models repeat a form that they see."""
        self._session.record(Notice(f"this reply is put aside, and the model asked again: {reply.message.text}"))
        reply = self._reply(turn, True)
        self._count_cost(reply, turn)
        return reply if reply.message.tool_calls else self._with_text_calls(reply, turn)

    def _tells_of_doubt(self, turn: _Turn) -> bool:
        """Tell the model why the call that it wrote as text was not run; return whether there was one to tell of."""
        if not turn.doubt or turn.reminders == MOST_TEXT_CALL_REMINDERS:
            return False
        turn.reminders += 1
        self._session.record(Notice("the model wrote a tool call as text, which is not run; it is told"))
        self._session.record(ReminderAdded(CALL_AS_TEXT_REMINDER.format(turn.doubt)))
        return True

    def _begin_request(self, turn: _Turn) -> None:
        """Make room, and see to it that the model is the one to speak: some servers refuse to answer themselves."""
        conversation, record = self._session.conversation, self._session.record
        self._make_room(conversation, record, self._asking_for(turn))
        if isinstance(conversation.visible_messages()[-1], AssistantMessage):  # its calls were hidden, its text was not
            record(ReminderAdded("Go on."))

    def _reply(self, turn: _Turn, may_call_tools: bool) -> ModelReply:
        """Send what is visible; where it does not fit, or tools are refused, change that and send it once more."""
        conversation, tools = self._session.conversation, self._toolbox.schemas()
        try:
            return self.model.reply(conversation.visible_messages(), tools, self._watch, may_call_tools)
        except ToolsRefused as refusal:
            if not self._change_protocol(refusal):
                raise
            return self._reply(turn, may_call_tools)
        except ContextOverflow as overflow:
            if not self._make_room(conversation, self._session.record, self._asking_for(turn), overflow):
                raise
            return self.model.reply(conversation.visible_messages(), tools, self._watch, may_call_tools)

    def ask_plainly(self, messages: Sequence[Message]) -> ModelReply:
        """Ask a question beside the conversation, without tools: the compressor's request for a summary."""
        return self.model.reply(messages, (), _RunnerWatch(self._session.record, lambda delta: None))

    def _asking_for(self, turn: _Turn) -> Callable[[Sequence[Message]], ModelReply]:
        """Return `ask_plainly` such that what it costs counts for the turn."""

        def ask(messages: Sequence[Message]) -> ModelReply:
            reply = self.ask_plainly(messages)
            self._count_cost(reply, turn)
            return reply

        return ask

    def _count_cost(self, reply: ModelReply, turn: _Turn) -> None:
        if reply.usage:
            turn.usage += reply.usage
            turn.cost_tokens += reply.usage.total_tokens
        else:
            turn.cost_tokens += self._estimate(self._session.conversation) + len(reply.message.text) // 4

    def _tell_of_cut_prompt(self, reply: ModelReply) -> None:
        """Tell people, once, where the server counted so little that it must have left out a part of what was sent."""
        counted, sent = reply.usage.input_tokens if reply.usage else 0, self._estimate(self._session.conversation)
        if self._told_of_cut_prompt or not reply.base_url or not 0 < counted <= sent // 2 or sent < SMALLEST_CUT_PROMPT:
            return
        self._told_of_cut_prompt = True
        text = (
            f"the server counted {counted:,} tokens where about {sent:,} were sent: it seems to have cut the prompt "
            "without a word. Give it a larger context, or set MINI_AGENT_CONTEXT_WINDOW to the one that it has"
        )
        self._session.record(Notice(text, "warn"))

    def _record_reply(self, reply: ModelReply) -> ModelReply:
        calls = with_unique_ids(reply.message.tool_calls, self._session.conversation.call_ids)
        message = replace(reply.message, tool_calls=calls)
        self._watch.come = ""
        self._session.record(
            AssistantMessageAdded(message, reply.usage, reply.model, reply.base_url, reply.finish_reason)
        )
        return replace(reply, message=message)

    def _run_call(self, call: ToolCall, guard: RepeatGuard) -> int:
        """Run one call and record what it came to; return for how many rounds running it came to just this."""
        outcome = self._toolbox.run(call)
        for event in outcome.events:
            self._session.record(event)
        canonical = self._toolbox.canonical_form(call)
        times = guard.times(canonical, outcome.text)
        text = outcome.text
        if outcome.is_error:
            text += self._already_changed()
        if TOLD_AT <= times < ENDS_AT:
            text += f"\n[This very call has had this very result {times} times running. Do something else.]"
        text += self._notes_for(outcome.read_paths)
        self._session.record(ToolResultAdded(call.id, call.name, text, outcome.is_error, canonical, outcome.hide_call))
        return times

    def _already_changed(self) -> str:
        """Return what is to be added on files that the open call changed before it failed or was stopped."""
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
            canonical = self._toolbox.canonical_form(call)
            self._session.record(ToolResultAdded(call.id, call.name, text, True, canonical))
