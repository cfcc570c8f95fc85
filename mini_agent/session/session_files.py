"""Where the files of a session lie, how a session is found again, and the checks on the folders in between.

A session has a stamp, the local time of its start: 20260131-093000-125. Its three files carry it in their names:

    .mini_agent/                            its .gitignore keeps all of it out of version control
        sessions/session-STAMP.jsonl        the event log: what a resume reads
        sessions/session-STAMP.md           the record, for people
        logs/log-STAMP.log                  the trace

Two settings, the base paths `…/session.md` and `…/log.log`, may put them elsewhere.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Callable

from mini_agent.session.patient_file import OWNER_ONLY, SAFE_FLAGS

OWN_FOLDER = ".mini_agent"
_STAMP_LENGTH = 19
_CANDIDATES_SHOWN = 5
_FAR_FUTURE_SECONDS = 1e11  # a file time beyond it has no date
_WAY_OUT = "put that right, or set MINI_AGENT_SESSION_RECORD_PATH and MINI_AGENT_TRACE_LOG_PATH to other files"


class SessionFilesError(Exception):
    """A session that cannot be found, or a place that cannot be used: one line that says what to do."""


@dataclass(frozen=True)
class SessionFiles:
    """The files of one session."""

    stamp: str
    log_path: Path
    record_path: Path
    trace_path: Path

    @property
    def paths(self) -> tuple[Path, Path, Path]:
        """Return all three."""
        return self.log_path, self.record_path, self.trace_path


@dataclass(frozen=True)
class SessionSummary:
    """What a list of sessions says about one."""

    files: SessionFiles
    size_bytes: int  # of the log
    first_request: str  # "" where nothing was asked yet


@dataclass(frozen=True)
class SessionPlaces:
    """Where the sessions of one workspace lie."""

    workspace: Path
    record_base: Path  # …/session.md: the stamp goes before the suffix; from the workspace where relative
    trace_base: Path  # …/log.log: likewise

    @property
    def bases(self) -> tuple[Path, Path, Path]:
        """Return the absolute paths of log, record and trace, without a stamp yet."""
        record = Path(os.path.normpath(self.workspace / self.record_base))
        return record.with_suffix(".jsonl"), record, Path(os.path.normpath(self.workspace / self.trace_base))

    def files(self, stamp: str) -> SessionFiles:
        """Return the files of the session with this stamp; raise SessionFilesError where two would be one file."""
        if len(set(self.bases)) < 3:
            raise SessionFilesError(f"record, log and trace would share a file: {self.bases[1]}; name another")
        return SessionFiles(stamp, *(base.with_name(f"{base.stem}-{stamp}{base.suffix}") for base in self.bases))

    def stamps(self) -> list[str]:
        """Return the stamps of the sessions of before that have a log, oldest first."""
        return sorted(stamps_in(self.bases[0]))


# ------------------------------------------------------------------------------------------------------------ stamps


def make_stamp(time: datetime) -> str:
    """Return the stamp for a time."""
    return f"{time:%Y%m%d-%H%M%S}-{time.microsecond // 1000:03d}"


def stamp_time(stamp: str) -> datetime | None:
    """Return the time that a stamp tells, in local time; None for what is no stamp."""
    try:
        time = datetime.strptime(stamp, "%Y%m%d-%H%M%S-%f")
    except ValueError:
        return None
    return time if make_stamp(time) == stamp else None  # strptime takes digits of any script and fewer of them too


def stamps_in(base: Path) -> Iterator[str]:
    """Yield the stamps of the regular files beside `base` that are named after it; nothing where there is no folder."""
    try:
        entries = list(os.scandir(base.parent))
    except OSError:
        return
    head, tail = f"{base.stem}-", base.suffix
    for entry in entries:
        stamp = entry.name[len(head) : len(entry.name) - len(tail)]
        named = entry.name == f"{head}{stamp}{tail}" and stamp_time(stamp)
        if named and entry.is_file(follow_symlinks=False):
            yield stamp


# ------------------------------------------------------------------------------------------------------ a new session


def new_session_files(places: SessionPlaces, clock: Callable[[], datetime] = datetime.now) -> SessionFiles:
    """Make the files of a new session, empty, for the user's eyes only; raise SessionFilesError where that fails.

    Each is made only if there is none: of two sessions that start in one millisecond, one takes the next.
    """
    prepare_folders(places)
    time = clock()
    for _ in range(1000):
        files = places.files(make_stamp(time))
        if not any(map(os.path.lexists, files.paths)) and _make_all(files):
            return files
        time += timedelta(milliseconds=1)
    raise SessionFilesError(f"no free name for a session in {files.record_path.parent}")


def _make_all(files: SessionFiles) -> bool:
    """Make the files; tell whether this was the only session to make them."""
    try:
        for path in files.paths:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE_FLAGS, OWNER_ONLY))
    except FileExistsError:
        return False
    except OSError as error:
        raise _cannot_make(path, error) from error
    return True


def _cannot_make(path: Path, error: OSError) -> SessionFilesError:
    return SessionFilesError(f"cannot make {path}: {error.strerror}; {_WAY_OUT}")


def prepare_folders(places: SessionPlaces) -> None:
    """Make the folders for record, log and trace; raise SessionFilesError where one is not the user's own.

    Below the workspace each of them must be a real folder that belongs to the user: a project that a stranger wrote
    must not be able to bring a link along and have our files land elsewhere.
    """
    for folder in {base.parent: None for base in places.bases}:
        try:
            if places.workspace in folder.parents:
                _prepare_below(places.workspace, folder)
            else:
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _cannot_make(folder, error) from error


def _prepare_below(workspace: Path, folder: Path) -> None:
    path = workspace
    for name in folder.relative_to(workspace).parts:
        path /= name
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            _check_own(path)
        if path == workspace / OWN_FOLDER:
            _write_gitignore(path)


def _check_own(folder: Path) -> None:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        kind = "a link" if stat.S_ISLNK(status.st_mode) else "no folder"
        raise SessionFilesError(f"{folder} is {kind}, and not a folder of your own; {_WAY_OUT}")
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        raise SessionFilesError(f"{folder} belongs to another user (number {status.st_uid}); {_WAY_OUT}")


def _write_gitignore(folder: Path) -> None:
    path = folder / ".gitignore"
    try:
        with open(path, "x", encoding="ascii", errors="strict") as file:
            file.write("*\n")
    except FileExistsError:
        pass
    except OSError:
        path.unlink(missing_ok=True)  # an empty one would stand in the way of the right one for good
        raise


# ------------------------------------------------------------------------------------------------- a session of before


def list_sessions(places: SessionPlaces) -> Iterator[SessionSummary]:
    """Yield the sessions of the workspace, the one used last first."""
    sessions = map(places.files, places.stamps())
    for files in sorted(sessions, key=lambda files: (last_used(files), files.stamp), reverse=True):
        try:
            yield SessionSummary(files, files.log_path.stat().st_size, _first_request(files.log_path))
        except OSError:  # deleted at this moment, or not ours to read
            continue


def last_used(files: SessionFiles) -> datetime:
    """Return when a session was last written to, in local time: the time of its newest file, not before its start."""
    seconds = [0.0]
    for path in files.paths:
        try:
            seconds.append(min(path.lstat().st_mtime, _FAR_FUTURE_SECONDS))
        except OSError:  # this one is missing
            continue
    newest = datetime.fromtimestamp(max(seconds))
    return max(newest, stamp_time(files.stamp) or newest)


def _first_request(log_path: Path) -> str:
    """Return the user's first message; "" where there is none, or the log is damaged before it."""
    with open(log_path, "rb") as file:
        for line in file:
            if b'"type":"user_message_added"' in line:
                try:
                    return str(json.loads(line)["text"])
                except (ValueError, KeyError, RecursionError):
                    return ""
    return ""


