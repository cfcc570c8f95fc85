"""The conversation: a fold over events.

`apply` takes one event after the other; `visible_messages` is at any time what the model would be sent now, and the
only source of that. The fold invents nothing: folding a log from disk gives, event for event, the conversation that
was in memory when it was written. What does not concern the model (a notice, an approval) passes through unseen.

Appending takes constant time; only a compression rewrites the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable, ClassVar

from mini_agent.conversation import events
from mini_agent.conversation.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    Reminder,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserMessage,
)

# what cannot stand between a tool call and its result
_BETWEEN_CALLS = (
    events.UserMessageAdded,
    events.ReminderAdded,
    events.AssistantMessageAdded,
    events.HistorySummarized,
    events.TurnEnded,
)


@dataclass(frozen=True)
class EarlierResult:
    """A tool result that the model can see now, as compress_tool needs to know it."""

    call_id: str
    tool_name: str
    canonical_call: str
    text: str
    compressions: int  # how often it was shortened already


@dataclass(frozen=True)
class ServerCount:
    """How many tokens a request had, in the server's own count."""

    generation: int  # of the conversation when it was asked
    messages: int  # how many of the visible messages it had
    tokens: int


class Conversation:
    """What was said so far, kept up event by event. Two conversations are equal when all they know is equal."""

    def __init__(self) -> None:
        self.instructions_hash = ""
        self.tools: tuple[JsonObject, ...] = ()  # as the model was last offered them
        self.turn_is_open = False
        self.turn_count = 0
        self.call_ids: set[str] = set()  # every one ever used in the session
        self.files_in_flight: tuple[events.FileChange, ...] = ()  # announced, and not yet told what became of them
        self.changed_by_open_call: tuple[str, ...] = ()  # paths that the call now running has changed
        self.changed_files: dict[str, None] = {}  # paths that the session has changed, the last changed last
        self.server_count: ServerCount | None = None  # of the last request that the model answering now has counted
        self.generation = 0  # grows whenever the visible messages changed otherwise than by appending
        self._asked = ("", "")  # model and base URL that answer now
        self._visible: list[Message] = []
        self._open_calls: dict[str, ToolCall] = {}  # in order
        self._assistant_position = -1  # of the message whose calls are open
        self._results: dict[str, tuple[int, str, int]] = {}  # call id → position, canonical call, compressions

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Conversation) and self.__dict__ == other.__dict__

    # ------------------------------------------------------------------------------------------------- asking it

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls of the last assistant message that have no result yet, in order."""
        return tuple(self._open_calls.values())

    def visible_messages(self) -> Sequence[Message]:
        """Return what the model is sent, oldest first: the live list, to be read at once and not kept.

        Asked while a call is open it raises RuntimeError: a request with a call and no result is refused by servers.
        """
        if self._open_calls:
            raise RuntimeError(f"these calls have no result yet: {', '.join(self._open_calls)}")
        return self._visible

    def earlier_results(self) -> list[EarlierResult]:
        """Return the tool results that can be seen now, oldest first."""
        found = []
        for call_id, (position, canonical, compressions) in self._results.items():
            message = self._visible[position]
            if isinstance(message, ToolResult):
                found.append(EarlierResult(call_id, message.tool_name, canonical, message.text, compressions))
        return found

    # ---------------------------------------------------------------------------------------------------- the fold

    def check(self, event: events.Event) -> None:
        """Raise ValueError for an event that cannot follow the events before it; change nothing.

        So a fault elsewhere in the program is found before its event is in the log for ever.
        """
        if isinstance(event, _BETWEEN_CALLS) and self._open_calls:
            raise ValueError(f"{event.type} while these calls have no result: {', '.join(self._open_calls)}")
        if isinstance(event, events.InstructionsSet) and self._visible and not self._has_instructions:
            raise ValueError("instructions come before the first message")
        if isinstance(event, events.AssistantMessageAdded):
            ids = [call.id for call in event.message.tool_calls]
            if len(set(ids)) < len(ids) or not self.call_ids.isdisjoint(ids):
                raise ValueError("a tool call repeats the id of another")
        if isinstance(event, events.ToolResultAdded) and event.call_id != next(iter(self._open_calls), None):
            raise ValueError(f"a result for the call {event.call_id!r}, which is not the next that waits for one")
        if isinstance(event, events.ToolOutputCompressed) and event.call_id not in self._results:
            raise ValueError(f"the result of the call {event.call_id!r} cannot be compressed: it is not visible")
        if isinstance(event, events.HistorySummarized):
            start, end = int(self._has_instructions), len(self._visible)
            if not start <= event.kept_from <= end:
                raise ValueError(f"messages are kept from {event.kept_from}, of {end}")
            if event.kept_from < end and isinstance(self._visible[event.kept_from], ToolResult):
                raise ValueError("a compression cuts between a tool call and its result")

    def apply(self, event: events.Event) -> None:
        """Take in one event; raise ValueError, with nothing changed, for one that `check` refuses.

        What each type does stands below, and the table of them at the end of the class.
        """
        self.check(event)
        fold = self._FOLDS.get(type(event))
        if fold is not None:
            fold(self, event)

    @property
    def _has_instructions(self) -> bool:
        return bool(self._visible) and isinstance(self._visible[0], SystemMessage)

    def _model_chosen(self, event: events.SessionStarted | events.ModelChanged) -> None:
        if self._asked != (event.model, event.base_url):
            self.server_count = None
        self._asked = (event.model, event.base_url)

    def _instructions_set(self, event: events.InstructionsSet) -> None:
        self.instructions_hash, self.tools = event.hash, event.tools
        if self._has_instructions:
            self._visible[0] = SystemMessage(event.text)
            self.generation += 1
        else:
            self._visible.append(SystemMessage(event.text))

    def _user_message_added(self, event: events.UserMessageAdded) -> None:
        if not event.steered:
            self.turn_is_open = True
            self.turn_count += 1
        self._visible.append(UserMessage(event.text, event.steered))

    def _reminder_added(self, event: events.ReminderAdded) -> None:
        self._visible.append(Reminder(event.text))

    def _assistant_message_added(self, event: events.AssistantMessageAdded) -> None:
        calls = {call.id: call for call in event.message.tool_calls}
        self.changed_by_open_call = ()  # files put back between two turns are no call's doing
        if event.usage and event.usage.input_tokens:
            self.server_count = ServerCount(self.generation, len(self._visible), event.usage.input_tokens)
        self._assistant_position = len(self._visible)
        self._visible.append(replace(event.message, origin=self._asked))
        self._open_calls = calls
        self.call_ids.update(calls)

    def _tool_result_added(self, event: events.ToolResultAdded) -> None:
        del self._open_calls[event.call_id]
        self.changed_by_open_call = ()
        if event.hidden:
            self._hide_call(event.call_id)
        else:
            self._results[event.call_id] = (len(self._visible), event.canonical_call, 0)
            self._visible.append(ToolResult(event.call_id, event.tool_name, event.text, event.is_error))

    def _hide_call(self, call_id: str) -> None:
        """Take a call out of the last assistant message, and the message too when nothing else is in it."""
        message = self._visible[self._assistant_position]
        assert isinstance(message, AssistantMessage)
        calls = tuple(call for call in message.tool_calls if call.id != call_id)
        self._visible[self._assistant_position] = replace(message, tool_calls=calls)
        self.generation += 1
        if not calls and not message.text.strip():  # then it has no result either, and is the last one
            self._visible.pop()

    def _tool_output_compressed(self, event: events.ToolOutputCompressed) -> None:
        position, canonical, compressions = self._results[event.call_id]
        result = self._visible[position]
        assert isinstance(result, ToolResult)
        self._visible[position] = replace(result, text=event.text)
        self._results[event.call_id] = (position, canonical, compressions + 1)
        self.generation += 1

    def _history_summarized(self, event: events.HistorySummarized) -> None:
        start = int(self._has_instructions)
        self._visible[start : event.kept_from] = event.head
        shift = start + len(event.head) - event.kept_from
        self._results = {
            call_id: (position + shift, canonical, compressions)
            for call_id, (position, canonical, compressions) in self._results.items()
            if position >= event.kept_from
        }
        self.generation += 1

    def _files_will_change(self, event: events.FilesWillChange) -> None:
        self.files_in_flight = event.files

    def _files_changed(self, event: events.FilesChanged) -> None:
        self.files_in_flight = ()
        for file in event.files:
            self.changed_by_open_call += (file.path,)
            self.changed_files.pop(file.path, None)
            self.changed_files[file.path] = None

    def _turn_ended(self, event: events.TurnEnded) -> None:
        self.turn_is_open = False

    _FOLDS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        events.SessionStarted: _model_chosen,
        events.ModelChanged: _model_chosen,
        events.InstructionsSet: _instructions_set,
        events.UserMessageAdded: _user_message_added,
        events.ReminderAdded: _reminder_added,
        events.AssistantMessageAdded: _assistant_message_added,
        events.ToolResultAdded: _tool_result_added,
        events.ToolOutputCompressed: _tool_output_compressed,
        events.HistorySummarized: _history_summarized,
        events.FilesWillChange: _files_will_change,
        events.FilesChanged: _files_changed,
        events.TurnEnded: _turn_ended,
    }
