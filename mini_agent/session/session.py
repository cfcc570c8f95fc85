"""The session: where every fact goes through, in one order.

Disk first, then the conversation, then whoever listens. What a person or a model has seen is therefore in the log,
whatever happens next.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Callable

from mini_agent.conversation.conversation import Conversation
from mini_agent.conversation.events import Event, FileChange, FilesChanged, Notice, ToolResultAdded, TurnEnded
from mini_agent.conversation.interrupts import uninterrupted
from mini_agent.session.event_log import DamagedLog, EventLog, LogEntry

Listener = Callable[[LogEntry], None]

INTERRUPTED_BY_END = "interrupted: the program ended before this call had a result"


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

    def record(self, event: Event) -> None:
        """Write the event to the log, fold it into the conversation, tell the listeners: in that order.

        A log that cannot be written, and a listener that fails, are told in one notice each and stop nothing.
        """
        with uninterrupted():
            entry = self.log.append(event)
            self.conversation.apply(event)
            for listener in self._listeners:
                self._tell(listener, entry)
            self._watch_log()

    def _tell(self, listener: Listener, entry: LogEntry) -> None:
        try:
            listener(entry)
        except Exception as error:  # a reader's fault must not end the turn that it reads
            if id(listener) not in self._failed_listeners:
                self._failed_listeners.add(id(listener))
                name = getattr(listener, "__qualname__", type(listener).__name__)
                self.record(Notice(f"{name} failed: {type(error).__name__}: {error}", "warn"))

    def _watch_log(self) -> None:
        if self.log.failure and not self._log_failure_told:
            self._log_failure_told = True
            self.record(Notice(f"the session log cannot be written now ({self.log.failure}): {self.log.path}", "warn"))
        elif not self.log.failure and self._log_failure_told:
            self._log_failure_told = False
            self.record(Notice("the session log is whole again"))


def repair_after_crash(session: Session, workspace: Path) -> None:
    """Record what a run that was cut off left open: files in flight, calls without a result, a turn without an end.

    Nothing is guessed: what became of a file is told from its bytes. Temporary files that were left are removed.
    """
    conversation = session.conversation
    fates = _settle_files(session, workspace)
    for call in conversation.open_calls:
        text = f"Error [interrupted]: {INTERRUPTED_BY_END}."
        changed = conversation.changed_by_open_call
        if fates:
            text += " " + " ".join(f"{path}: {fate}." for path, fate in fates.items())
            fates = {}
        elif changed:
            text += " " + f"It had changed {', '.join(changed)} already."
        else:
            text += " It may have done a part of its work: look before you call it again."
        session.record(ToolResultAdded(call.id, call.name, text, True, call.name))
    if conversation.turn_is_open:
        session.record(TurnEnded("interrupted", "crash", "the program ended in the middle of this turn"))


def _settle_files(session: Session, workspace: Path) -> dict[str, str]:
    """Record which of the files in flight did change; return what became of each, by path."""
    fates: dict[str, str] = {}
    changed: list[FileChange] = []
    for file in session.conversation.files_in_flight:
        if file.temporary_path:
            (workspace / file.temporary_path).unlink(missing_ok=True)
        found = _hash_of(workspace / file.path)
        if found == file.hash_after:
            fates[file.path] = "the change was made"
            changed.append(file)
        elif found == file.hash_before:
            fates[file.path] = "the change was not made"
        else:
            fates[file.path] = "it is neither as it was nor as it should be: someone else changed it"
    if fates:
        session.record(FilesChanged(tuple(changed)))
    return fates


def _hash_of(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None
