import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from mini_agent.agent.runner import TurnResult
from mini_agent.conversation.messages import Usage
from mini_agent.demo.demo import REQUEST, SAMPLE, copy_sample, run_demo, run_tests
from mini_agent.settings import Settings

SESSION = "session-20260131-093000-125"


class Turn:
    """Stands in for the turn; keeps what it was given."""

    def __init__(self, mends: bool, status: str = "completed") -> None:
        self.mends = mends
        self.status = status
        self.given: list[tuple[Settings, str]] = []

    def __call__(self, settings: Settings, request: str) -> TurnResult:
        self.given.append((settings, request))
        if self.mends:
            path = settings.workspace / "parcel/postage.py"
            path.write_text(path.read_text(encoding="utf-8").replace(" < ", " <= "), encoding="utf-8")
        sessions = settings.workspace / ".mini_agent/sessions"
        sessions.mkdir(parents=True)
        (sessions / f"{SESSION}.md").touch()
        (sessions / f"{SESSION}.jsonl").touch()
        return TurnResult(self.status, "done", "", "", 1, Usage(), 0.1)


class DemoTest(unittest.TestCase):
    """What the demonstration does around the turn."""

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name).resolve() / "new"
        cls.lines: list[str] = []
        cls.turn = Turn(mends=True)
        cls.status = run_demo(cls.turn, cls.lines.append, cls.folder)
        cls.output = "\n".join(cls.lines)

    def test_the_first_line_says_that_the_model_is_scripted_and_the_rest_real(self) -> None:
        self.assertRegex(self.lines[0], r"model is scripted \(no key, no network\).*real")

    def test_the_tests_fail_before_and_pass_after(self) -> None:
        before, after = self.output.split(REQUEST)
        self.assertRegex(before, r"AssertionError: 640 != 595\n(.*\n)*  Ran 8 tests.*\n  FAILED \(.*=1, .*=1\)")
        self.assertRegex(after, r"  Ran 8 tests.*\n  OK")
        self.assertEqual(self.status, 0)

    def test_the_turn_works_on_the_copy_with_the_scripted_model(self) -> None:
        [(settings, request)] = self.turn.given
        self.assertEqual(settings.workspace, self.folder)
        self.assertTrue(settings.script and settings.script.is_file())
        self.assertEqual(settings.api_key, "")
        self.assertEqual(request, REQUEST)

    def test_the_diff_and_the_places_of_record_and_log_are_shown(self) -> None:
        self.assertIn("\n  -        if weight_grams < band.up_to_grams:\n  +        if weight_grams <=", self.output)
        for suffix in (".md", ".jsonl"):
            self.assertIn(f" {self.folder}/.mini_agent/sessions/{SESSION}{suffix}\n", self.output)


class VerdictTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve() / "new"
        self.lines: list[str] = []

    def test_the_status_is_0_only_where_the_tests_pass_now_and_the_turn_was_completed(self) -> None:
        cases = ((True, "completed", 0), (False, "completed", 1), (True, "failed", 1), (False, "failed", 1))
        for number, (passed, turn_status, status) in enumerate(cases):
            with mock.patch("mini_agent.demo.demo.run_tests", side_effect=[False, passed]):
                turn = Turn(mends=False, status=turn_status)
                self.assertEqual(run_demo(turn, self.lines.append, self.folder / str(number)), status)

    def test_a_folder_that_cannot_be_written_is_told_in_one_line(self) -> None:
        turn = Turn(mends=True)
        self.assertEqual(run_demo(turn, self.lines.append, Path(os.devnull) / "new"), 1)
        self.assertEqual(turn.given, [])
        self.assertEqual(len(self.lines), 2)
        self.assertIn("TMPDIR", self.lines[1])

    def test_by_default_a_new_temporary_folder_is_made(self) -> None:
        self.folder.mkdir()
        with mock.patch.object(tempfile, "tempdir", str(self.folder)), mock.patch("mini_agent.demo.demo.run_tests"):
            run_demo(Turn(mends=False), self.lines.append)
        [made] = self.folder.iterdir()
        self.assertTrue((made / "parcel/postage.py").is_file())


class SampleTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.lines: list[str] = []

    def test_the_copy_holds_no_compiled_files_and_neither_do_its_tests_leave_any(self) -> None:
        source = self.folder / "source"
        (source / "__pycache__").mkdir(parents=True)
        for name in ("__pycache__/a.pyc", "a.py"):
            (source / name).touch()
        with mock.patch("mini_agent.demo.demo.SAMPLE", source):
            copy_sample(self.folder / "copy")
        self.assertEqual(os.listdir(self.folder / "copy"), ["a.py"])
        copy_sample(self.folder / "sample")
        run_tests(self.folder / "sample", self.lines.append)
        self.assertEqual(list((self.folder / "sample").rglob("__pycache__")), [])

    def test_the_copy_of_a_read_only_package_can_be_changed(self) -> None:
        source = self.folder / "source"
        (source / "deep").mkdir(parents=True)
        (source / "deep/a.py").touch()
        (source / "deep/a.py").chmod(0o444)
        (source / "deep").chmod(0o555)
        self.addCleanup((source / "deep").chmod, 0o755)
        with mock.patch("mini_agent.demo.demo.SAMPLE", source):
            copy_sample(self.folder / "copy")
        for path in (self.folder / "copy/deep", self.folder / "copy/deep/a.py"):
            self.assertTrue(path.stat().st_mode & 0o200, path)

    def test_its_tests_see_no_key_and_no_setting(self) -> None:
        tests = self.folder / "tests"
        tests.mkdir()
        tests.joinpath("test_environment.py").write_text(
            "import os, unittest\n"
            "class Case(unittest.TestCase):\n"
            "    def test_it(self):\n"
            "        kept_back = ('OPENAI_', 'MINI_AGENT_', 'PYTHONPATH')\n"
            "        self.assertEqual([name for name in os.environ if name.startswith(kept_back)], [])\n",
            encoding="utf-8",
        )
        secrets = {"OPENAI_API_KEY": "hunter2", "MINI_AGENT_SCRIPT": "x", "PYTHONPATH": "/nowhere"}
        with mock.patch.dict(os.environ, secrets):
            self.assertTrue(run_tests(self.folder, self.lines.append), self.lines)

    def test_tests_that_hang_are_stopped_and_count_as_failed(self) -> None:
        tests = self.folder / "tests"
        tests.mkdir()
        (tests / "test_hang.py").write_text("import time\ntime.sleep(60)\n", encoding="utf-8")
        started = time.monotonic()
        with mock.patch("mini_agent.demo.demo.TESTS_TIMEOUT_SECONDS", 0.5):
            self.assertFalse(run_tests(self.folder, self.lines.append))
        self.assertLess(time.monotonic() - started, 30)
        self.assertIn("could not be run", self.lines[-1])

    def test_its_tests_are_none_of_ours(self) -> None:
        self.assertFalse((SAMPLE / "__init__.py").exists())  # else a discovery from the top would enter it
        listing = subprocess.run(
            [sys.executable, "-B", "-c", "import unittest; print(unittest.TestLoader().discover('.'))"],
            cwd=SAMPLE.parent,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            check=True,
        )
        self.assertNotIn("PostageTest", listing.stdout)


if __name__ == "__main__":
    unittest.main()
