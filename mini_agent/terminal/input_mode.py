"""What the keyboard does while the agent works, and how a person is asked for a yes.

While it works, keys are neither shown nor kept: what was typed for nothing must not answer a question that comes up
later, nor become the next request. Ctrl-C still does its work. Without a terminal, and on Windows, nothing is changed.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from mini_agent.conversation.interrupts import uninterrupted
from mini_agent.terminal.console import Console, Ticker

try:
    import termios
except ImportError:  # Windows
    termios = None  # type: ignore[assignment]

YES = b"yes"
_LEAVING = [getattr(signal, name) for name in ("SIGTSTP", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)]


class Keyboard:
    """The keyboard of one terminal."""

    def __init__(self, stdin: TextIO, console: Console) -> None:
        """Take the input, and the console on which questions are shown."""
        self._console = console
        try:
            self._descriptor = stdin.fileno() if stdin.isatty() else -1
        except (OSError, ValueError):
            self._descriptor = -1
        self._works = False  # the agent works, and nothing is being asked
        self._usual_mode: list[Any] | None = None  # while the terminal's mode is changed: what it was
        self._ticker: Ticker | None = None

    # ------------------------------------------------------------------------------------------------ while it works

    @contextmanager
    def working(self) -> Iterator[None]:
        """Throw away what is typed while the block runs; the terminal's mode is put back however it ends."""
        if self._descriptor < 0 or termios is None or threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers: dict[int, Any] = {}
        try:
            self._take_signals(handlers)
            self._works = True
            self._hush()
            yield
        finally:
            with uninterrupted():  # a second Ctrl-C must not leave a terminal that shows nothing
                self._works = False
                self._unhush()
                for number, handler in handlers.items():
                    signal.signal(number, handler)

    def _hush(self) -> None:
        """Show no keys and drop them, if it is time for that and no other program has the terminal."""
        if not self._works or not self._is_in_front():
            return
        try:
            self._usual_mode = self._usual_mode or termios.tcgetattr(self._descriptor)
            mode = termios.tcgetattr(self._descriptor)
            mode[3] &= ~(termios.ECHO | termios.ICANON)  # ISIG stays: Ctrl-C and Ctrl-Z do their work
            mode[6][termios.VMIN] = mode[6][termios.VTIME] = 0  # a read never waits
            termios.tcsetattr(self._descriptor, termios.TCSANOW, mode)
        except termios.error:  # the terminal has gone
            return
        self._ticker = self._ticker or Ticker(0.2, self._read_away)

    def _unhush(self) -> None:
        """Put the terminal's mode back."""
        ticker, self._ticker = self._ticker, None
        if ticker:
            ticker.stop()
        mode, self._usual_mode = self._usual_mode, None
        if mode is not None and self._is_in_front():
            self._drop_typed()
            try:
                termios.tcsetattr(self._descriptor, termios.TCSANOW, mode)
            except termios.error:
                pass

    def _read_away(self) -> None:
        """Read what was typed, for nothing, because a full buffer of keys lets no Ctrl-C through.

        Flushing it would do away with a Ctrl-C that stands behind it.
        """
        try:
            while self._is_in_front() and select.select([self._descriptor], [], [], 0)[0]:
                if not os.read(self._descriptor, 4096):  # a Ctrl-C has just emptied it, or the terminal has gone
                    return
        except OSError:
            pass

    def _drop_typed(self) -> None:
        """Throw away what was typed and not read yet."""
        if termios is None:
            import msvcrt  # only Windows has it

            while msvcrt.kbhit():
                msvcrt.getwch()
        elif self._is_in_front():
            try:
                termios.tcflush(self._descriptor, termios.TCIFLUSH)
            except termios.error:
                pass

    def _is_in_front(self) -> bool:
        """Tell whether this program has the terminal; one in the background is stopped when it touches the mode."""
        try:
            return os.tcgetpgrp(self._descriptor) == os.getpgrp()
        except OSError:  # not the terminal that controls us: then it stops nobody
            return True

    # --------------------------------------------------------------------------------------------------- the signals

    def _take_signals(self, handlers: dict[int, Any]) -> None:
        """Handle the signals that stop or end the program, where nobody else does; keep in `handlers` who did."""
        for number in _LEAVING:
            if signal.getsignal(number) is signal.SIG_DFL:
                handlers[number] = signal.signal(number, self._leave)
        handlers[signal.SIGCONT] = signal.signal(signal.SIGCONT, lambda number, frame: self._hush())

    def _leave(self, number: int, frame: Any) -> None:
        """Put the mode back, then do what the signal does by itself; after a Ctrl-Z the program comes back here."""
        self._unhush()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.signal(number, self._leave)
        self._hush()

    # ------------------------------------------------------------------------------------------------------ the asking

    def ask_yes(self, question: str) -> bool:
        """Ask a person; return whether the answer was exactly `yes`, which it never is without a terminal.

        What was typed before the question was shown does not count. Ctrl-C is no answer but an interrupt.
        """
        if self._descriptor < 0 or not self._console.can_ask:
            self._console.show_question(question)
            self._console.trace("warn", "there is no terminal to ask on, so the answer is no")
            return False
        worked, self._works = self._works, False
        try:
            self._unhush()
            with self._console.paused():
                self._drop_typed()
                self._console.show_question(question)
                return self._read_answer() == YES
        finally:
            self._works = worked
            self._hush()

    def _read_answer(self) -> bytes:
        """Return the line that is typed now; b"" where none comes."""
        line = b""
        try:
            self._console.prompt('Type "yes" to allow it, anything else to refuse: ')
            line = os.read(self._descriptor, 1024)
        except OSError:  # the terminal has gone
            pass
        finally:
            if not line.endswith(b"\n"):  # Ctrl-C or Ctrl-D: the cursor still stands behind the question
                self._console.prompt("\n")
        return line.strip()
