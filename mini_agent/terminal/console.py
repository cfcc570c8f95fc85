"""The console: what a person sees of a session, read from its events.

Answers go to the output, everything else (what the agent does, notices, the progress line) to the error output, so
that a pipe behind the program gets answers only. All text passes `safe_text`. Nothing here raises when a stream breaks:
that is kept in `failure`, and the turn goes on.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Callable, ClassVar, TextIO

from mini_agent.conversation import events
from mini_agent.conversation.messages import ToolCall
from mini_agent.conversation.safe_text import readable_size, safe_line, safe_text
from mini_agent.terminal.columns import cut, encodable, width

LEVELS = ("debug", "info", "warn", "error", "none")
DIFF_LINES = 40  # of a patch that was made; one that waits for approval is shown whole
COLUMNS_IN_A_PIPE = 120

_COLOURS = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "bold": "1", "dim": "2"}
_LOOKS = {"debug": ("dim", ""), "info": ("", ""), "warn": ("yellow", "warning: "), "error": ("red", "error: ")}


class Ticker:
    """A thread that does a small piece of work again and again until it is stopped."""

    def __init__(self, seconds: float, work: Callable[[], None]) -> None:
        """Start it: `work` is done every `seconds`, for the first time after that time has passed."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(seconds, work), daemon=True)
        self._thread.start()

    def _run(self, seconds: float, work: Callable[[], None]) -> None:
        if hasattr(signal, "pthread_sigmask"):  # Ctrl-C must wake the main thread, wherever that waits
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while not self._over.wait(seconds):
            work()

    def stop(self) -> None:
        """Stop it; when this returns the work is not done any more."""
        self._over.set()
        self._thread.join()


class _Stream:
    """A stream that takes any text and never raises."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding = getattr(stream, "encoding", None) or "utf-8"
        self.failure = ""
        try:
            self.is_terminal = stream.isatty()
        except ValueError:  # closed
            self.is_terminal = False

    def write(self, text: str) -> None:
        """Write and flush; where that fails keep why in `failure`, and write nothing any more."""
        if self.failure:
            return
        try:
            self._stream.write(encodable(text, self.encoding))
            self._stream.flush()
        except (OSError, ValueError) as error:
            self.failure = getattr(error, "strerror", None) or str(error)

    def columns(self) -> int | None:
        """Return the terminal's width; None where it is none or does not know."""
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or None
        except (OSError, ValueError, AttributeError):
            return None


@dataclass
class _Turn:
    """What the running turn is at."""

    started: float  # on the monotonic clock
    last: datetime  # when the step before the one that runs now was done
    round: int = 1
    tokens: int = 0
    open_calls: list[ToolCall] = field(default_factory=list)  # the first one is running
    changed: list[str] = field(default_factory=list)  # paths, by the running call
    diff_was_shown: bool = False  # of the running call, by the question whether it may be made

    def line(self) -> str:
        """Return the progress line."""
        seconds = time.monotonic() - self.started
        doing = self.open_calls[0].name if self.open_calls else "waiting for the model"
        tokens = f"{self.tokens:,} tokens, " if self.tokens else ""
        return safe_line(f"{seconds:.0f} s, round {self.round}, {tokens}{doing} (Ctrl-C stops it)")


