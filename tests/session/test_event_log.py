from __future__ import annotations

import json
import os
import random
import stat
import subprocess
import tempfile
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

from mini_agent.conversation.events import Event, Notice, UserMessageAdded
from mini_agent.session.event_log import (
    MASK,
    SHORTEST_TELLING_PART,
    DamagedLog,
    EventLog,
    LogEntry,
    format_time,
    read_log,
)
from tests import generated

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


class LogTestCase(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "session.jsonl"

    def write(self, *events: Event) -> bytes:
        log = EventLog(self.path)
        for event in events:
            log.append(event)
        return self.path.read_bytes()

    def texts(self) -> list[str]:
        return [entry.event.text for entry in read_log(self.path)]  # type: ignore[union-attr]


class Secrets(LogTestCase):
    SECRET = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"

    def masked(self, text: str) -> str:
        entry = EventLog(self.path, secret=self.SECRET).append(Notice(text))
        self.assertEqual(read_log(self.path)[-1], entry)
        self.path.unlink()
        return str(getattr(entry.event, "text", ""))

    def test_a_secret_is_masked_on_disk_and_in_what_is_acted_on(self) -> None:
        self.assertEqual(self.masked(f"a {self.SECRET} b"), f"a {MASK} b")

    def test_a_long_part_that_a_cut_left_of_it_is_masked_too(self) -> None:
        for length in range(SHORTEST_TELLING_PART, len(self.SECRET)):
            self.assertEqual(self.masked(f"a {self.SECRET[:length]}…"), f"a {MASK}…")
            self.assertEqual(self.masked(f"…{self.SECRET[-length:]} b"), f"…{MASK} b")

    def test_an_escape_before_a_secret_is_not_cut(self) -> None:
        self.SECRET = "next-0123456789abcdef"
        self.assertEqual(self.masked("\next-0123"), "\next-0123")
        self.assertEqual(self.masked(f"\n{self.SECRET}"), f"\n{MASK}")

    def test_how_many_secrets_begin_is_none(self) -> None:
        self.assertEqual(self.masked("keys begin with sk-proj-"), "keys begin with sk-proj-")

    def test_a_short_secret_is_masked_whole(self) -> None:
        self.SECRET = "hunter-22"
        self.assertEqual(self.masked("a hunter-22 b hunter-2"), f"a {MASK} b hunter-2")


class WritingAndReading(LogTestCase):
    def test_a_line_is_ascii_with_version_number_time_and_type_first(self) -> None:
        self.write(Notice("größer\n\ud800"))
        line = self.path.read_text(encoding="ascii")
        self.assertRegex(
            line, r'^{"v":1,"seq":1,"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","type":"notice",.*}\n$'
        )

    def test_what_append_returns_is_what_is_read_back(self) -> None:
        for seed in generated.seeds(10, 300):
            self.path.unlink(missing_ok=True)
            log = EventLog(self.path)
            entries = [log.append(event) for event in generated.session(random.Random(seed), 40)]
            with self.subTest(seed=seed):
                self.assertEqual(read_log(self.path), entries)
                self.assertEqual(EventLog(self.path).entries, entries)

    def test_two_halves_of_a_surrogate_pair_are_one_character_at_once_and_not_only_after_a_resume(self) -> None:
        entry = EventLog(self.path).append(Notice("\ud83d" + "\ude00"))
        self.assertEqual(entry.event, Notice("\U0001f600"))
        self.assertEqual(read_log(self.path), [entry])

    def test_an_event_that_no_line_can_hold_leaves_the_log_as_it_was(self) -> None:
        log = EventLog(self.path)
        log.append(Notice("first"))
        with self.assertRaises(ValueError):
            log.append(Notice(7))  # type: ignore[arg-type]
        log.append(Notice("second"))
        self.assertEqual(self.texts(), ["first", "second"])

    def test_the_file_is_for_the_users_eyes_only(self) -> None:
        self.write(Notice("x"))
        if os.name == "posix":
            self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)

    def test_a_log_opened_again_goes_on_with_the_next_number(self) -> None:
        self.write(Notice("a"))
        self.write(Notice("b"))
        self.assertEqual([entry.seq for entry in read_log(self.path)], [1, 2])


