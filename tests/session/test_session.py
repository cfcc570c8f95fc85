from __future__ import annotations

import hashlib
import os
import random
import shutil
import tempfile
import unittest
from pathlib import Path
from typing import Callable

from mini_agent.conversation.conversation import Conversation
from mini_agent.conversation.events import (
    KEPT_SUFFIX,
    TEMPORARY_PREFIX,
    AssistantMessageAdded,
    Event,
    FileChange,
    FilesChanged,
    FilesWillChange,
    Notice,
    ToolResultAdded,
    TurnEnded,
    UserMessageAdded,
)
from mini_agent.conversation.messages import AssistantMessage, ToolCall
from mini_agent.session.event_log import DamagedLog, EventLog, LogEntry, read_log
from mini_agent.session.session import Session, repair_after_crash
from tests import generated, scripted


class SessionTestCase(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.path = self.folder / "session.jsonl"

    def assertWhole(self, session: Session, message: object = None) -> None:
        """Check that every call has its one result, and that the log says what memory says."""
        self.assertEqual(generated.problem_of(session.conversation.visible_messages()), "", message)
        self.assertEqual(Session(EventLog(session.log.path)).conversation, session.conversation, message)


class Recording(SessionTestCase):
    def test_the_live_conversation_equals_the_replayed_one_at_every_event(self) -> None:
        for seed in generated.seeds(4, 200):
            self.path.unlink(missing_ok=True)
            session = scripted.open_session(self.path)
            for number, event in enumerate(generated.session(random.Random(seed), 40)):
                session.record(event)
                replayed = Conversation()
                for entry in read_log(self.path):
                    replayed.apply(entry.event)
                with self.subTest(seed=seed, event=number):
                    self.assertEqual(replayed, session.conversation)

    def test_a_listener_finds_the_event_on_disk_and_in_the_conversation(self) -> None:
        session = scripted.open_session(self.path)
        found = []

        def look(entry: LogEntry) -> None:
            found.append((read_log(self.path)[-1], session.conversation.turn_count))

        session.listen(look)
        session.record(UserMessageAdded("x"))
        self.assertEqual(found, [(read_log(self.path)[0], 1)])

    def test_an_event_that_cannot_follow_leaves_no_trace(self) -> None:
        session = scripted.open_session(self.path)
        heard: list[LogEntry] = []
        session.listen(heard.append)
        with self.assertRaises(ValueError):
            session.record(ToolResultAdded("a", "grep", "", False, ""))
        session.record(UserMessageAdded("x"))
        self.assertEqual(scripted.recorded(session), [UserMessageAdded("x")])
        self.assertEqual(len(heard), 1)

    def test_a_log_whose_events_do_not_follow_names_the_line(self) -> None:
        log = EventLog(self.path)
        for event in (UserMessageAdded("x"), ToolResultAdded("a", "grep", "", False, "")):
            log.append(event)
        with self.assertRaisesRegex(DamagedLog, r"session\.jsonl, line 2: .*'a'"):
            scripted.open_session(self.path)

    def test_a_log_changed_in_any_way_opens_or_is_refused_with_the_line(self) -> None:
        for seed in generated.seeds(15, 1000):
            rng = random.Random(seed)
            self.path.unlink(missing_ok=True)
            session = scripted.open_session(self.path)
            for event in generated.session(rng, 25):
                session.record(event)
            lines = self.path.read_bytes().splitlines(keepends=True)
            del lines[rng.randrange(len(lines))]
            renumbered = [b'{"v":1,"seq":%d,' % number + line.split(b",", 2)[2] for number, line in enumerate(lines, 1)]
            self.path.write_bytes(b"".join(renumbered))
            with self.subTest(seed=seed):
                try:
                    scripted.open_session(self.path)
                except DamagedLog as error:
                    self.assertRegex(str(error), r"line \d+: ")


class FailingListeners(SessionTestCase):
    def test_a_listener_that_fails_stops_nothing_and_is_told_once(self) -> None:
        session = scripted.open_session(self.path)
        heard: list[Event] = []

        def broken(entry: LogEntry) -> None:
            raise OSError("no paper")

        session.listen(broken)
        session.listen(lambda entry: heard.append(entry.event))
        for text in ("a", "b"):
            session.record(Notice(text))
        texts = [event.text for event in heard]  # type: ignore[union-attr]
        self.assertEqual([texts[0], texts[2]], ["a", "b"])
        self.assertRegex(texts[1], "broken failed: OSError: no paper")
        self.assertEqual(scripted.recorded(session), heard)

    @staticmethod
    def unreliable(heard: list[int], rng: random.Random) -> Callable[[LogEntry], None]:
        def listen(entry: LogEntry) -> None:
            heard.append(entry.seq)
            if rng.random() < 0.3:
                raise ValueError("now and then")

        return listen

    def test_every_listener_hears_every_entry_in_order_whoever_fails_when(self) -> None:
        for seed in generated.seeds(10, 300):
            rng = random.Random(seed)
            self.path.unlink(missing_ok=True)
            session = scripted.open_session(self.path)
            heard: list[list[int]] = [[] for _ in range(3)]

            for sequence in heard:
                session.listen(self.unreliable(sequence, rng))
            for number in range(5):
                session.record(Notice(str(number)))
            with self.subTest(seed=seed):
                self.assertEqual(heard, [[entry.seq for entry in read_log(self.path)]] * 3)


class LogsThatFail(SessionTestCase):
    def test_a_log_that_fails_is_told_once_and_again_when_it_is_whole(self) -> None:
        session = scripted.open_session(self.path)
        heard: list[Event] = []
        session.listen(lambda entry: heard.append(entry.event))
        session.record(UserMessageAdded("a"))
        away = self.path.rename(self.folder / "away")
        for text in ("b", "c"):
            session.record(Notice(text))
        away.rename(self.path)
        session.record(Notice("d"))
        kinds = [event.text.split(" (")[0] for event in heard]  # type: ignore[union-attr]
        broken, whole = "the session log cannot be written now", "the session log is whole again"
        self.assertEqual(kinds, ["a", "b", broken, "c", "d", whole])
        self.assertEqual(scripted.recorded(session), heard)
        self.assertWhole(session)


class Prefixes(SessionTestCase):
    def test_every_prefix_of_a_session_opens_is_repaired_and_goes_on(self) -> None:
        for seed in generated.seeds(2, 100):
            self.path.unlink(missing_ok=True)
            session = scripted.open_session(self.path)
            for event in generated.session(random.Random(seed), 40):
                session.record(event)
            lines = self.path.read_bytes().splitlines(keepends=True)
            for length in range(len(lines) + 1):
                self.path.write_bytes(b"".join(lines[:length]))
                with self.subTest(seed=seed, length=length):
                    self.go_on()

    def test_every_prefix_of_a_turn_of_the_real_loop_opens_is_repaired_and_goes_on(self) -> None:
        session = scripted.open_session(self.path)
        calls = (scripted.call("echo", text="x"), scripted.call("failing"), scripted.call("shorten"))
        steps = [scripted.said("I look.", *calls), scripted.said("", scripted.call("shorten")), scripted.said("Done.")]
        scripted.runner(session, steps).run_turn("do it")
        whole = self.path.read_bytes()
        for length in range(0, len(whole) + 1, 1 if generated.LONG else 97):
            self.path.write_bytes(whole[:length])
            with self.subTest(length=length):
                self.go_on()

    def go_on(self) -> None:
        session = scripted.open_session(self.path)
        repair_after_crash(session, self.folder)
        self.assertFalse(session.conversation.turn_is_open)
        self.assertEqual(session.conversation.files_in_flight, ())
        self.assertWhole(session)
        steps = [scripted.said("", scripted.call("echo", text="on")), scripted.said("It goes on.")]
        self.assertEqual(scripted.runner(session, steps).run_turn("go on").answer, "It goes on.")
        self.assertWhole(session)


def hash_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Repair(SessionTestCase):
    def crashed_in(self, *changes: FileChange, calls: str = "a", done: bool = False) -> Session:
        """Return the session of a run that ended while it wrote these files."""
        session = scripted.open_session(self.path)
        tool_calls = tuple(ToolCall(id, "apply_patch", "{}", {}) for id in calls)
        session.record(UserMessageAdded("x"))
        session.record(AssistantMessageAdded(AssistantMessage("", tool_calls), None, "", ""))
        if changes:
            session.record(FilesWillChange(changes))
        if done:
            session.record(FilesChanged(changes))
        return scripted.open_session(self.path)

    def results(self, session: Session) -> list[str]:
        return [event.text for event in scripted.recorded(session) if isinstance(event, ToolResultAdded)]

    def change(self, name: str, before: bytes | None, after: bytes | None, temporary: str = "") -> FileChange:
        hashes = (None if content is None else hash_of(content) for content in (before, after))
        return FileChange(name, *hashes, temporary)

    def test_the_call_that_may_have_begun_and_those_that_have_not_are_told_apart(self) -> None:
        session = self.crashed_in(calls="ab")
        repair_after_crash(session, self.folder)
        first, second = self.results(session)
        self.assertIn("look before you call it again", first)
        self.assertIn("not run", second)
        self.assertEqual(scripted.recorded(session)[-1].to_json()["kind"], "crash")

    def test_what_the_open_call_changed_before_is_told(self) -> None:
        session = self.crashed_in(self.change("a.py", None, b"new"), done=True)
        repair_after_crash(session, self.folder)
        self.assertIn("It had already changed a.py.", self.results(session)[0])

    def test_the_fate_of_each_file_in_flight_is_told_from_its_bytes(self) -> None:
        for name, content in (("made", b"new"), ("not made", b"old"), ("other", b"mine"), ("created", b"new")):
            (self.folder / name).write_bytes(content)
        session = self.crashed_in(
            self.change("made", b"old", b"new"), self.change("not made", b"old", b"new"),
            self.change("other", b"old", b"new"), self.change("created", None, b"new"),
            self.change("not created", None, b"new"), self.change("removed", b"old", None),
        )  # fmt: skip
        repair_after_crash(session, self.folder)
        text = self.results(session)[0]
        for fate in (
            "made: the change was made.", "not made: the change was not made.", "other: it is neither as it was",
            "created: the change was made.", "not created: the change was not made.", "removed: the change was made.",
        ):  # fmt: skip
            self.assertIn(fate, text)
        changed = [event for event in scripted.recorded(session) if isinstance(event, FilesChanged)]
        self.assertEqual([file.path for file in changed[0].files], ["made", "created", "removed"])

    def test_a_link_that_was_to_be_removed_is_told_by_where_it_points(self) -> None:
        os.symlink("a.py", self.folder / "link")
        session = self.crashed_in(self.change("link", b"a.py", None))
        repair_after_crash(session, self.folder)
        self.assertIn("link: the change was not made.", self.results(session)[0])

    def test_of_a_change_of_permissions_alone_nothing_is_guessed(self) -> None:
        (self.folder / "run.sh").write_bytes(b"old")
        session = self.crashed_in(self.change("run.sh", b"old", b"old"))
        repair_after_crash(session, self.folder)
        self.assertIn("run.sh: its bytes were to stay; whether its permissions", self.results(session)[0])

    def test_temporary_files_are_removed(self) -> None:
        (self.folder / "sub").mkdir()
        (self.folder / "sub" / "a.py").write_bytes(b"old")
        for name in (f"{TEMPORARY_PREFIX}1", f"{TEMPORARY_PREFIX}1{KEPT_SUFFIX}"):
            (self.folder / "sub" / name).write_bytes(b"half")
        session = self.crashed_in(self.change("sub/a.py", b"old", b"new", f"sub/{TEMPORARY_PREFIX}1"))
        repair_after_crash(session, self.folder)
        self.assertEqual([path.name for path in (self.folder / "sub").iterdir()], ["a.py"])

    def test_what_was_kept_of_a_file_that_is_neither_old_nor_new_stays(self) -> None:
        (self.folder / "a.py").write_bytes(b"another's")
        kept = self.folder / f"{TEMPORARY_PREFIX}1{KEPT_SUFFIX}"
        kept.write_bytes(b"old")
        repair_after_crash(self.crashed_in(self.change("a.py", b"old", b"new", f"{TEMPORARY_PREFIX}1")), self.folder)
        self.assertEqual(kept.read_bytes(), b"old")

    def test_a_log_from_elsewhere_can_name_no_other_file_for_removal(self) -> None:
        workspace = self.folder / "workspace"
        outside = self.folder / f"{TEMPORARY_PREFIX}outside"
        (workspace / "sub").mkdir(parents=True)
        outside.write_bytes(b"precious")
        (workspace / "link").symlink_to(self.folder)
        (workspace / "source.py").write_bytes(b"precious")
        (workspace / "sub" / f"{TEMPORARY_PREFIX}1").write_bytes(b"precious")
        (workspace / f"{TEMPORARY_PREFIX}folder").mkdir()
        targets = {
            f"../{TEMPORARY_PREFIX}outside": "../a", str(outside): str(self.folder / "a"), "source.py": "a",
            f"link/{TEMPORARY_PREFIX}outside": "link/a", f"sub/{TEMPORARY_PREFIX}1": "a",
            f"{TEMPORARY_PREFIX}folder": "a", f"{TEMPORARY_PREFIX}\0": "a", f"{TEMPORARY_PREFIX}\ud800": "a",
            f"{TEMPORARY_PREFIX}missing": "a", ".": "a", "": "a",
        }  # fmt: skip
        for path in (workspace / "a", self.folder / "a"):
            path.write_bytes(b"old")  # so that the fate of each is known
        session = self.crashed_in(*(self.change(path, b"old", b"new", name) for name, path in targets.items()))
        before = sorted(self.folder.rglob("*"))
        repair_after_crash(session, workspace)
        self.assertEqual(sorted(self.folder.rglob("*")), before)
        self.assertWhole(session)

    @unittest.skipUnless(os.name == "posix", "needs named pipes and links")
    def test_what_is_no_regular_file_now_is_neither_read_nor_followed(self) -> None:
        os.mkfifo(self.folder / "pipe")
        (self.folder / "link").symlink_to("target")
        (self.folder / "target").write_bytes(b"new")
        (self.folder / "loop").symlink_to("loop")
        (self.folder / "inner").mkdir()
        names = ("pipe", "link", "loop", "inner", "nul\0", "loop/a", "x" * 300)
        session = self.crashed_in(*(self.change(name, b"old", b"new") for name in names))
        repair_after_crash(session, self.folder)
        text = self.results(session)[0]
        for name in (*names[:4], "nul\\x00"):
            self.assertIn(f"{name}: it is neither as it was", text)
        self.assertNotIn("the change was made", text)
        self.assertWhole(session)

    def test_a_workspace_that_is_gone_is_no_obstacle(self) -> None:
        session = self.crashed_in(self.change("sub/a.py", b"old", b"new"))
        gone = self.folder / "gone"
        gone.mkdir()
        shutil.rmtree(gone)
        repair_after_crash(session, gone)
        self.assertWhole(session)

    def test_a_session_that_ended_well_is_left_as_it_is(self) -> None:
        session = scripted.open_session(self.path)
        session.record(UserMessageAdded("x"))
        session.record(TurnEnded("completed"))
        before = self.path.read_bytes()
        repair_after_crash(scripted.open_session(self.path), self.folder)
        self.assertEqual(self.path.read_bytes(), before)
