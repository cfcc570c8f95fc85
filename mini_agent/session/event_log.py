"""The event log: a file of JSON lines that only ever grows.

One line per event: {"v": 1, "seq": 7, "time": "2026-01-31T09:30:00.125Z", "type": …, fields of the event …}, plain
ASCII. A line is in the kernel's hands before anything acts on the event, so that a killed process loses nothing that
it showed. (A machine that loses power may lose the last lines: they are not synced to the disk one by one.)
"""

from __future__ import annotations

import errno
import json
import os
import stat
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable

from mini_agent.conversation.events import Event, event_from_json, event_to_json
from mini_agent.session.patient_file import OWNER_ONLY, SAFE_FLAGS, PatientFile

LOG_VERSION = 1
MASK = "[the API key, masked]"
SHORTEST_TELLING_PART = 16  # characters; many keys begin alike, as in sk-proj-


def now() -> datetime:
    """Return the time of day, in UTC."""
    return datetime.now(timezone.utc)


def format_time(time: datetime) -> str:
    """Return a time as the log writes it: UTC, milliseconds."""
    return time.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03d}Z"


def _parse_time(text: str) -> datetime:
    if not text.endswith("Z"):
        raise ValueError(f"{text!r} is no time in UTC")
    return datetime.fromisoformat(text[:-1] + "+00:00")


@dataclass(frozen=True)
class LogEntry:
    """One event with the number and the time that the log gave it."""

    seq: int  # 1, 2, 3 … without a gap
    time: datetime
    event: Event

    def to_line(self) -> str:
        """Return the entry as one line of the log, without its line break."""
        head = {"v": LOG_VERSION, "seq": self.seq, "time": format_time(self.time)}
        return json.dumps({**head, **event_to_json(self.event)}, ensure_ascii=True, separators=(",", ":"))


class DamagedLog(Exception):
    """A log has a line that cannot be read; the text names the file, the line and what is wrong."""


def read_log(path: Path) -> list[LogEntry]:
    """Return the entries of a log; a torn last line (a crash while it was written) is left out.

    Raises DamagedLog for damage anywhere else, OSError when the file cannot be read.
    """
    return _read(path)[0]


def _read(path: Path) -> tuple[list[LogEntry], int]:
    """Return the entries, and how many bytes of the file they take."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1  # a line without its line break is torn, however complete it looks
    lines = data[:whole].split(b"\n")[:-1]
    if not _is_torn_line(data[whole:]):
        lines.append(data[whole:])  # no work of ours: to be refused, and not cut off
    entries: list[LogEntry] = []
    for number, line in enumerate(lines, 1):
        try:
            entries.append(_parse_line(line, expected_seq=number))
        except (ValueError, RecursionError) as error:
            problem = f"{path}, line {number}: {error or type(error).__name__}"
            raise DamagedLog(f"{problem}; mend that line, or begin a new session") from error
    return entries, whole


def _is_torn_line(rest: bytes) -> bool:
    """Tell whether this is how one of our lines begins, or what a machine leaves that lost power: zeros."""
    head = b'{"v":%d,"seq":' % LOG_VERSION
    return rest[: len(head)] == head[: len(rest)] or not rest.strip(b"\0")


def _parse_line(line: bytes, expected_seq: int) -> LogEntry:
    data = json.loads(line.decode("utf-8"))
    if not isinstance(data, dict):
        raise ValueError("no JSON object")
    if data.get("v") != LOG_VERSION:
        raise ValueError(f"version {data.get('v')!r} of the log; this program reads version {LOG_VERSION}")
    if data.get("seq") != expected_seq:
        raise ValueError(f"number {data.get('seq')!r} where {expected_seq} should be: a line is missing or repeated")
    return LogEntry(expected_seq, _parse_time(str(data.get("time"))), event_from_json(data))


def _telling_parts(secret: str) -> list[str]:
    """Return the secret and its longer beginnings and ends, the longest first: a tool may have cut a line inside it."""
    lengths = range(len(secret), SHORTEST_TELLING_PART - 1, -1) or [len(secret)] * bool(secret)
    return [part for length in lengths for part in (secret[:length], secret[-length:])]


def _masked(value: Any, secrets: list[str]) -> Any:
    """Return a JSON value with the secrets masked in all of its texts."""
    if isinstance(value, str) and any(shortest in value for shortest in secrets[-2:]):
        for secret in secrets:
            value = value.replace(secret, MASK)
    elif isinstance(value, dict):
        return {_masked(name, secrets): _masked(item, secrets) for name, item in value.items()}
    elif isinstance(value, list):
        return [_masked(item, secrets) for item in value]
    return value


class EventLog:
    """Append events to one file.

    A file that cannot be written (full disk, lost permission) is no reason to lose the model's answer: see PatientFile.
    """

    def __init__(self, path: Path, *, secret: str = "", clock: Callable[[], datetime] = now) -> None:
        """Open the log at `path`, making it where there is none; cut off a torn last line; raise as `read_log` does.

        secret: is masked in every event, so that whoever reads events, the model among them, never meets it.
        """
        self.path = path
        self._secrets = _telling_parts(secret)
        self._clock = clock
        file = os.open(path, os.O_RDWR | os.O_CREAT | SAFE_FLAGS, OWNER_ONLY)
        try:
            self.entries, size_bytes = _read(path)  # the entries that were there when it was opened
            os.ftruncate(file, size_bytes)
        finally:
            os.close(file)
        self._next_seq = len(self.entries) + 1
        self._file = PatientFile(path, size_bytes)

    @property
    def failure(self) -> str | None:
        """Tell why the last lines could not be written; None when all are."""
        return self._file.failure

    def append(self, event: Event) -> LogEntry:
        """Number the event, time it, write its line; return the entry.

        The entry is read back from its line: what is acted on now is, to the letter, what a resume will find. An event
        that no line can hold raises ValueError and leaves the log as it was.
        """
        if self._secrets:
            event = event_from_json(_masked(event_to_json(event), self._secrets))
        line = LogEntry(self._next_seq, self._clock(), event).to_line()
        entry = _parse_line(line.encode("ascii"), self._next_seq)
        self._next_seq += 1
        self._file.append(line.encode("ascii") + b"\n")
        return entry

    def close(self) -> None:
        """Try once more to write what could not be written so far."""
        self._file.append(b"")
