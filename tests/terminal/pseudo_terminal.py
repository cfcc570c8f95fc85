"""A Python script in a real pseudo-terminal, for tests that type and look."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
import unittest
from pathlib import Path
from typing import Callable

from tests import COMPILED

REPOSITORY = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 20  # against hanging; nothing waits that long


class PseudoTerminal:
    """Run `script` (Python source) on a terminal of its own; what it prints comes in `screen`, orders and all."""

    def __init__(self, script: str, columns: int = 80, **environment: str) -> None:
        self.screen = ""
        self._seen = 0  # up to here it was waited for
        self._status: int | None = None
        variables = {"PYTHONPATH": str(REPOSITORY), "TERM": "xterm", "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        variables.update(COMPILED)
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            os.execve(sys.executable, [sys.executable, "-S", "-c", script], {**variables, **environment})

    def close(self) -> None:
        """End the script, where it has not ended."""
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait_for(self, text: str) -> None:
        """Read until `text` stands on the screen, after what was waited for before."""
        start = len(self.screen)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text not in self.screen[self._seen :]:
            if not self._read(deadline):
                raise AssertionError(f"{text!r} never came; since then: {self.screen[start:]!r}")
        self._seen = self.screen.index(text, self._seen) + len(text)

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds()` is true."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            if time.monotonic() > deadline:
                raise AssertionError(f"it never came true; on the screen: {self.screen!r}")
            time.sleep(0.01)

    def wait_for_end(self) -> int:
        """Read until the script ends; return its exit status, as `subprocess` counts it."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._read(deadline):
            pass
        while self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            elif time.monotonic() > deadline:
                raise AssertionError(f"the script did not end; on the screen: {self.screen!r}")
            else:
                time.sleep(0.01)
        return self._status

    def shows_keys(self) -> bool:
        """Tell whether the terminal echoes what is typed."""
        return bool(termios.tcgetattr(self.master)[3] & termios.ECHO)

    def _read(self, deadline: float) -> bool:
        if not select.select([self.master], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:  # Linux's way to say that the other side is closed
            return False
        self.screen += data.decode(errors="replace")
        return bool(data)


class TerminalTestCase(unittest.TestCase):
    def run_in_terminal(self, script: str, columns: int = 80, **environment: str) -> PseudoTerminal:
        terminal = PseudoTerminal(script, columns, **environment)
        self.addCleanup(terminal.close)
        return terminal