def find_session(places: SessionPlaces, name: str = "") -> SessionFiles:
    """Return the files of a session of before; raise SessionFilesError, with candidates, where it is not clear which.

    name: a path to a log or a record; or a stamp, or the beginning of just one; "": the session used last.
    """
    log_path = Path(name).parent / f"{Path(name).stem}.jsonl"
    if not name:
        files = _last_session(places)
    elif os.path.isfile(log_path):
        files = _session_at(places, log_path)
    else:
        files = _session_beginning(places, name)
    prepare_folders(places)
    return files


def _last_session(places: SessionPlaces) -> SessionFiles:
    for summary in list_sessions(places):
        if summary.first_request:
            return summary.files
    raise SessionFilesError(f"there is no session to resume in {places.bases[0].parent} yet")


def _session_at(places: SessionPlaces, log_path: Path) -> SessionFiles:
    log_path = Path(os.path.realpath(log_path))  # a link is followed where a person named it
    stamp = log_path.stem[-_STAMP_LENGTH:]
    record_path = log_path.with_suffix(places.record_base.suffix)
    return SessionFiles(stamp, log_path, record_path, places.files(stamp).trace_path)


def _session_beginning(places: SessionPlaces, name: str) -> SessionFiles:
    stamps, stem, head = places.stamps(), Path(name).stem, f"{places.record_base.stem}-"
    beginning = stem[len(head) :] if stem.startswith(head) else stem or name
    found = [stamp for stamp in stamps if stamp.startswith(beginning)]
    if len(found) == 1:
        return places.files(found[0])
    problem = f"{len(found)} sessions begin with {name!r}" if found else f"no session begins with {name!r}"
    raise SessionFilesError(f"{problem}; {_candidates(found or stamps)}")


def _candidates(stamps: list[str]) -> str:
    if not stamps:
        return "there are none yet"
    newest = stamps[: -_CANDIDATES_SHOWN - 1 : -1]
    more = f" and {len(stamps) - len(newest)} older ones" if len(stamps) > len(newest) else ""
    return f"there are {', '.join(newest)}{more}"
