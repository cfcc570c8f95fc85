"""What tests of the loop need: replies in short form, a few small tools, a runner on a log in a folder."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Callable

from mini_agent.agent.guards import TurnLimits
from mini_agent.agent.runner import AgentRunner, MakeRoom
from mini_agent.conversation.conversation import Conversation
from mini_agent.conversation.events import Event, ToolOutputCompressed
from mini_agent.conversation.messages import AssistantMessage, ToolCall, Usage
from mini_agent.model.chat_model import ModelReply
from mini_agent.model.scripted import ScriptedModel, Step
from mini_agent.session.event_log import EventLog
from mini_agent.session.session import Session
from mini_agent.tools.tool import Parameter, Tool, ToolError, ToolOutcome
from mini_agent.tools.toolbox import Toolbox


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall("", name, json.dumps(arguments), arguments)


def said(text: str, *calls: ToolCall, usage: Usage | None = None) -> ModelReply:
    return ModelReply(AssistantMessage(text, calls), usage, "scripted", "", "tool_calls" if calls else "stop")


class SmallTool:
    """A tool of one function of its text."""

    description = "for tests"
    parameters = (Parameter("text", "string", "anything", default=""),)
    time_limit_seconds = 5.0
    narrowing = "Ask for less."
    only_reads = True

    def __init__(self, name: str, work: Callable[[str], ToolOutcome]) -> None:
        self.name = name
        self._work = work

    def run(self, arguments: Mapping[str, Any]) -> ToolOutcome:
        return self._work(arguments["text"])


def echo() -> Tool:
    return SmallTool("echo", ToolOutcome)


def failing() -> Tool:
    def fail(text: str) -> ToolOutcome:
        if text == "refuse":
            raise ToolError("refused", "not this one. Take another.")
        raise ZeroDivisionError(text)

    return SmallTool("failing", fail)


def sleeping() -> Tool:
    def sleep(text: str) -> ToolOutcome:
        time.sleep(float(text or 0))
        return ToolOutcome("slept")

    return SmallTool("sleeping", sleep)


def shortening(conversation: Callable[[], Conversation]) -> Tool:
    """Return a tool that shortens the newest result and hides itself, as compress_tool does."""

    def shorten(text: str) -> ToolOutcome:
        earlier = conversation().earlier_results()
        events = [ToolOutputCompressed(earlier[-1].call_id, "short", len(earlier[-1].text))] if earlier else []
        return ToolOutcome("done", events=tuple(events), hide_call=True)

    return SmallTool("shorten", shorten)


def no_room_needed(*_: Any, **__: Any) -> bool:
    return False


def open_session(path: Path) -> Session:
    return Session(EventLog(path))


def runner(
    session: Session,
    steps: Iterable[Step],
    tools: Iterable[Tool] = (),
    limits: TurnLimits | None = None,
    make_room: MakeRoom = no_room_needed,
    **options: Any,
) -> AgentRunner:
    """Return a runner of the session that has the tools of this file, and more."""
    own = (echo(), failing(), sleeping(), shortening(lambda: session.conversation))
    return AgentRunner(ScriptedModel(steps), Toolbox([*own, *tools]), session, make_room, limits=limits, **options)


def recorded(session: Session) -> list[Event]:
    """Return what is in the session's log now, read from the disk."""
    return [entry.event for entry in EventLog(session.log.path).entries]
