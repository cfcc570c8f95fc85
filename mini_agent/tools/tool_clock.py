"""Time limits for tools that really stop the work."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable


class TimeLimitExceeded(BaseException):
    """The alarm rang inside a tool. No subclass of Exception, so that no tool swallows it by mistake."""


class ToolClock:
    """Ring an alarm in the main thread when a tool takes too long.

    A thread cannot be killed, so a tool runs on the main thread and the alarm raises TimeLimitExceeded there. Two
    things it cannot do: reach a running `re` match in time (grep matches in a child process that can be killed), and
    ring where there is no such alarm (Windows, a thread other than the main one): there tools run without a limit.
    """

    @contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        """Raise TimeLimitExceeded inside the block once it has run for `seconds`."""
        if not _can_ring():
            yield
            return
        before = signal.signal(signal.SIGALRM, self._ring)
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    @staticmethod
    def _ring(number: int, frame: Any) -> None:
        raise TimeLimitExceeded

    def pausing(self, ask: Callable[[str], bool]) -> Callable[[str], bool]:
        """Return `ask` such that the time a person takes to answer does not count."""

        def ask_in_peace(question: str) -> bool:
            if not _can_ring():
                return ask(question)
            left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
            try:
                return ask(question)
            finally:
                signal.setitimer(signal.ITIMER_REAL, left)

        return ask_in_peace


def _can_ring() -> bool:
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
