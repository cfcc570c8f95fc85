"""Work that a signal must not cut in two.

It stands on the lowest floor because two rooms need it that do not know each other: `Session.record` (a log line and
the memory of it belong together) and `Workspace.commit` (some files renamed and others not is what it must prevent).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGALRM") if hasattr(signal, name)]


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back Ctrl-C and the tools' alarm until the block is done, then let them have their effect.

    Handlers are swapped, not signals masked: with a second thread about, a masked signal is delivered there and Python
    still raises KeyboardInterrupt in the main thread. Only the main thread is ever interrupted, so elsewhere this does
    nothing. It can be nested. Meant for milliseconds.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[Any] = []
    before = {}
    try:
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):  # a default action, or a handler outside Python, is left alone
                before[number] = handler  # kept first: the other signal may arrive between these two lines
                signal.signal(number, lambda *caught: held.append(caught))
        yield
    finally:
        # Ctrl-C comes back first: should it strike between the two, the tool's clock sets its alarm right by itself;
        # the other way round, an alarm between them would leave Ctrl-C without effect for good
        for number, handler in before.items():
            signal.signal(number, handler)
        if held:
            number, frame = min(held, key=lambda caught: caught[0])  # Ctrl-C (2) goes before the alarm (14)
            before[number](number, frame)
