"""The slash commands: what a person can ask the program itself, between two turns."""

from __future__ import annotations

import difflib
from typing import Callable

from mini_agent.composition import Agent, session_places
from mini_agent.context.tokens import message_tokens
from mini_agent.conversation.messages import AssistantMessage, Message, ToolResult
from mini_agent.conversation.safe_text import readable_size
from mini_agent.session.event_log import DamagedLog
from mini_agent.session.session_files import SessionFilesError, SessionPlaces, find_session, list_sessions
from mini_agent.settings import SettingsError
from mini_agent.terminal.console import Console

LEAVING_WORDS = ("exit", "quit", "et", "/exit", "/quit")

Reopen = Callable[[str], Agent]  # opens a session of before by its name; "" for the last one


def run_command(line: str, agent: Agent, console: Console, reopen: Reopen) -> Agent:
    """Run one slash command and return the agent to go on with: another one after /resume."""
    name, argument = [*line.split(None, 1), ""][:2]
    if name.lower() == "/resume":
        return _resume(argument, agent, console, reopen)
    command = COMMANDS.get(name.lower())
    if command is None:
        near = difflib.get_close_matches(name.lower(), [*COMMANDS, "/resume", "/exit"], 3, cutoff=0.4)
        console.say(f"unknown command {name}; " + (f"nearest: {', '.join(near)}" if near else "/help lists them"))
    else:
        console.say(command(agent, argument))
    return agent


def _resume(name: str, agent: Agent, console: Console, reopen: Reopen) -> Agent:
    places = session_places(agent.settings)
    if not name:  # the one used last is this one
        others = [other.files.stamp for other in list_sessions(places) if other.first_request]
        name = next((stamp for stamp in others if stamp != agent.files.stamp), "")
    try:
        if not name or find_session(places, name).log_path == agent.files.log_path:
            console.say("this is that session" if name else "there is no other session to resume")
            return agent
        other = reopen(name)
    except (SessionFilesError, DamagedLog, SettingsError) as error:
        console.say(str(error))
        return agent
    agent.close()
    console.say(f"resumed {other.files.stamp}; turns so far: {other.conversation.turn_count}")
    return other


def _help(agent: Agent, argument: str) -> str:
    return """\
/help             this list
/context          what the model would be sent now, with its size
/compress         compress the conversation now
/usage            tokens, rounds and seconds so far
/tools            the tools that the model is offered
/model NAME       go on with another model of the same server
/sessions         the sessions of this workspace
/resume [SESSION] go on with the last session before this one, or the named one
/exit             leave (also: exit, quit, et, Ctrl-D)
Anything else is for the model. A line that ends in a backslash goes on in the next; so does all between two lines
of three double quotes. Ctrl-C stops a turn and keeps what was done."""


def _context(agent: Agent, argument: str) -> str:
    """Show the visible messages exactly, each with its tokens, and the total against the window."""
    parts = []
    for number, message in enumerate(agent.conversation.visible_messages(), 1):
        parts.append(f"--- {number}. {_role(message)}, about {message_tokens(message):,} tokens")
        parts.append(_shown(message))
    lines = agent.compressor.lines(agent.conversation)
    parts.append(
        f"--- about {agent.counter.count(agent.conversation):,} tokens with the definitions of "
        f"{len(agent.toolbox.names)} tools, of a window of {lines.limit:,}; compressed above {lines.compress:,}, "
        f"to {lines.target:,} at most"
    )
    if agent.counter.is_counted:
        parts.append(f"--- the server counts {agent.counter.factor:.2f} tokens for each that is estimated")
    shortened, saved = agent.totals.session.shortened_results, agent.totals.session.saved_characters
    if shortened:
        parts.append(f"--- tool results shown shorter than they came: {shortened}, which saves {saved:,} characters")
    parts.append(f"--- a compression now would be: {agent.compressor.outlook(agent.conversation)}")
    return "\n".join(parts)


def _role(message: Message) -> str:
    name = type(message).__name__
    return f"{name} of {message.tool_name}" if isinstance(message, ToolResult) else name


def _shown(message: Message) -> str:
    if not isinstance(message, AssistantMessage):
        return message.text
    calls = [f"[calls {call.name} {call.arguments_text}]" for call in message.tool_calls]
    return "\n".join([message.text, *calls] if message.text else calls)


def _compress(agent: Agent, argument: str) -> str:
    before = agent.counter.count(agent.conversation)
    if not agent.compress_now():
        return "there is nothing that would become smaller"
    return f"about {before:,} tokens before, {agent.counter.count(agent.conversation):,} now"


def _usage(agent: Agent, argument: str) -> str:
    lines = []
    for name, sums in (("last turn", agent.totals.turn), ("session", agent.totals.session)):
        usage = sums.usage
        lines.append(
            f"{name}: {usage.input_tokens:,} tokens in ({usage.cached_tokens:,} cached), {usage.output_tokens:,} out; "
            f"rounds: {sums.rounds}; seconds: {sums.seconds:.1f}"
        )
    estimate, messages = agent.counter.estimate(agent.conversation), agent.conversation.visible_messages()
    if agent.totals.last_input_tokens is not None and isinstance(messages[-1], AssistantMessage):
        asked = f"{agent.totals.last_input_tokens:,} tokens in by the server's count"
        lines.append(f"the last request: {asked}, about {estimate - message_tokens(messages[-1]):,} by our estimate")
    count = agent.counter.count(agent.conversation)
    return "\n".join([*lines, f"the next request: about {count:,} tokens, without what you say"])


def _tools(agent: Agent, argument: str) -> str:
    lines = []
    for schema in agent.toolbox.schemas():
        parameters = schema["parameters"]
        names = [name if name in parameters["required"] else f"{name}?" for name in parameters["properties"]]
        lines.append(f"{schema['name']}({', '.join(names)}): {schema['description']}")
    return "\n".join(lines)


def _model(agent: Agent, argument: str) -> str:
    if not argument:
        return f"the model is {agent.model_name}; /model NAME changes it"
    if agent.settings.script:
        return "a script answers here, and not a model that could be changed"
    if not argument.isprintable():
        return "a model's name holds no control characters"
    agent.change_model(argument)
    return f"{argument} answers from now on"


def _sessions(agent: Agent, argument: str) -> str:
    return list_of_sessions(session_places(agent.settings))


def list_of_sessions(places: SessionPlaces) -> str:
    """Return the sessions of a workspace, a line each, the one used last first."""
    lines = []
    for session in list_sessions(places):
        request = " ".join(session.first_request.split())[:60] or "(nothing asked)"
        lines.append(f"{session.files.stamp}  {readable_size(session.size_bytes)}  {request}")
    return "\n".join(lines) or "there are no sessions in this workspace yet"


COMMANDS: dict[str, Callable[[Agent, str], str]] = {
    "/help": _help,
    "/context": _context,
    "/compress": _compress,
    "/usage": _usage,
    "/tools": _tools,
    "/model": _model,
    "/sessions": _sessions,
}
