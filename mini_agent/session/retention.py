"""Old sessions go: the files of one that was last used over a calendar month ago are deleted at the next start."""

from __future__ import annotations

import calendar
import threading
from datetime import datetime

from mini_agent.session.session_files import SessionPlaces, last_used, stamps_in


def month_before(time: datetime) -> datetime:
    """Return the same time of the same day one month before, or of that month's last day where it is shorter."""
    year, month = (time.year, time.month - 1) if time.month > 1 else (time.year - 1, 12)
    return time.replace(year=year, month=month, day=min(time.day, calendar.monthrange(year, month)[1]))


def delete_old_sessions(places: SessionPlaces, keep_stamp: str, now: datetime) -> list[str]:
    """Delete the files of the sessions that were last used over one month before `now`; return their stamps.

    A session goes whole, by the youngest of its files, and never the one in use. Nothing else in the folders is
    touched: no name that is not `session-STAMP.jsonl`, `session-STAMP.md` or `log-STAMP.log`, no link, no folder.
    """
    deleted = []
    for stamp in sorted({stamp for base in places.bases for stamp in stamps_in(base)} - {keep_stamp}):
        files = places.files(stamp)
        if last_used(files) < month_before(now):
            deleted.append(stamp)
            for path in files.paths:
                try:
                    if not path.is_symlink():
                        path.unlink(missing_ok=True)
                except OSError:  # not ours to delete, or a folder: it stays
                    continue
    return deleted


def start_retention(places: SessionPlaces, keep_stamp: str) -> threading.Thread:
    """Delete old sessions in the background; the program does not wait for it, and may end in the middle of it."""
    thread = threading.Thread(
        target=delete_old_sessions, args=(places, keep_stamp, datetime.now()), name="retention", daemon=True
    )
    thread.start()
    return thread
