"""Invariant: a commit changes every file it names or none, whatever fails and whenever the process ends."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable
from unittest import mock

from mini_agent.conversation.events import Event, FilesChanged, FilesWillChange
from mini_agent.session.event_log import EventLog, read_log
from mini_agent.session.session import Session, repair_after_crash
from mini_agent.tools import all_or_nothing
from mini_agent.tools.tool_clock import TimeLimitExceeded, ToolClock
from mini_agent.tools.workspace import PlannedWrite, Workspace
from tests.tools.workspace_case import Snapshot, WorkspaceCase, snapshot

IS_POSIX = os.name == "posix"
SYSTEM_CALLS = ("open", "fsync", "chmod", "mkdir", "link", "rename", "replace", "unlink")


@contextmanager
def before_each_call(happen: Callable[[int], None]) -> Iterator[None]:
    """Call `happen` with 1, 2, 3 … before each system call by which a commit changes anything."""
    count = 0

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            happen(count)
            return function(*arguments, **named)

        return call

    fake = mock.Mock(wraps=os, path=os.path, O_WRONLY=os.O_WRONLY, O_CREAT=os.O_CREAT, O_EXCL=os.O_EXCL)
    for name in SYSTEM_CALLS:  # to wait for the disk takes long, and nothing here would show it
        setattr(fake, name, watched((lambda descriptor: None) if name == "fsync" else getattr(os, name)))
    with mock.patch.object(all_or_nothing, "os", fake):
        yield


def at(number: int, act: Callable[[], None]) -> Callable[[int], None]:
    """Return what `before_each_call` wants: `act` before one call only."""
    return lambda count: act() if count == number else None


def fail() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class CommitCase(WorkspaceCase):
    def setUp(self) -> None:
        super().setUp()
        self.write("a.txt", "old a\n").chmod(0o640)
        self.write("b.txt", "old b\n")
        self.write("gone.txt", "old gone\n")
        self.write("keep.txt", "untouched\n")
        self.before = snapshot(self.root)

    def several(self) -> list[PlannedWrite]:
        """Return a change of every kind: two files rewritten, one made, one made in new folders, one removed."""
        return [
            PlannedWrite(self.root / "a.txt", b"new a\n"),
            PlannedWrite(self.root / "gone.txt", None),
            PlannedWrite(self.root / "b.txt", b"new b\n", mode=0o755),
            PlannedWrite(self.root / "made.txt", b"made\n"),
            PlannedWrite(self.root / "new/deep/c.txt", b"new c\n"),
        ]

    def after(self) -> Snapshot:
        """Return how the folder looks when `several` went through."""
        umask = os.umask(0)
        os.umask(umask)
        made, made_folder = 0o666 & ~umask, 0o777 & ~umask
        expected = dict(self.before)
        del expected["gone.txt"]
        expected["a.txt"] = ("file", 0o640, b"new a\n")
        expected["b.txt"] = ("file", 0o755, b"new b\n")
        expected["made.txt"] = ("file", made, b"made\n")
        expected["new"] = expected["new/deep"] = ("folder", made_folder, b"")
        expected["new/deep/c.txt"] = ("file", made, b"new c\n")
        return expected

    def number_of_calls(self) -> int:
        """Return how many system calls `several` takes."""
        counted: list[int] = []
        with before_each_call(counted.append):
            self.workspace.commit(self.several())
        self.restore()
        self.assertGreater(len(counted), 15)
        return len(counted)

    def restore(self) -> None:
        shutil.rmtree(self.root)
        self.root.mkdir()
        for path, (_, mode, content) in self.before.items():
            self.write(path, content).chmod(mode)


@unittest.skipUnless(IS_POSIX, "permission bits as on POSIX")
class Commit(CommitCase):
    def test_every_kind_of_change_is_made(self) -> None:
        self.workspace.commit(self.several())
        self.assertEqual(snapshot(self.root), self.after())

    def test_it_is_announced_before_and_told_after_with_hashes(self) -> None:
        seen: list[tuple[Event, Snapshot]] = []
        Workspace(self.root, lambda event: seen.append((event, snapshot(self.root)))).commit(self.several())
        (first, before), (second, after) = seen
        assert isinstance(first, FilesWillChange) and isinstance(second, FilesChanged)
        self.assertEqual(before, self.before)
        self.assertEqual(after, self.after())
        self.assertEqual(first.files, second.files)
        for file in first.files:
            for found, there in ((file.hash_before, self.before), (file.hash_after, self.after())):
                content = there[file.path][2] if file.path in there else None
                self.assertEqual(found, content and hashlib.sha256(content).hexdigest(), file.path)
            self.assertEqual(Path(file.temporary_path).parent, Path(file.path).parent)

    def test_a_workspace_without_a_session_writes_too(self) -> None:
        Workspace(self.root).commit(self.several())
        self.assertEqual(snapshot(self.root), self.after())

    def test_a_new_file_gets_its_mode_less_the_umask(self) -> None:
        before = os.umask(0o077)
        self.addCleanup(os.umask, before)
        self.workspace.commit([PlannedWrite(self.root / "run.sh", b"", 0o755), PlannedWrite(self.root / "x", b"")])
        self.assertEqual(stat.S_IMODE((self.root / "run.sh").stat().st_mode), 0o700)
        self.assertEqual(stat.S_IMODE((self.root / "x").stat().st_mode), 0o600)

    @unittest.skipUnless(IS_POSIX and os.geteuid() == 0, "only root can give files away")
    def test_a_file_keeps_its_owner(self) -> None:
        os.chown(self.root / "a.txt", 12345, 54321)
        self.workspace.commit([PlannedWrite(self.root / "a.txt", b"x")])
        status = (self.root / "a.txt").stat()
        self.assertEqual((status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)), (12345, 54321, 0o640))

    def test_a_link_is_removed_and_what_it_leads_to_stays(self) -> None:
        (self.root / "link").symlink_to("a.txt")
        (self.root / "folder").symlink_to(".")
        for name in ("link", "folder"):
            self.workspace.commit([PlannedWrite(self.workspace.resolve(name, follow_last_link=False), None)])
        self.assertEqual(snapshot(self.root), self.before)

    def test_a_name_as_long_as_can_be_is_written(self) -> None:
        self.workspace.commit([PlannedWrite(self.root / ("x" * 255), b"1"), PlannedWrite(self.root / "a.txt", b"2")])
        self.assertEqual((self.root / ("x" * 255)).read_bytes(), b"1")

    def test_a_file_that_becomes_its_own_other_spelling_is_not_lost(self) -> None:
        # On a file system that ignores case, a.txt → A.txt is one file under two names; a hard link is so everywhere.
        os.link(self.root / "a.txt", self.root / "A.txt")
        calls: list[str] = []
        real_rename, real_replace = os.rename, os.replace
        with (
            mock.patch.object(os, "rename", lambda *names: (calls.append("remove"), real_rename(*names))),
            mock.patch("os.replace", lambda *names: (calls.append("write"), real_replace(*names))),
        ):
            self.workspace.commit([PlannedWrite(self.root / "A.txt", b"new"), PlannedWrite(self.root / "a.txt", None)])
        self.assertEqual(calls, ["remove", "write"])
        self.assertEqual((self.root / "A.txt").read_bytes(), b"new")

    def test_otherwise_a_file_is_written_at_its_new_place_before_the_old_one_goes(self) -> None:
        seen = []
        with before_each_call(lambda count: seen.append(snapshot(self.root))):
            self.workspace.commit(
                [PlannedWrite(self.root / "a.txt", None), PlannedWrite(self.root / "c.txt", b"old a\n")]
            )
        for state in seen:
            self.assertTrue("a.txt" in state or "c.txt" in state)


class Refusals(CommitCase):
    def check_refused(self, code: str, writes: list[PlannedWrite]) -> str:
        before = snapshot(self.root)
        text = self.refused(code, self.workspace.commit, writes)
        self.assertEqual(snapshot(self.root), before)
        return text

    def test_a_folder_in_the_way_stops_all(self) -> None:
        (self.root / "sub").mkdir()
        writes = [PlannedWrite(self.root / "a.txt", b"x"), PlannedWrite(self.root / "sub", b"x")]
        self.assertIn("folder", self.check_refused("write_failed", writes))
        self.check_refused("write_failed", [PlannedWrite(self.root / "sub", None)])
        self.check_refused("write_failed", [PlannedWrite(self.root, b"x")])

    def test_a_file_in_the_place_of_a_folder_stops_all(self) -> None:
        writes = [PlannedWrite(self.root / "a.txt", b"x"), PlannedWrite(self.root / "b.txt/c", b"x")]
        self.assertIn("b.txt/c", self.check_refused("write_failed", writes))

    def test_a_missing_file_is_not_removed(self) -> None:
        self.check_refused(
            "write_failed", [PlannedWrite(self.root / "a.txt", b"x"), PlannedWrite(self.root / "no", None)]
        )

    def test_a_protected_or_outside_path_is_not_written_even_if_it_was_never_resolved(self) -> None:
        for path in (self.root / ".env", self.root / ".git/hooks/x"):
            self.check_refused("protected_path", [PlannedWrite(path, b"x")])
        self.check_refused("outside_workspace", [PlannedWrite(self.outside / "secret.txt", b"x")])

    @unittest.skipUnless(IS_POSIX, "links and pipes as on POSIX")
    def test_a_folder_exchanged_for_a_link_that_leads_out_is_noticed(self) -> None:
        path = self.workspace.resolve("sub/secret.txt")
        (self.root / "sub").symlink_to(self.outside)
        self.check_refused("outside_workspace", [PlannedWrite(path, b"x")])
        self.assertEqual((self.outside / "secret.txt").read_bytes(), b"outside\n")

    @unittest.skipUnless(IS_POSIX, "links and pipes as on POSIX")
    def test_links_and_pipes_are_not_written_over(self) -> None:
        os.mkfifo(self.root / "pipe")
        (self.root / "link").symlink_to("a.txt")
        for name in ("pipe", "link"):
            self.check_refused("write_failed", [PlannedWrite(self.root / name, b"x")])

    def test_a_file_that_changed_since_it_was_read_is_left_alone(self) -> None:
        writes = [PlannedWrite(self.root / "b.txt", b"x"), PlannedWrite(self.root / "a.txt", b"x", expected=b"other")]
        self.assertIn("changed", self.check_refused("write_failed", writes))
        self.workspace.commit([PlannedWrite(self.root / "a.txt", b"x", expected=b"old a\n")])

    def test_a_file_that_changes_while_the_user_thinks_is_left_alone(self) -> None:
        def ask(question: str) -> bool:
            (self.root / "a.txt").write_bytes(b"edited meanwhile\n")
            return True

        writes = [PlannedWrite(self.root / "b.txt", b"x"), PlannedWrite(self.root / "a.txt", b"x")]
        self.refused("write_failed", Workspace(self.root, self.events.append, ask).commit, writes)
        self.assertEqual((self.root / "a.txt").read_bytes(), b"edited meanwhile\n")
        self.assertEqual((self.root / "b.txt").read_bytes(), b"old b\n")
        self.assertEqual(self.events[-1], FilesChanged(()))

    def test_a_file_that_comes_up_while_the_user_thinks_is_not_written_over(self) -> None:
        def ask(question: str) -> bool:
            (self.root / "new.txt").write_bytes(b"somebody's\n")
            return True

        workspace = Workspace(self.root, ask=ask)
        self.refused("write_failed", workspace.commit, [PlannedWrite(self.root / "new.txt", b"x")])
        self.assertEqual((self.root / "new.txt").read_bytes(), b"somebody's\n")


class Asking(CommitCase):
    def test_the_user_sees_the_diff_and_a_no_writes_nothing(self) -> None:
        questions: list[str] = []
        workspace = Workspace(self.root, self.events.append, lambda question: bool(questions.append(question)))
        self.refused("declined", workspace.commit, self.several())
        self.assertEqual(snapshot(self.root), self.before)
        self.assertEqual(self.events, [])
        lines = questions[0].split("\n")
        for line in ("--- a.txt", "-old a", "+new a", "+++ /dev/null", "--- /dev/null", "+++ new/deep/c.txt", "+new c"):
            self.assertIn(line, lines)
        self.assertIn("755", questions[0])
        self.assertIn("5 files", lines[-1])

    def test_a_yes_writes(self) -> None:
        Workspace(self.root, ask=lambda question: True).commit([PlannedWrite(self.root / "a.txt", b"x")])
        self.assertEqual((self.root / "a.txt").read_bytes(), b"x")

    def test_what_differs_shows_even_where_it_is_no_text_or_only_a_final_newline(self) -> None:
        questions: list[str] = []
        workspace = Workspace(self.root, ask=lambda question: bool(questions.append(question)))
        self.refused("declined", workspace.commit, [PlannedWrite(self.root / "a.txt", b"old a")])
        self.refused("declined", workspace.commit, [PlannedWrite(self.root / "a.txt", b"\xff\x00\n")])
        self.assertIn("\\ No newline at end of file", questions[0])
        self.assertIn("+\\xff", questions[1])


class Failures(CommitCase):
    def check_nothing_happened(self, context: object) -> None:
        self.assertEqual(snapshot(self.root), self.before, context)
        self.assertEqual(self.events[-1], FilesChanged(()), context)

    def test_each_system_call_that_fails_leaves_everything_as_it_was(self) -> None:
        for failing in range(1, self.number_of_calls() + 1):
            with self.subTest(call=failing), before_each_call(at(failing, fail)):
                try:
                    self.workspace.commit(self.several())
                except all_or_nothing.ToolError as error:
                    self.assertEqual(error.code, "write_failed")
                    self.assertIn("No space left", str(error))
                    self.check_nothing_happened(failing)
                else:  # a hard link that fails is a copy instead, and old content that cannot be removed lies about
                    found = snapshot(self.root)
                    self.assertEqual({path: found[path] for path in found if ".mini_agent" not in path}, self.after())
                    self.restore()

    def fail_at_the_last_rename(self) -> None:
        replaced: list[Path] = []
        real = os.replace

        def replace(source: Path, target: Path) -> None:
            replaced.append(target)
            if len(replaced) == 2:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            real(source, target)

        writes = [PlannedWrite(self.root / "a.txt", b"new a\n"), PlannedWrite(self.root / "b.txt", b"new b\n")]
        with mock.patch("os.replace", replace):
            self.refused("write_failed", self.workspace.commit, writes)
        self.check_nothing_happened("last rename")

    def test_a_failed_second_write_puts_the_very_first_file_back(self) -> None:
        number = (self.root / "a.txt").stat().st_ino
        self.fail_at_the_last_rename()
        self.assertEqual((self.root / "a.txt").stat().st_ino, number)

    def test_without_hard_links_it_puts_back_a_copy_with_the_same_permissions(self) -> None:
        with mock.patch("os.link", side_effect=OSError(errno.EPERM, "no hard links here")):
            self.fail_at_the_last_rename()

    def test_what_cannot_be_put_back_is_told_and_its_old_content_kept(self) -> None:
        renames = 0
        real = os.replace

        def replace(source: Path, target: Path) -> None:
            nonlocal renames
            renames += 1
            if renames > 1:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            real(source, target)

        with mock.patch("os.replace", replace):
            text = self.refused("write_failed", self.workspace.commit, self.several()[:3])
        self.assertIn("a.txt (its old content is in ", text)
        kept = self.root / text.split("its old content is in ")[1].split(" beside it)")[0]
        self.assertEqual(kept.read_bytes(), b"old a\n")
        told = self.events[-1]
        assert isinstance(told, FilesChanged)
        self.assertEqual([file.path for file in told.files], ["a.txt"])

    def test_a_full_disk_leaves_everything_as_it_was(self) -> None:
        small = self.root / "small"
        small.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(small)]
        try:
            mounted = subprocess.run(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=20
            ).returncode
        except OSError:
            mounted = 1
        if mounted:
            self.skipTest("a small file system cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", str(small)], timeout=20)
        (small / "a.txt").write_bytes(b"a" * 20_000)
        (small / "b.txt").write_bytes(b"b" * 20_000)
        self.before = snapshot(self.root)
        writes = [
            PlannedWrite(self.root / "a.txt", b"elsewhere, and written first"),
            PlannedWrite(small / "a.txt", b"A" * 20_000),
            PlannedWrite(small / "sub/b.txt", b"B" * 20_000),
        ]
        self.assertIn("No space left", self.refused("write_failed", self.workspace.commit, writes))
        self.check_nothing_happened("full disk")
        self.workspace.commit(writes[:2])
        self.assertEqual((small / "a.txt").read_bytes(), b"A" * 20_000)

    @unittest.skipIf(not IS_POSIX or os.geteuid() == 0, "root may write everywhere")
    def test_a_folder_without_permission_leaves_everything_as_it_was(self) -> None:
        self.write("closed/x.txt", "x")
        (self.root / "closed").chmod(0o500)
        self.addCleanup((self.root / "closed").chmod, 0o700)
        self.before = snapshot(self.root)
        writes = [PlannedWrite(self.root / "a.txt", b"x"), PlannedWrite(self.root / "closed/x.txt", b"y")]
        self.refused("write_failed", self.workspace.commit, writes)
        self.check_nothing_happened("permission")


@unittest.skipUnless(IS_POSIX and hasattr(os, "fork"), "signals and processes as on POSIX")
class Interruptions(CommitCase):
    def test_ctrl_c_at_any_moment_leaves_all_or_nothing(self) -> None:
        self.check_signal(signal.SIGINT, KeyboardInterrupt)

    def test_the_alarm_at_any_moment_leaves_all_or_nothing(self) -> None:
        with ToolClock().limit(1000):
            self.check_signal(signal.SIGALRM, TimeLimitExceeded)

    def check_signal(self, number: int, error: type[BaseException]) -> None:
        outcomes = set()
        for call in range(1, self.number_of_calls() + 1):
            with self.subTest(call=call), before_each_call(at(call, lambda: os.kill(os.getpid(), number))):
                with self.assertRaises(error):
                    self.workspace.commit(self.several())
                told = self.events[-1]
                assert isinstance(told, FilesChanged)
                outcomes.add(len(told.files))
                self.assertEqual(snapshot(self.root), self.after() if told.files else self.before)
            self.restore()
        self.assertEqual(outcomes, {0, 5})

    def test_a_kill_at_any_moment_leaves_whole_files_and_a_session_that_tells_them(self) -> None:
        fates = set()
        for call in range(1, self.number_of_calls() + 2):
            log = self.outside / f"log{call}.jsonl"
            self.commit_in_a_process(log, killed_at=call)
            session = Session(EventLog(log))
            repair_after_crash(session, self.root)
            session.log.close()
            told = [entry.event for entry in read_log(log)][-1]
            assert isinstance(told, FilesChanged)
            changed = {file.path for file in told.files}
            expected = {**self.before, **{path: self.after().get(path) for path in changed}}
            found = snapshot(self.root)
            with self.subTest(call=call, changed=changed):
                self.assertEqual([path for path in found if ".mini_agent" in path], [])
                for path in ("a.txt", "b.txt", "gone.txt", "made.txt", "new/deep/c.txt", "keep.txt"):
                    self.assertEqual(found.get(path), expected.get(path), path)
            fates.add(len(changed))
            self.restore()
        self.assertEqual(fates, {0, 1, 2, 3, 4, 5})

    def commit_in_a_process(self, log: Path, killed_at: int) -> None:
        """Commit in a process that is killed before its system call of that number."""
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            return
        try:
            workspace = Workspace(self.root, Session(EventLog(log)).record)
            with before_each_call(at(killed_at, lambda: os.kill(os.getpid(), signal.SIGKILL))):
                workspace.commit(self.several())
        finally:
            os._exit(0)


if __name__ == "__main__":
    unittest.main()
