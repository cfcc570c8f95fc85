"""Turns from the command line: one shot, piped lines, or a person at the prompt."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from typing import Callable

from mini_agent import ANSWERED, BAD_USAGE, FAILED, INTERRUPTED, __version__
from mini_agent.agent.runner import TurnResult
from mini_agent.commands import LEAVING_WORDS, list_of_sessions, run_command
from mini_agent.composition import Agent, open_agent, session_places
from mini_agent.conversation.interrupts import uninterrupted
from mini_agent.session.event_log import DamagedLog
from mini_agent.session.session import Listener
from mini_agent.session.session_files import SessionFilesError
from mini_agent.settings import Settings, SettingsError, load_settings
from mini_agent.terminal.console import Console
from mini_agent.terminal.input_mode import Keyboard

STATUS_CODES = {"completed": ANSWERED, "interrupted": INTERRUPTED}  # any other: FAILED
PROMPT, CONTINUED = "> ", "... "


def run(options: argparse.Namespace) -> int:
    """Do what the flags ask for; return the exit code."""
    console = Console(sys.stdout, sys.stderr)
    try:
        if options.demo:
            code = _run_demo(console)
        else:
            settings = load_settings(vars(options), os.environ, model_needed=not options.list_sessions)
            console = Console(sys.stdout, sys.stderr, settings.terminal_log_level)
            code = _run(options, settings, console)
    except SettingsError as error:
        for problem in error.problems:
            console.trace("error", problem)
        if error.hint:
            console.trace("info", error.hint)
        return BAD_USAGE
    except (SessionFilesError, DamagedLog) as error:
        console.trace("error", str(error))
        return BAD_USAGE
    finally:
        console.close()
    if console.failure:
        console.trace("error", f"the answer could not be written: {console.failure}")
    return code or (FAILED if console.failure else ANSWERED)


def _run(options: argparse.Namespace, settings: Settings, console: Console) -> int:
    if options.list_sessions:
        console.say(list_of_sessions(session_places(settings)))
        return ANSWERED
    if options.prompt is not None:
        return _one_shot(options, settings, console)
    return _turns(options, settings, console)


def _run_demo(console: Console) -> int:
    from mini_agent.demo.demo import run_demo  # lazy: nobody else needs it

    def run_turn(settings: Settings, request: str) -> TurnResult:
        agent = open_agent(settings, listeners=[console.show], on_text=console.on_text)
        try:
            result = agent.run_turn(request)
        finally:
            agent.close()
        if result.status == "interrupted":
            raise KeyboardInterrupt
        console.show_answer(result.answer)
        return result

    return run_demo(run_turn, console.say)


def _run_turn(agent: Agent, request: str, keyboard: Keyboard) -> TurnResult:
    """Run one turn while the keyboard is quiet; a Ctrl-C at its very end counts as one in it."""
    try:
        with keyboard.working():
            return agent.run_turn(request)
    except KeyboardInterrupt:
        sums = agent.totals.turn
        return TurnResult("interrupted", "", "interrupted", "interrupted by the user", sums.rounds, sums.usage, 0)


# ------------------------------------------------------------------------------------------------------------ one shot


def _one_shot(options: argparse.Namespace, settings: Settings, console: Console) -> int:
    """Run one turn and print what `--output` asks for; progress goes to the error output."""
    request = options.prompt
    if request == "-":
        request = _decoded(sys.stdin.buffer.read(), console)
    if not request.strip():
        raise SettingsError(["--prompt is empty; say what is to be done"])
    keyboard = Keyboard(sys.stdin, console)
    listeners: list[Listener] = [console.show]
    on_text = console.on_text if options.output == "text" else None
    if options.output == "events":
        listeners.append(lambda entry: console.write_line(entry.to_line()))
    agent = open_agent(settings, resume=options.resume, ask=keyboard.ask_yes, listeners=listeners, on_text=on_text)
    _show_script(settings, console)
    result = _run_turn(agent, request, keyboard)
    try:
        with uninterrupted():  # whoever reads the answer gets it whole
            if options.output == "text":
                console.show_answer(result.answer)
            if options.output == "json":
                console.write_line(_as_json(result, agent))
            agent.close()
    except KeyboardInterrupt:  # too late: what was done is told
        pass
    return STATUS_CODES.get(result.status, FAILED)


def _as_json(result: TurnResult, agent: Agent) -> str:
    """Return the one object of `--output json`."""
    failed = result.status not in ("completed", "round_limit")
    return json.dumps(
        {
            "answer": result.answer,
            "status": result.status,
            "error": {"kind": result.kind, "message": result.reason} if failed else None,
            "rounds": result.rounds,
            "usage": vars(result.usage),
            "seconds": round(result.seconds, 3),
            "session": str(agent.files.log_path),
            "record": str(agent.files.record_path),
            "files_changed": list(agent.totals.turn.files_changed),
        }
    )


# ---------------------------------------------------------------------------------------------------------- many turns


def _turns(options: argparse.Namespace, settings: Settings, console: Console) -> int:
    """Run a turn for each request until the input ends or the user leaves."""
    at_terminal = sys.stdin.isatty()
    keyboard = Keyboard(sys.stdin, console)

    def reopen(resume: str | None) -> Agent:
        on_text, ask = console.on_text, keyboard.ask_yes
        return open_agent(settings, resume=resume, ask=ask, listeners=[console.show], on_text=on_text)

    agent = reopen(options.resume)
    if at_terminal:
        _show_start(agent, console)
    _show_script(settings, console)
    read_line = _typed_lines(console) if at_terminal else lambda continued: _piped_line(console)
    reader = RequestReader(read_line, blocks=at_terminal)
    code = ANSWERED
    is_leaving = False  # Ctrl-C was the last that came from the user
    try:
        while not console.failure:
            try:
                request = reader.next()
                if request is None or request.strip().lower() in LEAVING_WORDS:
                    return code
                is_leaving = False
                if request.strip().startswith("/"):
                    with keyboard.working():
                        agent = run_command(request.strip(), agent, console, reopen)
                elif request.strip():
                    result = _run_turn(agent, request, keyboard)
                    console.show_answer(result.answer)
                    is_leaving = result.status == "interrupted"
                    if not at_terminal:
                        code = max(code, STATUS_CODES.get(result.status, FAILED))
                    if is_leaving and not at_terminal:
                        return code
            except KeyboardInterrupt:
                if is_leaving or not at_terminal:
                    return INTERRUPTED
                is_leaving = True
                console.trace("info", "(Ctrl-C once more, or Ctrl-D, leaves)")
        return code
    finally:
        agent.close()


def _show_start(agent: Agent, console: Console) -> None:
    workspace, files = agent.settings.workspace, agent.files
    server = "" if agent.settings.script else f", {agent.model_name} at {agent.settings.base_url}"
    log, record = (
        path.relative_to(workspace) if workspace in path.parents else path
        for path in (files.log_path, files.record_path)
    )
    console.trace("info", f"mini-agent {__version__}{server}")
    console.trace("info", f"workspace {workspace}, tools: {', '.join(agent.toolbox.names)}")
    console.trace("info", f"log {log}, record {record}; /help lists the commands, Ctrl-D leaves")


def _show_script(settings: Settings, console: Console) -> None:
    if settings.script:
        console.trace("info", f"no model answers here, but the script {settings.script}")


class RequestReader:
    """Read one request of the user after the other, over several lines where they say so.

    A line that ends in a backslash goes on in the next; with `blocks`, so does all between two lines of three quotes.
    """

    def __init__(self, read_line: Callable[[bool], str | None], *, blocks: bool) -> None:
        """Take `read_line(continued)`, which returns a line without its end, or None at the end of the input."""
        self._read_line = read_line
        self._blocks = blocks

    def next(self) -> str | None:
        """Return the next request, or None at the end; what came before an end in its middle is a request too."""
        line = self._read_line(False)
        if line is None:
            return None
        if self._blocks and line.strip().startswith('"""'):
            return self._block(line.strip()[3:])
        lines = []
        while line is not None and line.endswith("\\"):
            lines.append(line[:-1])
            line = self._read_line(True)
        return "\n".join([*lines, line] if line is not None else lines)

    def _block(self, line: str | None) -> str:
        lines: list[str] = []
        while line is not None and not line.rstrip().endswith('"""'):
            lines.append(line)
            line = self._read_line(True)
        last = [] if line is None else [line.rstrip()[:-3]]
        return "\n".join([*lines, *last]).strip("\n")


