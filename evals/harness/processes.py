"""A child process with a time limit that holds: when it is over, the child and all that it started are gone."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]  # where evals and mini_agent are

_running: set[subprocess.Popen[bytes]] = set()
_lock = threading.Lock()
_stopping = threading.Event()


class Stopped(Exception):
    """The whole run is being stopped: what this child did is not to be counted."""


@dataclass(frozen=True)
class Ended:
    """How a child ended."""

    exit_code: int
    timed_out: bool
    seconds: float  # from its start to its end


def run_limited(
    command: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    folder: Path,
    timeout_seconds: float,
    stdin: bytes = b"",
) -> Ended:
    """Run a command to its end or its limit; its output goes to stdout.txt and stderr.txt in `folder`, appended.

    Files and not pipes: a grandchild that outlives the child would keep a pipe open. Raises OSError where the command
    cannot be started, and Stopped where `stop_all` ended it.
    """
    (folder / "stdin.txt").write_bytes(stdin)
    places = [folder / name for name in ("stdin.txt", "stdout.txt", "stderr.txt")]
    with open(places[0], "rb") as given, open(places[1], "ab") as out, open(places[2], "ab") as err, _lock:
        if _stopping.is_set():
            raise Stopped
        started = time.monotonic()
        child = subprocess.Popen(
            command, cwd=cwd, env=environment, stdin=given, stdout=out, stderr=err, start_new_session=True
        )
        _running.add(child)
    is_late = threading.Event()
    timer = threading.Timer(timeout_seconds, _end_late, (child, is_late))
    timer.daemon = True
    timer.start()
    child.wait()  # without a limit of its own: Python would look only every 50 ms, and the time would be that wrong
    seconds = time.monotonic() - started
    timer.cancel()
    _kill(child)
    with _lock:
        _running.discard(child)
    if _stopping.is_set():
        raise Stopped
    return Ended(child.returncode, is_late.is_set(), seconds)


def _end_late(child: subprocess.Popen[bytes], is_late: threading.Event) -> None:
    is_late.set()
    _kill(child)


def stop_all() -> None:
    """End every child that runs, and let no other start."""
    _stopping.set()
    with _lock:
        running = list(_running)
    for child in running:
        _kill(child)


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill the child's process group, also where the child itself has ended: it may have left some of it behind."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    except (ProcessLookupError, PermissionError):  # macOS says the second of a group of zombies
        pass
