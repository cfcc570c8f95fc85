"""The one module that knows every concrete class, and wires them.

It is also how the agent is used as a library:

    from pathlib import Path
    from mini_agent.composition import open_agent
    from mini_agent.settings import Settings

    settings = Settings(workspace=Path("some/project").resolve(), model="local", base_url="http://127.0.0.1:8080/v1")
    agent = open_agent(settings, listeners=[lambda entry: print(entry.event)])
    print(agent.run_turn("Which port does config.py set?").answer)
    agent.close()
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from typing import Callable

from mini_agent import __version__
from mini_agent.agent.guards import TurnLimits
from mini_agent.agent.instructions import ProjectNotes, build_instructions, instructions_hash
from mini_agent.agent.runner import AgentRunner, TurnResult
from mini_agent.context.budget import Budget
from mini_agent.context.compressor import Compressor
from mini_agent.context.tokens import TokenCounter
from mini_agent.conversation.conversation import Conversation
from mini_agent.conversation.events import (
    ApprovalAnswered,
    Event,
    InstructionsSet,
    ModelChanged,
    Notice,
    SessionStarted,
)
from mini_agent.conversation.interrupts import uninterrupted
from mini_agent.conversation.messages import Message
from mini_agent.model.chat_model import ChatModel, ContextOverflow, ModelReply, ToolsRefused
from mini_agent.model.context_windows import known_window
from mini_agent.model.openai_chat import OpenAIChatModel
from mini_agent.model.scripted import load_script
from mini_agent.model.tool_protocol import NativeProtocol, TextProtocol, ToolProtocol
from mini_agent.model.transport import Transport
from mini_agent.session.event_log import EventLog
from mini_agent.session.markdown_record import MarkdownRecorder
from mini_agent.session.retention import start_retention
from mini_agent.session.session import Listener, Session, repair_after_crash
from mini_agent.session.session_files import (
    SessionFiles,
    SessionFilesError,
    SessionPlaces,
    find_session,
    new_session_files,
)
from mini_agent.session.totals import Totals
from mini_agent.session.trace_log import TraceLog
from mini_agent.settings import Settings, SettingsError
from mini_agent.tools.apply_patch.apply_patch import ApplyPatchTool
from mini_agent.tools.compress_tool import CompressTool
from mini_agent.tools.grep import GrepTool
from mini_agent.tools.list_files import ListFilesTool
from mini_agent.tools.read_file import ReadFileTool
from mini_agent.tools.tool import Tool
from mini_agent.tools.tool_clock import ToolClock
from mini_agent.tools.toolbox import Toolbox
from mini_agent.tools.workspace import Workspace

UNKNOWN_WINDOW_TOKENS = 32_768  # small enough for most servers, large enough to work in
CALLS_AS_TEXT_UNTIL_CHANGE = 2  # then a model that was offered tools natively is taken for one that can't

# A key that is no secret: short, or a plain word, such as people give to servers that want none ("ollama", "no_key").
_NO_SECRET = re.compile(r".{,7}|[a-z_]{,23}")


def session_places(settings: Settings) -> SessionPlaces:
    """Return where the sessions of this workspace lie."""
    return SessionPlaces(settings.workspace, settings.session_record_path, settings.trace_log_path)


def open_agent(
    settings: Settings,
    *,
    resume: str | None = None,
    ask: Callable[[str], bool] = lambda question: False,
    listeners: Iterable[Listener] = (),
    on_text: Callable[[str], None] | None = None,
    model: ChatModel | None = None,
) -> Agent:
    """Open a session, wire everything to it, and return the agent that works in it.

    resume: a path, a stamp or the beginning of one; "" for the session used last; None for a new session.
    ask: asks the user for permission; by default nobody is there, which is a no.
    listeners: get every entry of the log from now on, after it is on disk.
    on_text: gets the pieces of an answer as they come; without it, answers are streamed only where that is set to `on`.
    model: answers in place of what the settings name.
    Raises SessionFilesError, DamagedLog and SettingsError (for a script that is none), with one clear line each.
    """
    if on_text is None and settings.stream == "auto":  # nobody looks on
        settings = replace(settings, stream="off")
    model = model or _model(settings, settings.model)
    places = session_places(settings)
    files = new_session_files(places) if resume is None else find_session(places, resume)
    secret = "" if _NO_SECRET.fullmatch(settings.api_key) else settings.api_key
    try:
        session = Session(EventLog(files.log_path, secret=secret))
    except OSError as error:
        raise SessionFilesError(f"{files.log_path} cannot be opened: {error.strerror or error}") from error
    start_retention(places, files.stamp)
    return Agent(settings, files, session, model, ask, listeners, on_text or (lambda delta: None))


def _model(settings: Settings, name: str) -> ChatModel:
    if settings.script:
        try:
            return load_script(settings.script)
        except (OSError, ValueError) as error:
            raise SettingsError([f"MINI_AGENT_SCRIPT: {error}"]) from error
    transport = Transport(
        settings.base_url,
        settings.api_key,
        timeout_seconds=settings.timeout_seconds,
        request_deadline_seconds=settings.request_deadline_seconds,
    )
    as_set = settings.tool_protocol
    protocol = TextProtocol() if as_set == "text" else NativeProtocol(is_sure=as_set == "native")
    return OpenAIChatModel(transport, name, settings.base_url, protocol, settings.stream)


def _protocol_of(model: ChatModel) -> ToolProtocol:
    return model.protocol if isinstance(model, OpenAIChatModel) else NativeProtocol()


class Agent:
    """A session with everything that works in it."""

    def __init__(
        self,
        settings: Settings,
        files: SessionFiles,
        session: Session,
        model: ChatModel,
        ask: Callable[[str], bool],
        listeners: Iterable[Listener],
        on_text: Callable[[str], None],
    ) -> None:
        """Wire the parts; `open_agent` makes those that may fail."""
        self.settings = settings
        self.files = files
        self.model_name = settings.model or "scripted"
        self.session = session
        self.conversation = self.session.conversation
        self.totals = Totals()
        for entry in self.session.log.entries:
            self.totals(entry)
        self._recorder = MarkdownRecorder(files.record_path, files.stamp)
        own: list[Listener] = [self._recorder, TraceLog(files.trace_path), self.totals]
        for listener in [*own, *listeners]:
            self.session.listen(listener)
        self._ask_user = ask
        clock = ToolClock()
        asked = clock.pausing(self._ask_and_record)
        self.workspace = Workspace(settings.workspace, self.session.record, asked if settings.ask_writes else None)
        self.counter = TokenCounter()
        self._window_is_settled = False
        self._calls_as_text = 0  # by this model, and in the native protocol
        budget = self._budget(self._known_window())
        self.compressor = Compressor(budget, self.counter, settings.compression, settings.shortening)
        self.toolbox = Toolbox(self._tools(asked), clock, self._result_limit_bytes)
        self._begin(_protocol_of(model))
        self.runner = AgentRunner(
            model,
            self.toolbox,
            self.session,
            self._make_room,
            limits=TurnLimits(settings.max_tool_rounds, settings.max_turn_tokens),
            estimate=self.counter.count,
            on_text=on_text,
            notes_for=self._notes.for_paths if settings.project_instructions else lambda paths: "",
            change_protocol=self._change_protocol,
        )

    def run_turn(self, request: str) -> TurnResult:
        """Run one turn; see `AgentRunner.run_turn`."""
        # halves of surrogate pairs (an argument that was no UTF-8 has some) are refused by servers
        return self.runner.run_turn(re.sub("[\ud800-\udfff]", "\ufffd", request))

    def compress_now(self) -> bool:
        """Compress the conversation, whatever its size; return whether it became smaller."""
        self._settle_window()
        return self.compressor.compress_now(self.conversation, self.session.record, self.runner.ask_plainly)

    def change_model(self, name: str) -> None:
        """Let another model of the same server answer from the next turn on."""
        self.runner.model = _model(self.settings, name)
        self.model_name = name
        self._window_is_settled = False
        self._calls_as_text = 0
        self.compressor.budget = self._budget(self._known_window())
        self.counter.forget()
        self.session.record(ModelChanged(name, self.settings.base_url))
        self._set_instructions(_protocol_of(self.runner.model))

    def close(self) -> None:
        """Finish log and record."""
        with uninterrupted():
            self.session.log.close()
            if not self.conversation.open_calls:  # open only after a second Ctrl-C; the next resume closes them
                self._recorder.finish(self.conversation.visible_messages())

    # --------------------------------------------------------------------------------------------------- its parts

    def _tools(self, ask: Callable[[str], bool]) -> list[Tool]:
        tools: list[Tool] = [
            ListFilesTool(self.workspace, ask),
            ReadFileTool(self.workspace, self._result_limit_bytes),
            GrepTool(self.workspace, ask),
            ApplyPatchTool(self.workspace),
        ]
        if self.settings.compress_tool:
            canonical = lambda name, arguments: self.toolbox.canonical(name, arguments)  # noqa: E731 - not made yet
            tools.append(CompressTool(self.conversation.earlier_results, canonical))
        return tools

    def _result_limit_bytes(self) -> int:
        return self.compressor.budget.result_limit_bytes

    def _begin(self, protocol: ToolProtocol) -> None:
        """Record what a session begins with; of a session of before, first what its last run left open."""
        settings, record = self.settings, self.session.record
        server = "no server: a script answers" if settings.script else settings.base_url
        record(SessionStarted(str(settings.workspace), self.model_name, server, __version__))
        repair_after_crash(self.session, settings.workspace)
        for warning in settings.warnings:
            record(Notice(warning, "warn"))
        self._notes = ProjectNotes(
            self.workspace,
            self.compressor.budget.window_tokens,
            self.conversation.visible_messages(),
            lambda text: record(Notice(text, "warn")),
        )
        notes = self._notes.for_root() if settings.project_instructions else ""
        self._instructions = build_instructions(
            self.workspace, self.toolbox.names, date.today(), settings.system_prompt, notes
        )
        self._set_instructions(protocol)
        self.compressor.warn_of_large_instructions(self.conversation, record)

    def _set_instructions(self, protocol: ToolProtocol) -> None:
        """Record instructions and tools as this protocol has them, where they are not those of before."""
        schemas = self.toolbox.schemas()
        text = "\n\n".join(filter(None, [self._instructions, protocol.instructions(schemas)]))
        tools = tuple(protocol.offered(schemas))
        hash = instructions_hash(text, tools)
        if hash != self.conversation.instructions_hash:
            self.session.record(InstructionsSet(text, tools, hash))

    def _change_protocol(self, refusal: ToolsRefused | None = None, is_certain: bool = False) -> bool:
        """Have tools called in the text from now on, where there is reason to; see `ChangeProtocol`."""
        model = self.runner.model
        self._calls_as_text += refusal is None
        is_due = refusal is not None or is_certain or self._calls_as_text >= CALLS_AS_TEXT_UNTIL_CHANGE
        if not is_due or self.settings.tool_protocol != "auto":
            return False
        if not isinstance(model, OpenAIChatModel) or isinstance(model.protocol, TextProtocol):
            return False
        model.protocol = TextProtocol()
        why = str(refusal).rstrip(".") if refusal else "the model writes its tool calls as text"
        self.session.record(
            Notice(f"{why}; from now on tools are described in the instructions and called in the text")
        )
        self._set_instructions(model.protocol)
        return True

    def _ask_and_record(self, question: str) -> bool:
        approved = self._ask_user(question)
        self.session.record(ApprovalAnswered(question, approved))
        return approved

    # -------------------------------------------------------------------------------------------------- the window

    def _budget(self, window_tokens: int) -> Budget:
        settings = self.settings
        return Budget.for_window(
            window_tokens, settings.compaction_reserve_tokens, settings.compaction_keep_recent_tokens
        )

    def _known_window(self) -> int:
        return self.settings.context_window_tokens or known_window(self.model_name) or UNKNOWN_WINDOW_TOKENS

    def _make_room(
        self,
        conversation: Conversation,
        record: Callable[[Event], None],
        ask: Callable[[Sequence[Message]], ModelReply],
        overflow: ContextOverflow | None = None,
    ) -> bool:
        """Keep the conversation inside the window, once that is known; see `MakeRoom`."""
        self._settle_window()
        return self.compressor(conversation, record, ask, overflow)

    def _settle_window(self) -> None:
        """Before the first request to a model, find out its window: set, well known, or the server's word."""
        model = self.runner.model
        if self._window_is_settled or not isinstance(model, OpenAIChatModel):
            return
        is_known = self.settings.context_window_tokens or known_window(self.model_name)
        told = None if is_known else model.server_window_tokens()
        self._window_is_settled = True
        if is_known:
            return
        if told:
            self.compressor.budget = self._budget(told)
            self.compressor.warn_of_large_instructions(self.conversation, self.session.record)
        else:
            self.session.record(
                Notice(
                    f"the window of {self.model_name} is not known: {UNKNOWN_WINDOW_TOKENS} tokens are assumed; "
                    "MINI_AGENT_CONTEXT_WINDOW sets it"
                )
            )
