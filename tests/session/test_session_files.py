from __future__ import annotations

import os
import stat
import tempfile
import threading
import unittest
from datetime import datetime, timedelta
from pathlib import Path
from unittest import mock

from mini_agent.conversation.events import Notice, SessionStarted, UserMessageAdded
from mini_agent.session.event_log import EventLog
from mini_agent.session.session_files import (
    SessionFiles,
    SessionFilesError,
    SessionPlaces,
    find_session,
    last_used,
    list_sessions,
    make_stamp,
    new_session_files,
    stamp_time,
)

RECORD, TRACE = Path(".mini_agent/sessions/session.md"), Path(".mini_agent/logs/log.log")
START = datetime(2026, 1, 31, 9, 30, 0, 125_000)


class FilesTestCase(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.workspace = self.folder / "project"
        self.workspace.mkdir()
        self.places = SessionPlaces(self.workspace, RECORD, TRACE)

    def session(self, minute: int, request: str = "do it", last_used_minute: int | None = None) -> SessionFiles:
        """Make a session of that minute with one request."""
        start = START + timedelta(minutes=minute)
        files = new_session_files(self.places, lambda: start)
        log = EventLog(files.log_path)
        log.append(SessionStarted("", "", "", ""))
        if request:
            log.append(UserMessageAdded(request))
        used = (START + timedelta(minutes=minute if last_used_minute is None else last_used_minute)).timestamp()
        for path in files.paths:
            os.utime(path, (used, used))
        return files


class NewSessions(FilesTestCase):
    def test_the_files_bear_the_stamp_and_are_for_the_users_eyes_only(self) -> None:
        files = new_session_files(self.places, lambda: START)
        names = [path.relative_to(self.workspace).as_posix() for path in files.paths]
        self.assertEqual(
            names,
            [
                ".mini_agent/sessions/session-20260131-093000-125.jsonl",
                ".mini_agent/sessions/session-20260131-093000-125.md",
                ".mini_agent/logs/log-20260131-093000-125.log",
            ],
        )
        if os.name == "posix":
            self.assertEqual({stat.S_IMODE(path.stat().st_mode) for path in files.paths}, {0o600})

    def test_the_folder_keeps_itself_out_of_version_control(self) -> None:
        new_session_files(self.places)
        self.assertEqual((self.workspace / ".mini_agent" / ".gitignore").read_text(encoding="utf-8"), "*\n")

    def test_a_gitignore_that_is_there_is_left_alone(self) -> None:
        own = self.workspace / ".mini_agent" / ".gitignore"
        own.parent.mkdir()
        own.write_text("logs\n", encoding="utf-8")
        new_session_files(self.places)
        self.assertEqual(own.read_text(encoding="utf-8"), "logs\n")

    def test_a_gitignore_that_could_not_be_written_is_not_left_empty(self) -> None:
        try:
            import resource  # only POSIX has it
        except ImportError:
            self.skipTest("needs limits on the size of files")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
        try:
            with self.assertRaises(SessionFilesError):
                new_session_files(self.places)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        new_session_files(self.places)
        self.assertEqual((self.workspace / ".mini_agent" / ".gitignore").read_text(encoding="utf-8"), "*\n")

    def test_two_sessions_in_one_millisecond_do_not_share_a_file(self) -> None:
        found: list[SessionFiles] = []
        threads = [
            threading.Thread(target=lambda: found.append(new_session_files(self.places, lambda: START)))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len({path for files in found for path in files.paths}), 24)

    def test_a_stamp_of_which_any_file_is_left_is_not_taken_again(self) -> None:
        for index in range(3):
            before = new_session_files(self.places, lambda: START)
            for path in before.paths[:index] + before.paths[index + 1 :]:
                path.unlink()
            with self.subTest(left=before.paths[index].name):
                after = new_session_files(self.places, lambda: START)
                self.assertFalse(set(after.paths) & set(before.paths))
                self.assertEqual(sum(path.exists() for path in before.paths), 1)
                self.assertEqual(before.paths[index].read_bytes(), b"")

    def test_files_can_lie_elsewhere_and_no_gitignore_is_left_there(self) -> None:
        places = SessionPlaces(self.workspace, self.folder / "a" / "b.txt", Path("../c/d"))
        files = new_session_files(places, lambda: START)
        names = [path.relative_to(self.folder).as_posix() for path in files.paths]
        stamp = "20260131-093000-125"
        self.assertEqual(names, [f"a/b-{stamp}.jsonl", f"a/b-{stamp}.txt", f"c/d-{stamp}"])
        self.assertFalse(list(self.folder.rglob(".gitignore")))

    def test_record_log_and_trace_in_one_file_are_refused(self) -> None:
        for record, trace in (("x.jsonl", "y.log"), ("x.md", "x.md"), ("x.md", "x.jsonl")):
            with self.subTest(record=record, trace=trace), self.assertRaisesRegex(SessionFilesError, "share a file"):
                new_session_files(SessionPlaces(self.workspace, Path(record), Path(trace)))

    def test_a_place_that_cannot_be_made_is_one_clear_line(self) -> None:
        (self.workspace / "file").write_bytes(b"")
        for base in ("file/session.md", "/proc/nowhere/session.md" if os.path.isdir("/proc") else "file/x/session.md"):
            with (
                self.subTest(base),
                self.assertRaisesRegex(SessionFilesError, "MINI_AGENT_SESSION_RECORD_PATH") as caught,
            ):
                new_session_files(SessionPlaces(self.workspace, Path(base), TRACE))
            self.assertNotIn("\n", str(caught.exception))


@unittest.skipUnless(os.name == "posix", "needs links and owners")
class ForeignFolders(FilesTestCase):
    def test_a_link_in_the_place_of_any_folder_is_refused_and_nothing_lands_behind_it(self) -> None:
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        for name in (".mini_agent", ".mini_agent/sessions", ".mini_agent/logs"):
            link = self.workspace / name
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(elsewhere)
            with self.subTest(name), self.assertRaisesRegex(SessionFilesError, "is a link"):
                new_session_files(self.places)
            link.unlink()
            self.assertEqual(list(elsewhere.iterdir()), [])

    def test_a_link_is_refused_for_a_session_of_before_too(self) -> None:
        files = self.session(0)
        (self.workspace / ".mini_agent").rename(self.folder / "moved")
        (self.workspace / ".mini_agent").symlink_to(self.folder / "moved")
        with self.assertRaisesRegex(SessionFilesError, "is a link"):
            find_session(self.places, files.stamp)

    def test_a_gitignore_that_is_a_link_is_not_written_through(self) -> None:
        victim = self.folder / "victim"
        (self.workspace / ".mini_agent").mkdir()
        (self.workspace / ".mini_agent" / ".gitignore").symlink_to(victim)
        new_session_files(self.places)
        self.assertFalse(victim.exists())

    def test_a_file_in_the_place_of_a_folder_is_refused(self) -> None:
        (self.workspace / ".mini_agent").write_bytes(b"")
        with self.assertRaisesRegex(SessionFilesError, "is no folder"):
            new_session_files(self.places)

    def test_a_folder_of_another_user_is_refused(self) -> None:
        (self.workspace / ".mini_agent").mkdir()
        with (
            mock.patch("os.geteuid", return_value=os.geteuid() + 1),
            self.assertRaisesRegex(SessionFilesError, "another user"),
        ):
            new_session_files(self.places)


class FindingSessions(FilesTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.sessions = [self.session(minute) for minute in range(8)]

    def refused(self, name: str) -> str:
        with self.assertRaises(SessionFilesError) as caught:
            find_session(self.places, name)
        self.assertNotIn("\n", str(caught.exception))
        return str(caught.exception)

    def test_a_session_is_found_by_stamp_beginning_file_name_or_path(self) -> None:
        wanted = self.sessions[3]
        names = [
            wanted.stamp, "20260131-0933", "session-20260131-0933", wanted.log_path.name, wanted.record_path.name,
            str(wanted.log_path), str(wanted.record_path), os.path.relpath(wanted.record_path),
        ]  # fmt: skip
        for name in names:
            with self.subTest(name):
                self.assertEqual(find_session(self.places, name), wanted)

    def test_a_beginning_of_several_names_the_newest_of_them(self) -> None:
        text = self.refused("20260131-09")
        self.assertIn("8 sessions", text)
        self.assertIn(self.sessions[7].stamp, text)
        self.assertNotIn(self.sessions[2].stamp, text)
        self.assertIn("and 3 older ones", text)

    def test_a_name_of_none_names_those_there_are(self) -> None:
        for name in ("1999", "no-such", "./no-such.jsonl", "/", "..", "\0", "\ud800", "a\nb", "x" * 5000):
            with self.subTest(name[:20]):
                self.assertIn(self.sessions[7].stamp, self.refused(name))

    def test_without_a_name_it_is_the_one_used_last_in_which_something_was_asked(self) -> None:
        self.session(20, last_used_minute=20, request="")
        self.assertEqual(find_session(self.places), self.sessions[7])
        older = self.session(-5, last_used_minute=30)
        self.assertEqual(find_session(self.places), older)

    def test_without_any_session_it_says_so_and_leaves_no_folder(self) -> None:
        places = SessionPlaces(self.folder / "empty", RECORD, TRACE)
        places.workspace.mkdir()
        for name in ("", "2026", "./x.md"):
            with self.subTest(name), self.assertRaises(SessionFilesError):
                find_session(places, name)
        self.assertEqual(list(places.workspace.iterdir()), [])

    def test_a_log_that_was_taken_elsewhere_is_found_by_its_path(self) -> None:
        moved = self.folder / "kept as.jsonl"
        self.sessions[0].log_path.rename(moved)
        files = find_session(self.places, str(moved))
        self.assertEqual((files.log_path, files.record_path), (moved, self.folder / "kept as.md"))
        self.assertEqual(files.trace_path.parent, self.workspace / ".mini_agent" / "logs")

    def test_a_log_without_its_record_and_trace_is_found_all_the_same(self) -> None:
        self.sessions[2].record_path.unlink()
        self.sessions[2].trace_path.unlink()
        self.assertEqual(find_session(self.places, "20260131-0932"), self.sessions[2])

    def test_names_that_only_look_like_sessions_are_passed_by(self) -> None:
        folder = self.sessions[0].log_path.parent
        for name in ("session-20261331-093000-125", "session-2026", "other-20260131-094000-125", "session-"):
            (folder / f"{name}.jsonl").write_bytes(b"")
        (folder / "session-20260131-095000-125.jsonl").mkdir()
        if os.name == "posix":
            (folder / "session-20260131-095100-125.jsonl").symlink_to(self.sessions[0].log_path)
        self.assertEqual(len(list(list_sessions(self.places))), 8)


class ListsOfSessions(FilesTestCase):
    def test_the_one_used_last_comes_first_with_its_request_and_size(self) -> None:
        first = self.session(0, "Why\ndoes it fail?", last_used_minute=9)
        second = self.session(1, "Mend it.")
        found = list(list_sessions(self.places))
        self.assertEqual([each.files for each in found], [first, second])
        self.assertEqual([each.first_request for each in found], ["Why\ndoes it fail?", "Mend it."])
        self.assertEqual(found[0].size_bytes, first.log_path.stat().st_size)
        self.assertEqual(last_used(first), START + timedelta(minutes=9))

    def test_a_damaged_log_is_in_the_list(self) -> None:
        files = self.session(0)
        for content in (b"\xff\n", b'"type":"user_message_added"\n', b"[" * 5000 + b'"type":"user_message_added"\n'):
            files.log_path.write_bytes(content)
            with self.subTest(content=content[:20]):
                self.assertEqual([each.first_request for each in list_sessions(self.places)], [""])

    def test_a_request_is_not_looked_for_in_what_others_say(self) -> None:
        files = self.session(0, "")
        log = EventLog(files.log_path)
        log.append(Notice('"type":"user_message_added"'))
        log.append(UserMessageAdded("the real one"))
        self.assertEqual(next(list_sessions(self.places)).first_request, "the real one")

    def test_without_a_folder_the_list_is_empty(self) -> None:
        self.assertEqual(list(list_sessions(self.places)), [])


class Stamps(FilesTestCase):
    def test_a_stamp_tells_its_time_and_anything_else_tells_none(self) -> None:
        self.assertEqual(stamp_time(make_stamp(START)), START)
        for text in ("", "20260231-093000-125", "20260131-093000", "20260131-093000-1255", "２0260131-093000-125"):
            with self.subTest(text):
                self.assertIsNone(stamp_time(text))

    def test_a_session_is_never_older_than_its_stamp_and_no_file_time_is_too_odd(self) -> None:
        files = self.session(0)
        for seconds in (0, 1e15, -1e9):
            for path in files.paths:
                try:
                    os.utime(path, (seconds, seconds))
                except OSError:
                    continue
            with self.subTest(seconds=seconds):
                self.assertGreaterEqual(last_used(files), START)
