"""The event log: a file of JSON lines that only ever grows.

One line per event: {"v": 1, "seq": 7, "time": "2026-01-31T09:30:00.125Z", "type": …, fields of the event …}, plain
ASCII. A line is in the kernel's hands before anything acts on the event, so that a killed process loses nothing that
it showed. (A machine that loses power may lose the last lines: they are not synced to the disk one by one.)
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Callable

from mini_agent.conversation.events import Event, event_from_json, event_to_json

LOG_VERSION = 1


def now() -> datetime:
    """Return the time of day, in UTC."""
    return datetime.now(timezone.utc)


def format_time(time: datetime) -> str:
    """Return a time as the log writes it: UTC, milliseconds."""
    return time.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03d}Z"


def _parse_time(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)


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
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1  # a line without its line break is torn, however complete it looks
    entries: list[LogEntry] = []
    for number, line in enumerate(data[:whole].split(b"\n")[:-1], 1):
        try:
            entries.append(_parse_line(line, expected_seq=number))
        except (ValueError, RecursionError) as error:
            raise DamagedLog(f"{path}, line {number}: {error or type(error).__name__}") from error
    return entries, whole


def _parse_line(line: bytes, expected_seq: int) -> LogEntry:
    data = json.loads(line.decode("utf-8"))
    if not isinstance(data, dict):
        raise ValueError("no JSON object")
    if data.get("v") != LOG_VERSION:
        raise ValueError(f"version {data.get('v')!r} of the log; this program reads version {LOG_VERSION}")
    if data.get("seq") != expected_seq:
        raise ValueError(f"number {data.get('seq')!r} where {expected_seq} should be: a line is missing or repeated")
    return LogEntry(expected_seq, _parse_time(str(data.get("time"))), event_from_json(data))


class EventLog:
    """Append events to one file.

    A file that cannot be written (full disk, lost permission) is no reason to lose the model's answer: lines that did
    not get out are kept and written, in order, by the next append that can; `failure` says why meanwhile.
    """

    def __init__(self, path: Path, *, clock: Callable[[], datetime] = now) -> None:
        """Open the log at `path`, making it where there is none; cut off a torn last line; raise as `read_log` does."""
        self.path = path
        self.failure: str | None = None
        self._clock = clock
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        try:
            self.entries, self._size = _read(path)  # the entries that were there when it was opened
            os.ftruncate(self._file, self._size)
        except BaseException:
            os.close(self._file)
            raise
        self._next_seq = len(self.entries) + 1
        self._pending = b""

    def append(self, event: Event) -> LogEntry:
        """Number the event, time it, write its line; return the entry."""
        entry = LogEntry(self._next_seq, self._clock(), event)
        self._next_seq += 1
        self._pending += entry.to_line().encode("ascii") + b"\n"
        try:
            self._write_pending()
            self.failure = None
        except OSError as error:
            self.failure = error.strerror or str(error)
        return entry

    def _write_pending(self) -> None:
        os.ftruncate(self._file, self._size)  # a half line of a write that failed goes first
        os.lseek(self._file, self._size, os.SEEK_SET)
        rest = memoryview(self._pending)
        while rest:
            rest = rest[os.write(self._file, rest) :]
        self._size += len(self._pending)
        self._pending = b""

    def close(self) -> None:
        """Close the file; lines that never got out are lost with it."""
        os.close(self._file)