class Console:
    """What a person sees. `show` is the session's listener, `on_text` takes an answer's pieces as they come."""

    def __init__(
        self, out: TextIO, err: TextIO, level: str = "info", environment: Mapping[str, str] = os.environ
    ) -> None:
        """Take the two streams.

        level: what is below it is not shown on the error output; "none" leaves only answers and questions.
        """
        self._out, self._err = _Stream(out), _Stream(err)
        self._level = level
        self._environment = environment
        dumb = environment.get("TERM", "" if os.name == "nt" else "dumb") in ("dumb", "unknown")
        self._shows_progress = self._err.is_terminal and not dumb
        knows_colours = os.name != "nt" or "WT_SESSION" in environment or "TERM" in environment
        self._is_coloured = self._shows_progress and knows_colours and not environment.get("NO_COLOR")
        self._lock = threading.RLock()  # the progress line is drawn by a thread of its own
        self._ticker: Ticker | None = None
        self._turn: _Turn | None = None
        self._progress = ""  # the progress line that stands there now
        self._pauses = 0
        self._streamed = ""  # of the message that is coming in
        self._line_is_open = False  # streamed text stands there without its line end
        self._answer_shown: str | None = None  # the message that was streamed whole

    @property
    def can_ask(self) -> bool:
        """Tell whether there is a terminal on which a person can see a question."""
        return self._err.is_terminal

    @property
    def failure(self) -> str:
        """Return why answers can't be written any more; "" while they can."""
        return self._out.failure

    # -------------------------------------------------------------------------------------------------- the answers

    @property
    def on_text(self) -> Callable[[str], None] | None:
        """Return what shows an answer piece by piece as it comes; None where the output is no terminal."""
        return self._show_piece if self._out.is_terminal else None

    def _show_piece(self, delta: str) -> None:
        if not delta:
            return
        with self._lock:
            self._erase_progress()
            self._streamed += delta
            self._out.write(safe_text(delta))
            self._line_is_open = not delta.endswith("\n")

    def show_answer(self, answer: str) -> None:
        """Show a turn's answer, where it was not streamed already."""
        if answer.strip() and answer != self._answer_shown:
            self.say(answer)
        self._answer_shown = None

    def say(self, text: str) -> None:
        """Write text with a line end to the output, whatever the level."""
        with self._lock:
            self._make_place()
            self._out.write(safe_text(text).rstrip("\n") + "\n")

    def write_line(self, line: str) -> None:
        """Write a line for a program to read, as it is."""
        with self._lock:
            self._make_place()
            self._out.write(line + "\n")

    # ----------------------------------------------------------------------------------------------- everything else

    def trace(self, level: str, text: str) -> None:
        """Show one line on the error output, where its level (debug, info, warn, error) is high enough."""
        colour, prefix = _LOOKS[level]
        self._lines(level, [(colour, prefix + safe_line(text))])

    def show_question(self, question: str) -> None:
        """Show what a person is asked, whole, whatever the level; what looks like a diff in it is coloured."""
        self._lines("", [(_diff_colour(line), line) for line in safe_text(question).split("\n")])

    def prompt(self, text: str) -> None:
        """Write text after which a person types, on the error output."""
        with self._lock:
            self._make_place()
            self._err.write(safe_text(text))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Keep the progress line away, while a person is asked."""
        with self._lock:
            self._erase_progress()
            self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1

    def close(self) -> None:
        """Take the progress line away for good."""
        ticker, self._ticker = self._ticker, None
        if ticker:
            ticker.stop()
        with self._lock:
            self._turn = None
            self._make_place()

    def _lines(self, level: str, lines: Sequence[tuple[str, str]]) -> None:
        """Write lines of safe text, each with the name of its colour; level "" is always shown."""
        if level and LEVELS.index(level) < LEVELS.index(self._level):
            return
        with self._lock:
            self._make_place()
            self._err.write("".join(self._coloured(colour, line) + "\n" for colour, line in lines))

    def _coloured(self, colour: str, text: str) -> str:
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if colour and self._is_coloured else text

    def _columns(self) -> int:
        """Return how wide a line may be. The variable goes first: it is how a person overrules the terminal."""
        asked = self._environment.get("COLUMNS", "")
        columns = int(asked) if re.fullmatch("[0-9]{1,4}", asked) else 0
        return max(columns or self._err.columns() or COLUMNS_IN_A_PIPE, 20)

    # -------------------------------------------------------------------------------------------- the progress line

    def _make_place(self) -> None:
        """Let the next line start at the left: no progress line, no unfinished line of streamed text."""
        self._erase_progress()
        if self._line_is_open:
            self._line_is_open = False
            self._out.write("\n")

    def _erase_progress(self) -> None:
        line, self._progress = self._progress, ""
        if line:
            self._err.write("\r" + " " * width(line) + "\r")  # spaces: every terminal knows them

    def _draw_progress(self) -> None:
        with self._lock:
            if self._turn is None or self._pauses or self._line_is_open:
                return
            line = cut(encodable(self._turn.line(), self._err.encoding), self._columns() - 1)
            if line != self._progress:
                before, self._progress = self._progress, line
                self._err.write("\r" + line + " " * (width(before) - width(line)))

    # ---------------------------------------------------------------------------------------------------- the events

    def show(self, entry: Any) -> None:
        """Show what there is to see of one event: the session's listener.

        entry: a LogEntry, of a floor that the terminal does not know: its `event` and `time` are looked at.
        """
        show = self._SHOWN.get(type(entry.event))
        if show is not None:
            with self._lock:
                show(self, entry.event, entry.time)

    def _turn_begins(self, event: events.UserMessageAdded, when: datetime) -> None:
        if event.steered:
            return
        self._streamed, self._answer_shown = "", None
        self._turn = _Turn(time.monotonic(), when)
        if self._shows_progress and self._ticker is None:
            self._ticker = Ticker(0.25, self._draw_progress)

    def _message_came(self, event: events.AssistantMessageAdded, when: datetime) -> None:
        text, calls = event.message.text, event.message.tool_calls
        was_streamed = bool(self._streamed.strip()) and (bool(calls) or text.strip() in self._streamed)
        self._streamed = ""
        self._answer_shown = text if was_streamed else None
        if was_streamed:
            self._make_place()
        elif calls and text.strip():  # what it says on the way; an answer is shown at the end of the turn
            self._lines("info", [("", line) for line in safe_text(text).strip().split("\n")])
        usage = event.usage
        if self._turn:
            self._turn.last, self._turn.open_calls = when, list(calls)
            self._turn.tokens += usage.total_tokens if usage else 0
        if usage:
            cost = f"{usage.input_tokens:,} tokens in ({usage.cached_tokens:,} cached), {usage.output_tokens:,} out"
            self.trace("debug", f"{event.model}: {cost}; {event.finish_reason}")

    def _tool_came_to_result(self, event: events.ToolResultAdded, when: datetime) -> None:
        turn = self._turn or _Turn(time.monotonic(), when)  # a resume closes the calls that a crash left open
        call = next((call for call in turn.open_calls if call.id == event.call_id), None)
        seconds = f"{max(0.0, (when - turn.last).total_seconds()):.1f} s"
        argument = ", ".join(turn.changed) or (main_argument(call) if call else "")
        if event.is_error:
            self._tool_line(event.tool_name, argument, f"{event.text} ({seconds})", "red")
        else:
            size = readable_size(len(event.text.encode("utf-8", "surrogatepass")))
            self._tool_line(event.tool_name, argument, f"{size}, {seconds}", "")
            if call and turn.changed and not turn.diff_was_shown:
                self._show_patch(call)
        turn.last, turn.changed, turn.diff_was_shown = when, [], False
        turn.open_calls = [other for other in turn.open_calls if other is not call]
        if not turn.open_calls:
            turn.round += 1

    def _tool_line(self, name: str, argument: str, tail: str, colour: str) -> None:
        """Show a call in one line; where there is little room, the argument gives way first, then the tail."""
        columns = self._columns()
        name, argument, tail = (encodable(safe_line(text), self._err.encoding) for text in (name, argument, tail))
        room = max(columns - width(f"* {name}   {tail}"), columns // 3)
        line = f"* {name} {cut(argument, room)}".rstrip() + f"  {tail}"
        self._lines("info", [(colour, cut(line, columns))])

    def _show_patch(self, call: ToolCall) -> None:
        """Show the patch that a call has made, cut when it is long."""
        texts = [value for value in (call.arguments or {}).values() if isinstance(value, str) and "\n" in value]
        lines = safe_text("\n".join(texts)).expandtabs(4).strip("\n").split("\n") if texts else []
        if len(lines) > DIFF_LINES:
            lines = [*lines[:DIFF_LINES], f"... {len(lines) - DIFF_LINES} more lines"]
        columns = self._columns() - 2
        shown = [cut(encodable(line, self._err.encoding), columns) for line in lines]
        self._lines("info", [(_diff_colour(line), "  " + line) for line in shown])

    def _files_changed(self, event: events.FilesChanged, when: datetime) -> None:
        if self._turn:
            self._turn.changed += [file.path for file in event.files]

    def _approval_answered(self, event: events.ApprovalAnswered, when: datetime) -> None:
        if self._turn:
            self._turn.last = when  # thinking it over is not the tool's time
            self._turn.diff_was_shown = True

    def _noticed(self, event: events.Notice, when: datetime) -> None:
        self.trace("warn" if event.level == "warn" else "info", event.text)

    def _turn_ended(self, event: events.TurnEnded, when: datetime) -> None:
        turn, self._turn = self._turn, None
        self._make_place()
        if event.status == "failed":
            self.trace("error", f"{event.reason} ({event.kind})")
        elif event.status == "round_limit":
            self.trace("warn", f"{event.reason}; tell it to go on where there is more to do")
        elif event.status == "interrupted":
            self.trace("info", event.reason)
        if turn:
            seconds = time.monotonic() - turn.started
            self.trace("debug", f"{event.status}: {turn.round} rounds, {seconds:.1f} s, {turn.tokens:,} tokens")

    # What has no line of its own is told otherwise: a compression by notices, a change of model by its command.
    _SHOWN: ClassVar[dict[type, Callable[[Any, Any, datetime], None]]] = {
        events.UserMessageAdded: _turn_begins,
        events.AssistantMessageAdded: _message_came,
        events.ToolResultAdded: _tool_came_to_result,
        events.FilesChanged: _files_changed,
        events.ApprovalAnswered: _approval_answered,
        events.Notice: _noticed,
        events.TurnEnded: _turn_ended,
    }


_PATCH_PATH = r"^(?:\+\+\+ (?:b/)?|rename from |rename to |copy to |\*\*\* (?:Add|Update|Delete) File: )(.+)$"


def main_argument(call: ToolCall) -> str:
    """Return what tells a call best in a few words: its texts, of a patch the paths, of a list its length."""
    words = []
    for name, value in (call.arguments or {}).items():
        if isinstance(value, str) and "\n" in value:
            paths = re.findall(_PATCH_PATH, value, re.MULTILINE)
            words.append(" -> ".join(dict.fromkeys(path.strip() for path in paths)))
        elif isinstance(value, str):
            words.append(value)
        elif isinstance(value, list):
            words.append(f"{name}: {len(value)}")
    return " ".join(word for word in words if word not in ("", "."))


def _diff_colour(line: str) -> str:
    """Return the colour of a line of a diff, "" for one without."""
    if line.startswith(("+++", "---", "***", "diff ")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