def _piped_line(console: Console) -> str | None:
    line = sys.stdin.buffer.readline()
    return _decoded(line, console).rstrip("\r\n") if line else None


def _decoded(data: bytes, console: Console) -> str:
    """Return what was piped in as text; where it is not UTF-8, say so and go on with what can be read."""
    text = data.decode("utf-8", errors="replace")
    if "\ufffd" in text and "\ufffd".encode() not in data:
        console.trace("warn", "the input is not UTF-8: what cannot be read stands as \ufffd in the request")
    return text


def _typed_lines(console: Console) -> Callable[[bool], str | None]:
    """Return what reads a line at the terminal: with editing and history, where Python has readline."""
    try:
        from readline import get_line_buffer as half_typed  # lazy: only the prompt needs it; `input` then uses it
    except ImportError:
        half_typed = str
    sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
    interrupted_line = ""

    def interrupt(number: int, frame: object) -> None:
        nonlocal interrupted_line
        interrupted_line = half_typed()  # it can't be asked any more when the exception arrives
        raise KeyboardInterrupt

    def typed_line(continued: bool) -> str | None:
        prompt = CONTINUED if continued else PROMPT
        if not sys.stdout.isatty():  # answers go to a file or a pipe, and the prompt is none
            console.prompt(prompt)
            prompt = ""
        usual_handler = signal.signal(signal.SIGINT, interrupt)
        try:
            return input(prompt)
        except (EOFError, OSError):  # Ctrl-D; the terminal has gone
            console.prompt("\n")
            return None
        except KeyboardInterrupt:
            console.prompt("\n")
            if interrupted_line and not continued:  # takes back what was typed, as in a shell
                return ""
            raise
        finally:
            signal.signal(signal.SIGINT, usual_handler)

    return typed_line