class TornLines(LogTestCase):
    def test_a_last_line_cut_at_any_byte_is_left_out_and_the_log_goes_on(self) -> None:
        whole = self.write(Notice("first"), UserMessageAdded("zweite 🙂"))
        first_line = whole.index(b"\n") + 1
        for cut in range(0 if generated.LONG else first_line - 1, len(whole)):
            self.path.write_bytes(whole[:cut])
            before = [Notice("first")] if cut >= first_line else []
            with self.subTest(cut=cut):
                self.assertEqual([entry.event for entry in read_log(self.path)], before)
                EventLog(self.path).append(Notice("after"))
                self.assertEqual([entry.event for entry in read_log(self.path)], [*before, Notice("after")])

    def test_zeros_at_the_end_as_after_a_power_cut_are_left_out(self) -> None:
        self.path.write_bytes(self.write(Notice("first")) + bytes(4096))
        self.write(Notice("after"))
        self.assertEqual(self.texts(), ["first", "after"])

    def test_a_file_that_is_no_log_is_refused_and_not_cut(self) -> None:
        for content in (
            b"a text without a line break",
            b"a text\n",
            b"{}",
            b'{"v":2,"seq":1',
            b"\xff\xfe",
            b'{"v":1}\n',
        ):
            self.path.write_bytes(content)
            with self.subTest(content=content), self.assertRaisesRegex(DamagedLog, "line 1"):
                EventLog(self.path)
            self.assertEqual(self.path.read_bytes(), content)

    def test_a_link_a_pipe_and_a_folder_are_no_log(self) -> None:
        if os.name != "posix":
            self.skipTest("needs links and named pipes")
        (self.folder / "target").write_bytes(b"")
        (self.folder / "link").symlink_to("target")
        os.mkfifo(self.folder / "pipe")
        (self.folder / "inner").mkdir()
        for name in ("link", "pipe", "inner"):
            with self.subTest(name), self.assertRaises(OSError):
                EventLog(self.folder / name)
        with self.assertRaises(OSError):
            read_log(self.folder / "pipe")


class Damage(LogTestCase):
    def test_damage_in_a_line_that_is_not_the_last_names_the_line(self) -> None:
        lines = self.write(*(Notice(str(number)) for number in range(5))).splitlines(keepends=True)
        damages = {
            "gone": b"", "empty": b"\n", "no JSON": b"{\n", "another type": b'{"v":1,"seq":3,"time":"x"}\n',
            "list": b"[]\n", "bytes": b"\xff\n", "newer": lines[2].replace(b'"v":1', b'"v":2'), "twice": lines[2] * 2,
            "deep": b"[" * 100_000 + b"\n", "unknown": lines[2].replace(b"notice", b"wonder"),
            "zeros": bytes(50) + b"\n",
        }  # fmt: skip
        for name, damage in damages.items():
            self.path.write_bytes(b"".join([*lines[:2], damage, *lines[3:]]))
            number = 4 if name == "twice" else 3
            with self.subTest(name), self.assertRaisesRegex(DamagedLog, rf"session\.jsonl, line {number}: \S"):
                read_log(self.path)

    def test_a_log_changed_in_any_way_is_read_or_refused_and_nothing_else(self) -> None:
        for seed in generated.seeds(15, 1000):
            rng = random.Random(seed)
            self.path.unlink(missing_ok=True)
            lines = self.write(*generated.session(rng, 12)).splitlines(keepends=True)
            number = rng.randrange(len(lines))
            data = json.loads(lines[number])
            data[rng.choice(list(data))] = generated.json_value(rng)
            lines[number] = json.dumps(data).encode("ascii") + b"\n"
            self.path.write_bytes(b"".join(lines))
            with self.subTest(seed=seed):
                try:
                    read_log(self.path)
                except DamagedLog as error:
                    self.assertIn(f"line {number + 1}:", str(error))


