"""The session: where every fact goes through, in one order.

Disk first, then the conversation, then whoever listens. What a person or a model has seen is therefore in the log,
whatever happens next.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Callable

from mini_agent.conversation import events
from mini_agent.conversation.conversation import Conversation
from mini_agent.conversation.events import TEMPORARY_PREFIX, FileChange
from mini_agent.conversation.interrupts import uninterrupted
from mini_agent.conversation.safe_text import safe_line
from mini_agent.session.event_log import DamagedLog, EventLog, LogEntry
from mini_agent.session.patient_file import SAFE_FLAGS

Listener = Callable[[LogEntry], None]

_MADE = "the change was made"
_NOT_MADE = "the change was not made"
_NEITHER = "it is neither as it was nor as it should be: someone else has changed it"


class Session:
    """One event log, the conversation folded from it, and the listeners that follow it."""

    def __init__(self, log: EventLog) -> None:
        """Fold the entries that `log` was opened with; raise DamagedLog where they do not follow one another."""
        self.log = log
        self.conversation = Conversation()
        self._listeners: list[Listener] = []
        self._failed_listeners: set[int] = set()
        self._log_failure_told = False
        for entry in log.entries:
            try:
                self.conversation.apply(entry.event)
            except ValueError as error:
                raise DamagedLog(f"{log.path}, line {entry.seq}: {error}") from error

    def listen(self, listener: Listener) -> None:
        """Tell `listener` every entry from now on, after it is on disk and in the conversation."""
        self._listeners.append(listener)

    def record(self, event: events.Event) -> None:
        """Write the event to the log, fold it into the conversation, tell the listeners: in that order.

        A log that cannot be written, and a listener that fails, are told in one notice each and stop nothing. An event
        that cannot follow what went before raises ValueError and leaves no trace.
        """
        with uninterrupted():
            due = [event]
            for each in due:  # grows by the notices that recording it brings about: listeners get them after it
                due += self._record(each)

    def _record(self, event: events.Event) -> list[events.Event]:
        """Take in one event; return the notices that this gave cause to."""
        self.conversation.check(event)
        entry = self.log.append(event)
        self.conversation.apply(entry.event)
        notices = [self._tell(listener, entry) for listener in self._listeners]
        return [notice for notice in [*notices, self._log_notice()] if notice]

    def _tell(self, listener: Listener, entry: LogEntry) -> events.Notice | None:
        try:
            listener(entry)
        except Exception as error:  # a reader's fault must not end the turn that it reads
            if id(listener) not in self._failed_listeners:
                self._failed_listeners.add(id(listener))
                name = getattr(listener, "__qualname__", type(listener).__name__)
                return events.Notice(f"{name} failed: {type(error).__name__}: {error}", "warn")
        return None

    def _log_notice(self) -> events.Notice | None:
        if bool(self.log.failure) == self._log_failure_told:
            return None
        self._log_failure_told = not self._log_failure_told
        if self.log.failure:
            return events.Notice(f"the session log cannot be written now ({self.log.failure}): {self.log.path}", "warn")
        return events.Notice("the session log is whole again")


def repair_after_crash(session: Session, workspace: Path) -> None:
    """Record what a run that was cut off left open: files in flight, calls without a result, a turn without an end.

    Nothing is guessed: what became of a file is told from its bytes. Temporary files that were left are removed.
    """
    conversation = session.conversation
    what_is_known = _settle_files(session, workspace)
    if not what_is_known and conversation.changed_by_open_call:
        what_is_known = f"It had already changed {', '.join(conversation.changed_by_open_call)}."
    what_is_known = what_is_known or "It may have done a part of its work: look before you call it again."
    text = f"Error [interrupted]: the program ended before this call had a result. {what_is_known}"
    for call in conversation.open_calls:
        session.record(events.ToolResultAdded(call.id, call.name, text, True, f"{call.name} (interrupted)"))
        # calls run one after the other: only the first that is open can have begun
        text = "Error [interrupted]: not run: the program ended before this call began."
    if conversation.turn_is_open:
        session.record(events.TurnEnded("interrupted", "crash", "the program ended in the middle of this turn"))


def _settle_files(session: Session, workspace: Path) -> str:
    """Record which of the files in flight did change; return what became of each, in sentences."""
    files = session.conversation.files_in_flight
    if not files:
        return ""
    root = Path(os.path.realpath(workspace))
    fates = {file: _fate(root, file) for file in files}
    for file, fate in fates.items():
        if fate in (_MADE, _NOT_MADE):  # else what was kept aside may be the only copy left
            _remove_leftovers(root, file)
    session.record(events.FilesChanged(tuple(file for file, fate in fates.items() if fate == _MADE)))
    return " ".join(f"{safe_line(file.path)}: {fate}." for file, fate in fates.items())


def _fate(root: Path, file: FileChange) -> str:
    """Tell from the bytes of a file what became of its change."""
    if file.hash_before == file.hash_after:
        return "its bytes were to stay; whether its permissions were changed is not known"
    path = _inside(root, file.path)
    try:
        found = _hash_of(path) if path else ""
    except OSError as error:
        return f"it cannot be read now ({error.strerror}), so nothing is known of it"
    return {file.hash_before: _NOT_MADE, file.hash_after: _MADE}.get(found, _NEITHER)


def _remove_leftovers(root: Path, file: FileChange) -> None:
    """Remove the new bytes that did not come into place, and the old ones kept aside, if they can be nothing else.

    The log may come with a project that a stranger wrote: it must not be able to name any other file for removal.
    """
    for relative in file.leftover_paths:
        path = _inside(root, relative)
        if path is None or path.parent != root / Path(file.path).parent or not path.name.startswith(TEMPORARY_PREFIX):
            continue
        try:
            if stat.S_ISREG(path.lstat().st_mode):
                path.unlink()
        except OSError:
            continue  # it was renamed into place, or never made


def _inside(root: Path, relative: str) -> Path | None:
    """Return the path of a file of the workspace; None where its folder is outside, or reached through a link."""
    path = root / relative
    try:
        if b"\0" in os.fsencode(relative) or root not in path.parents:
            return None
    except UnicodeEncodeError:  # no file can have such a name
        return None
    return path if os.path.realpath(path.parent) == str(path.parent) else None


def _hash_of(path: Path) -> str | None:
    """Return the SHA-256 of a file or of where a link points, None for nothing there, "" for anything else."""
    try:
        kind = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(kind):
        return hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest()
    if not stat.S_ISREG(kind):
        return ""
    digest = hashlib.sha256()
    with open(os.open(path, os.O_RDONLY | SAFE_FLAGS), "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
