from __future__ import annotations

import os
import tempfile
import unittest
from datetime import datetime, timedelta
from pathlib import Path

from mini_agent.session.retention import delete_old_sessions, month_before, start_retention
from mini_agent.session.session_files import SessionFiles, SessionPlaces, new_session_files

NOW = datetime(2026, 3, 31, 12, 0, 0)
OLD = datetime(2026, 1, 5, 9, 0, 0)


class Months(unittest.TestCase):
    def test_a_month_before_is_the_same_day_or_the_last_of_a_shorter_month(self) -> None:
        for now, before in (
            ("2026-03-15", "2026-02-15"), ("2026-01-31", "2025-12-31"), ("2026-03-31", "2026-02-28"),
            ("2024-03-30", "2024-02-29"), ("2026-12-31", "2026-11-30"), ("2026-07-31", "2026-06-30"),
        ):  # fmt: skip
            with self.subTest(now):
                self.assertEqual(month_before(datetime.fromisoformat(now)), datetime.fromisoformat(before))


class Retention(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.workspace = Path(folder.name).resolve()
        base = Path(".mini_agent")
        self.places = SessionPlaces(self.workspace, base / "sessions" / "session.md", base / "logs" / "log.log")

    def session(self, start: datetime, used: datetime | None = None) -> SessionFiles:
        files = new_session_files(self.places, lambda: start)
        for path in files.paths:
            self.touch(path, used or start)
        return files

    def touch(self, path: Path, time: datetime) -> None:
        os.utime(path, (time.timestamp(), time.timestamp()))

    def delete(self, keep: str = "") -> list[str]:
        return delete_old_sessions(self.places, keep, NOW)

    def test_a_session_used_last_over_a_month_ago_goes_with_all_its_files(self) -> None:
        old, young = self.session(OLD), self.session(NOW - timedelta(days=2))
        self.assertEqual(self.delete(), [old.stamp])
        self.assertEqual([path.exists() for path in old.paths], [False] * 3)
        self.assertEqual([path.exists() for path in young.paths], [True] * 3)

    def test_the_limit_is_one_calendar_month_to_the_second(self) -> None:
        limit = datetime(2026, 2, 28, 12, 0, 0)
        at, before = self.session(OLD, limit), self.session(OLD, limit - timedelta(seconds=1))
        self.assertEqual(self.delete(), [before.stamp])
        self.assertTrue(at.log_path.exists())

    def test_an_old_session_used_again_lately_stays_whole(self) -> None:
        files = self.session(OLD)
        self.touch(files.log_path, NOW - timedelta(days=3))
        self.assertEqual(self.delete(), [])
        self.assertTrue(files.record_path.exists() and files.trace_path.exists())

    def test_a_file_time_before_the_stamp_does_not_make_a_session_old(self) -> None:
        self.session(NOW - timedelta(days=1), used=datetime(1999, 1, 1))
        self.assertEqual(self.delete(), [])

    def test_the_session_in_use_stays_however_old(self) -> None:
        files = self.session(OLD)
        self.assertEqual(self.delete(keep=files.stamp), [])

    def test_what_is_left_of_a_session_goes_too(self) -> None:
        files = self.session(OLD)
        files.log_path.unlink()
        self.assertEqual(self.delete(), [files.stamp])
        self.assertFalse(files.trace_path.exists() or files.record_path.exists())

    def test_nothing_else_in_the_folders_is_touched(self) -> None:
        self.session(OLD)
        folder = self.workspace / ".mini_agent" / "sessions"
        names = [
            "session-20260105-090000-000.txt", "session-20260105-090000-000.md.bak", "note.md", "session.md",
            "my-session-20260105-090000-000.md", "session-20260105-090000-00.md", "session-20261305-090000-000.md",
            "session-x.jsonl", "log-20260105-090000-000.log",
        ]  # fmt: skip
        for name in names:
            (folder / name).write_bytes(b"mine")
            self.touch(folder / name, OLD)
        (folder / "session-20250101-000000-000.md").mkdir()
        self.delete()
        self.assertEqual(
            sorted(path.name for path in folder.iterdir()), sorted([*names, "session-20250101-000000-000.md"])
        )
        self.assertTrue((self.workspace / ".mini_agent" / ".gitignore").exists())

    @unittest.skipUnless(os.name == "posix", "needs links")
    def test_a_link_is_left_and_so_is_what_it_leads_to(self) -> None:
        files = self.session(OLD)
        target = self.workspace / "target"
        target.write_bytes(b"mine")
        files.record_path.unlink()
        files.record_path.symlink_to(target)
        os.utime(files.record_path, (OLD.timestamp(), OLD.timestamp()), follow_symlinks=False)
        self.delete()
        self.assertTrue(files.record_path.is_symlink() and target.exists())
        self.assertFalse(files.log_path.exists())

    def test_it_runs_in_the_background_and_holds_nothing_up(self) -> None:
        files = self.session(OLD)
        thread = start_retention(self.places, "")
        self.assertTrue(thread.daemon)
        thread.join(timeout=30)
        self.assertFalse(files.log_path.exists())

    def test_without_any_folder_there_is_nothing_to_do(self) -> None:
        self.assertEqual(self.delete(), [])