class LogsThatCannotBeWritten(LogTestCase):
    @contextmanager
    def file_size_limit(self, size_bytes: int) -> Iterator[None]:
        """Let no file grow beyond a size: the system then writes a part of a line and refuses the rest."""
        if resource is None:
            self.skipTest("needs limits on the size of files")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    def test_lines_that_could_not_be_written_come_in_order_when_they_can(self) -> None:
        size = len(self.write(Notice("0")))
        for room in range(0, 2 * size, 7):
            self.path.unlink()
            log = EventLog(self.path)
            with self.file_size_limit(room):
                for number in range(3):
                    log.append(Notice(str(number)))
                self.assertIsNotNone(log.failure)
                self.assertEqual(read_log(self.path), read_log(self.path)[: room // size])
            log.append(Notice("3"))
            with self.subTest(room=room):
                self.assertIsNone(log.failure)
                self.assertEqual(self.texts(), ["0", "1", "2", "3"])

    def test_closing_tries_once_more(self) -> None:
        log = EventLog(self.path)
        with self.file_size_limit(10):
            log.append(Notice("kept"))
        log.close()
        self.assertEqual((self.texts(), log.failure), (["kept"], None))

    def test_lines_of_another_program_are_not_written_over(self) -> None:
        log = EventLog(self.path)
        log.append(Notice("mine"))
        self.write(Notice("theirs"))
        log.append(Notice("mine too"))
        self.assertEqual(self.texts(), ["mine", "theirs"])
        self.assertIn("another program", log.failure or "")

    def test_a_log_that_was_deleted_is_told_and_not_begun_in_the_middle(self) -> None:
        log = EventLog(self.path)
        log.append(Notice("a"))
        self.path.unlink()
        log.append(Notice("b"))
        self.assertIsNotNone(log.failure)
        self.assertFalse(self.path.exists())


class AFullDisk(LogTestCase):
    def setUp(self) -> None:
        super().setUp()
        if not hasattr(os, "geteuid") or os.geteuid() != 0:
            self.skipTest("only root can mount a small disk")
        command = ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(self.folder)]
        try:
            mounted = subprocess.run(command, capture_output=True, check=False, timeout=20)
        except (OSError, subprocess.TimeoutExpired) as error:
            self.skipTest(f"cannot mount: {error}")
        if mounted.returncode:
            self.skipTest(f"cannot mount: {mounted.stderr.decode(errors='replace').strip()}")
        self.addCleanup(subprocess.run, ["umount", str(self.folder)], check=True, timeout=20)

    def test_a_log_on_a_full_disk_loses_nothing_once_there_is_room(self) -> None:
        ballast = self.folder / "ballast"
        ballast.write_bytes(bytes(24 * 1024))
        log = EventLog(self.path)
        for number in range(30):
            log.append(Notice(f"{number} {'x' * 500}"))
        self.assertIn("space", log.failure or "")
        written = [int(text.split()[0]) for text in self.texts()]
        self.assertEqual(written, list(range(len(written))))
        ballast.unlink()
        log.append(Notice("30 and there is room"))
        self.assertIsNone(log.failure)
        self.assertEqual([int(text.split()[0]) for text in self.texts()], list(range(31)))


class Times(unittest.TestCase):
    def test_a_time_is_written_in_utc_with_milliseconds(self) -> None:
        time = datetime(2026, 1, 31, 10, 30, 0, 125999, tzinfo=timezone(timedelta(hours=1)))
        self.assertEqual(format_time(time), "2026-01-31T09:30:00.125Z")
        self.assertIn('"time":"2026-01-31T09:30:00.125Z"', LogEntry(1, time, Notice("x")).to_line())
