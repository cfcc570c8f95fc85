import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

from mini_agent.conversation.messages import ToolCall
from mini_agent.tools import grep as grep_module
from mini_agent.tools.grep import MATCH_LIMIT, GrepTool, grep
from mini_agent.tools.tool import ToolError
from mini_agent.tools.tool_clock import TimeLimitExceeded, ToolClock
from mini_agent.tools.toolbox import Toolbox
from mini_agent.tools.workspace import Workspace

ENDLESS = r"(a+)+$"
STUCK_ON = "a" * 45 + "b"


class WorkspaceCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve() / "project"
        self.root.mkdir()
        self.workspace = Workspace(self.root)

    def write(self, path, content):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))

    def grep(self, pattern, **options):
        return grep(pattern, self.workspace, **options)

    def assert_refused(self, code, pattern, **options):
        with self.assertRaises(ToolError) as caught:
            self.grep(pattern, **options)
        self.assertEqual(caught.exception.code, code)
        return str(caught.exception)

    def use(self, **constants):
        """Give constants of the module other values until the test ends."""
        patch = mock.patch.multiple(grep_module, **constants)
        patch.start()
        self.addCleanup(patch.stop)

    def children(self):
        """Collect every child that is started from now on."""
        started = []

        class Watched(subprocess.Popen):
            def __init__(self, *arguments, **options):
                super().__init__(*arguments, **options)
                started.append(self)

        patch = mock.patch.object(subprocess, "Popen", Watched)
        patch.start()
        self.addCleanup(patch.stop)
        return started


class LinesTest(WorkspaceCase):
    def test_matches_are_shown_with_path_number_and_text_in_the_order_of_the_paths(self):
        self.write("b.py", "one\n  two needle \nthree\n")
        self.write("a/z.py", "needle\nno\nneedles\n")
        self.write("a.py", "a needle\n")
        self.assertEqual(
            self.grep("needle"), "a.py:1:a needle\na/z.py:1:needle\na/z.py:3:needles\nb.py:2:  two needle "
        )

    def test_a_line_ends_at_a_line_feed_and_nowhere_else(self):
        self.write("a.txt", "\ufefffirst\r\nx\x0cfirst\u2028y\rz\nlast")
        self.assertEqual(self.grep("^first$|y\rz$|^last$"), "a.txt:1:first\na.txt:2:x\x0cfirst\u2028y\rz\na.txt:3:last")

    def test_undecodable_bytes_do_not_hide_a_match(self):
        self.write("latin.txt", "caf\xe9 needle\n".encode("latin-1"))
        self.write("half.txt", b"\xe2\x82\nneedle\n")
        text = self.grep("needle")
        self.assertEqual(text, "half.txt:2:needle\nlatin.txt:1:caf\ufffd needle")
        text.encode("utf-8")

    def test_what_was_shown_for_an_undecodable_byte_is_found_again(self):
        self.write("latin.txt", "caf\xe9 needle\n".encode("latin-1"))
        self.assertEqual(self.grep("caf\ufffd needle"), "latin.txt:1:caf\ufffd needle")

    def test_of_a_long_line_300_characters_around_the_match_are_shown_as_they_are(self):
        line = "".join(f"{number:06}," for number in range(1000))
        self.write("long.txt", line + "\n")
        for pattern in ("000000", "000500", "000999"):
            shown, note = re.fullmatch(r"long\.txt:1:(.*) (\[.*\])", self.grep(pattern)).groups()
            self.assertEqual(len(shown), 300)
            self.assertIn(pattern, shown)
            if pattern == "000500":
                self.assertEqual(shown.index(pattern), 100)
            first, last, length = map(int, re.findall(r"\d+", note))
            self.assertEqual((line[first - 1 : last], length), (shown, len(line)))

    def test_exactly_50_matches_bear_no_note_and_one_more_does(self):
        self.write("a.txt", "needle\n" * MATCH_LIMIT)
        self.assertEqual(self.grep("needle").count("\n"), MATCH_LIMIT - 1)
        self.write("b.txt", "needle\n")
        lines = self.grep("needle").split("\n")
        self.assertEqual([line for line in lines if "needle" in line], lines[:MATCH_LIMIT])
        self.assertRegex(lines[MATCH_LIMIT], r"^\[The limit of 50 matches is reached.*path or a type\.\]$")

    def test_the_matches_are_those_of_a_plain_loop_over_files_and_lines(self):
        for seed in range(8):
            chance = random.Random(seed)
            files = {}
            for name in "abc":
                parts = [b"needle", b"pin", b" ", b"\r\n", b"\n", b"\n", b"\xff", "é".encode(), b"\r"]
                files[name] = b"".join(chance.choices(parts, k=chance.randrange(40)))
                self.write(name, files[name])
            pattern = chance.choice(["needle", "needle|pin$", r"^\s*$", "(?i)PIN", r"n\w+e\b", ".", "^[^p]*$"])
            expected = []
            for name, content in files.items():
                lines = content.decode("utf-8", "replace").split("\n")
                for number, line in enumerate(lines[:-1] if lines[-1] == "" else lines, 1):
                    line = line[:-1] if line.endswith("\r") else line
                    if re.search(pattern, line):
                        expected.append(f"{name}:{number}:{line}")
            with self.subTest(seed=seed), mock.patch.object(grep_module, "BLOCK_BYTES", chance.choice([1, 9, 1 << 18])):
                found = self.grep(pattern)
                self.assertEqual(found if expected else found[:9], "\n".join(expected) or "[No match")


class FilesTest(WorkspaceCase):
    def test_a_type_is_an_extension_with_or_without_its_dot_and_case_counts(self):
        self.write("a.py", "needle\n")
        self.write("a.PY", "needle\n")
        self.write("happy", "needle\n")
        for file_type in ("py", ".py", "*.py"):
            self.assertEqual(self.grep("needle", file_type=file_type), "a.py:1:needle")

    def test_a_type_that_no_file_has_is_answered_with_those_there_are(self):
        self.write("a.py", "needle\n")
        self.write("b.py", "needle\n")
        self.write("Makefile", "needle\n")
        text = self.grep("needle", file_type="python")
        self.assertIn("No file here ends in .python. Extensions here: .py (2), none (1).", text)

    def test_no_match_says_how_many_files_were_searched_and_how_many_were_binary(self):
        self.write("a.py", "")
        self.write("b.py", "x\n")
        self.write("c.bin", b"needle\0\n")
        self.assertEqual(self.grep("needle"), "[No match. Files searched: 2. Skipped as binary: 1.]")

    def test_what_is_hidden_protected_or_ignored_is_skipped_and_said_to_be(self):
        self.write(".hidden/a.txt", "needle\n")
        self.write(".env", "needle\n")
        self.write(".git/config", "needle\n")
        self.write(".gitignore", "*.log\n")
        self.write("sub/a.log", "needle\n")
        self.assertEqual(self.grep("needle"), "[No match. Files searched: 1.]")
        text = self.grep("needle", path="sub")
        self.assertIn("Files searched: 0.]\n[Hidden folders, protected names and what .gitignore ignores are", text)
        self.assertEqual(self.grep("needle", path=".hidden"), ".hidden/a.txt:1:needle")

    def test_a_pattern_with_a_line_break_that_finds_nothing_is_told_why(self):
        self.write("a.txt", "foo\nbar\n")
        for pattern in (r"foo\nbar", "foo\nbar"):
            self.assertIn("each line is searched by itself", self.grep(pattern))
        self.assertNotIn("each line", self.grep(r"foo\\nbar"))

    def test_a_single_file_is_searched_even_where_a_folder_search_would_skip_it(self):
        self.write(".gitignore", "a.txt\n")
        self.write("a.txt", "needle\n")
        self.assertEqual(self.grep("needle", path="a.txt"), "a.txt:1:needle")

    def test_a_path_that_is_not_there_outside_or_protected_is_refused(self):
        self.write("main.py", "needle\n")
        self.write(".env", "needle\n")
        self.write("../outside.txt", "needle\n")
        self.assertIn("main.py", self.assert_refused("not_found", "needle", path="mian.py"))
        self.assert_refused("outside_workspace", "needle", path="../outside.txt")
        self.assert_refused("protected_path", "needle", path=".env")

    @unittest.skipUnless(hasattr(os, "mkfifo"), "needs named pipes")
    def test_a_pipe_is_not_waited_for(self):
        os.mkfifo(self.root / "pipe")
        self.write("a.txt", "needle\n")
        self.assertEqual(self.grep("needle"), "a.txt:1:needle")
        self.assert_refused("not_a_file", "needle", path="pipe")

    @unittest.skipUnless(hasattr(os, "symlink"), "needs links")
    def test_a_link_to_a_file_that_is_not_in_the_searched_folder_is_searched(self):
        self.write("real.txt", "needle_linked\n")
        self.write("linked/other.txt", "nothing\n")
        os.symlink("../real.txt", self.workspace.root / "linked" / "link.txt")
        self.assertEqual(self.grep("needle_linked", path="linked"), "linked/link.txt:1:needle_linked")
        self.assertEqual(self.grep("needle_linked"), "real.txt:1:needle_linked")

    def test_links_bring_nothing_twice_and_nothing_from_outside(self):
        self.write("a.txt", "needle\n")
        self.write("../outside/b.txt", "needle\n")
        os.symlink("a.txt", self.root / "again.txt")
        os.symlink(".", self.root / "loop")
        os.symlink("../outside", self.root / "out")
        os.symlink("../outside/b.txt", self.root / "out.txt")
        self.assertEqual(self.grep("needle"), "a.txt:1:needle")

    def test_a_file_that_cannot_be_read_is_named_and_hides_no_match(self):
        self.write("a.txt", "needle\n")
        self.write("b.txt", "needle\n")

        def read_bytes(path, limit_bytes=None):
            if path.name == "a.txt":
                raise ToolError("unreadable", "a.txt cannot be read: Permission denied.")
            return Workspace.read_bytes(self.workspace, path, limit_bytes)

        with mock.patch.object(self.workspace, "read_bytes", read_bytes):
            self.assertEqual(self.grep("needle"), "b.txt:1:needle\n[Not searched, because they can't be read: a.txt.]")
            self.assert_refused("unreadable", "needle", path="a.txt")

    def test_of_a_huge_file_the_beginning_is_searched_and_that_is_said(self):
        self.write("a.log", "needle\n" + "x" * 1000 + "\nneedle\n")
        self.use(FILE_LIMIT_BYTES=500, BLOCK_BYTES=99)
        text = self.grep("needle")
        self.assertEqual(text, "a.log:1:needle\n[Searched only in the first 0 MB: a.log.]")

    def test_a_name_with_a_line_break_stays_on_one_line(self):
        self.write("a\nb.txt", "needle\n")
        self.assertEqual(self.grep("needle"), "a\\nb.txt:1:needle")


class PatternTest(WorkspaceCase):
    def test_an_invalid_pattern_is_refused_with_the_position_and_what_to_do(self):
        for pattern, position in (("foo(", 3), ("a**", 2), ("[a-", 0), ("(?<=a*)b", None), ("a{2,1}", 2), ("a\\", 1)):
            with self.subTest(pattern):
                text = self.assert_refused("bad_pattern", pattern)
                self.assertIn("put a backslash before", text)
                if position is not None:
                    self.assertIn(f"at position {position} (here: {pattern[position:]!r})", text)

    def test_what_python_cannot_even_read_is_refused_too(self):
        for pattern in ("(" * 20_000 + ")" * 20_000, "a{99999999999}", "(?L)a", "[" * 100_000):
            with self.subTest(pattern[:9]):
                self.assertLess(len(self.assert_refused("bad_pattern", pattern)), 500)

    def test_odd_patterns_are_searched_for(self):
        self.write("a.txt", "a[b\n")
        for pattern in ("\ud800", "a\0b", "(?:a{1000}){1000}"):
            self.assertIn("No match", self.grep(pattern))
        self.assertEqual(self.grep("[[a]b"), "a.txt:1:a[b")

    def test_warnings_about_a_pattern_do_not_reach_the_terminal(self):
        self.write("a.txt", "a[b\n")
        script = (
            "from pathlib import Path; from mini_agent.tools.workspace import Workspace;"
            f"from mini_agent.tools.grep import grep; print(grep('[[a]b|x(?i:y)', Workspace(Path({str(self.root)!r}))))"
        )
        done = subprocess.run([sys.executable, "-W", "always", "-c", script], capture_output=True, timeout=60)
        self.assertEqual((done.stdout.strip(), done.stderr), (b"a.txt:1:a[b", b""))


class TooLongTest(WorkspaceCase):
    def test_a_line_that_takes_too_long_costs_no_match_elsewhere_and_is_named(self):
        self.write("a.txt", f"za\n{STUCK_ON}\naa\n")
        self.write("b.txt", "bc\nba\n")
        self.use(PATIENCE_SECONDS=0.2)
        text = self.grep(ENDLESS)
        self.assertEqual(text.split("\n")[:3], ["a.txt:1:za", "a.txt:3:aa", "b.txt:2:ba"])
        self.assertRegex(text, r"\n\[Not searched, because the pattern takes too long there: a\.txt:2\. .*\]$")

    def test_the_everyday_email_pattern_is_quick_on_a_long_line(self):
        self.write("a.min.js", "x" * 100_000 + "\n" + "var a=1;" * 20_000 + "\njane.doe+tag@example.com\n")
        self.assertEqual(self.grep(r"[\w.+-]+@[\w-]+\.\w+"), "a.min.js:3:jane.doe+tag@example.com")

    def test_what_was_found_until_the_time_is_over_is_shown_and_the_rest_named(self):
        self.write("a.txt", "za\n" + (STUCK_ON + "\n") * 20)
        started = time.monotonic()
        self.use(BLOCK_BYTES=1, LAST_LINES_SECONDS=0.1, PATIENCE_SECONDS=0.2)
        self.use(TIME_LIMIT_SECONDS=0.9)
        text = self.grep(ENDLESS)
        self.assertLess(time.monotonic() - started, 8)
        self.assertRegex(text, r"^a\.txt:1:za\n\[The time is over: a\.txt:\d+ and what sorts after it was not searched")
        self.assertIn("takes too long there: a.txt:2", text)

    def test_of_the_lines_put_aside_the_short_ones_come_before_the_time_is_over(self):
        self.write("a.txt", (STUCK_ON + "\n") * 9 + "za\n")
        self.use(PATIENCE_SECONDS=0.1)
        self.use(TIME_LIMIT_SECONDS=0.8)
        text = self.grep(ENDLESS)
        self.assertRegex(text, r"^a\.txt:10:za\n\[Not searched.* there: a\.txt:1, a\.txt:2, a\.txt:3 and 6 more\.")

    def test_a_walk_that_takes_too_long_is_ended_and_says_where(self):
        self.write("a.txt", "needle\n")
        self.write("b.txt", "needle\n")
        clock = mock.Mock(monotonic=time.monotonic)

        class SlowWorkspace(Workspace):
            def walk(self, start, include_protected=False, depth=None):
                for entry in super().walk(start, include_protected, depth):
                    if entry.path.name == "b.txt":
                        clock.monotonic = lambda: time.monotonic() + 7.6
                    yield entry

        self.use(time=clock)
        text = grep("needle", SlowWorkspace(self.root))
        self.assertRegex(
            text, r"^a\.txt:1:needle\n\[The time is over: b\.txt and what sorts after it was not searched\."
        )

    def test_it_works_off_the_main_thread(self):
        self.write("a.txt", f"za\n{STUCK_ON}\n")
        texts = []
        self.use(PATIENCE_SECONDS=0.2)
        thread = threading.Thread(target=lambda: texts.append(self.grep(ENDLESS)))
        thread.start()
        thread.join(30)
        self.assertIn("a.txt:2.", texts[0])


class ChildTest(WorkspaceCase):
    def setUp(self):
        super().setUp()
        self.write("a.txt", STUCK_ON + "\n")

    def test_no_child_is_left_after_a_search_an_error_and_a_blow_up(self):
        started = self.children()
        self.grep("b")
        self.assert_refused("bad_pattern", "(")
        self.use(PATIENCE_SECONDS=0.1)
        self.grep(ENDLESS)
        self.assertGreater(len(started), 3)
        self.assertNotIn(None, [child.returncode for child in started])

    @unittest.skipUnless(hasattr(signal, "setitimer"), "needs the alarm")
    def test_the_alarm_of_the_tools_passes_through_and_leaves_no_child(self):
        started = self.children()
        self.use(PATIENCE_SECONDS=7)
        with self.assertRaises(TimeLimitExceeded), ToolClock().limit(0.3):
            self.grep(ENDLESS)
        self.assertEqual([child.returncode for child in started], [-signal.SIGKILL])

    @unittest.skipUnless(hasattr(signal, "pthread_kill"), "needs signals")
    def test_ctrl_c_passes_through_and_leaves_no_child(self):
        started = self.children()
        main = threading.main_thread().ident
        timer = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))
        timer.start()
        self.addCleanup(timer.join)
        self.use(PATIENCE_SECONDS=7)
        with self.assertRaises(KeyboardInterrupt):
            self.grep(ENDLESS)
        self.assertEqual([child.returncode for child in started], [-signal.SIGKILL])

    def test_the_child_ends_when_its_stdin_does(self):
        for sent in (b"", b"1\nx", b"1\nx9\nab"):
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", str(grep_module._Matcher._WORKER), "60"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            child.communicate(sent, timeout=30)

    def test_the_child_ends_by_itself_soon_after_the_time_limit_even_in_the_middle_of_a_match(self):
        started = self.children()
        self.use(TIME_LIMIT_SECONDS=7)
        self.grep("b")
        *command, life_seconds = started[0].args
        self.assertLessEqual(float(life_seconds), 7 + 1)
        nothing = subprocess.DEVNULL
        child = subprocess.Popen([*command, "0.2"], stdin=subprocess.PIPE, stdout=nothing, stderr=nothing)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        pattern, line = ENDLESS.encode(), STUCK_ON.encode() + b"\n"
        child.stdin.write(b"%d\n%b%d\n%b" % (len(pattern), pattern, len(line), line))
        child.stdin.flush()  # and stays open: nothing but the clock tells the child to end
        self.assertEqual(child.wait(30), 1)

    def test_a_child_that_is_killed_just_when_it_is_ready_has_no_answer(self):
        with mock.patch.object(grep_module._Matcher, "start"):
            self.assertIsNone(grep_module._Matcher("b", time.monotonic() + 5).matches(b"abc\n"))

    def test_the_child_does_not_get_the_environment(self):
        worker = self.root / "worker.py"
        names = "import os\nprint(','.join(sorted(os.environ)), end='\\n\\n')\n"
        worker.write_text(names, encoding="utf-8")
        variables = {"OPENAI_API_KEY": "sk-secret", "LD_LIBRARY_PATH": ""}
        with mock.patch.object(grep_module._Matcher, "_WORKER", worker), mock.patch.dict(os.environ, variables):
            text = self.assert_refused("bad_pattern", "x")
        self.assertIn("LD_LIBRARY_PATH", text)
        self.assertNotIn("OPENAI", text)

    def test_a_child_that_cannot_be_started_or_dies_at_once_is_told(self):
        with mock.patch.object(sys, "executable", str(self.root / "none")):
            self.assertIn("No such file", self.assert_refused("no_process", "x"))
        (self.root / "worker.py").write_text("", encoding="utf-8")
        with mock.patch.object(grep_module._Matcher, "_WORKER", self.root / "worker.py"):
            self.assert_refused("no_process", "x")


class ToolTest(WorkspaceCase):
    def setUp(self):
        super().setUp()
        self.write(".env", "needle\n")
        self.write("a.txt", "needle\n")
        self.questions = []

    def run_tool(self, arguments, answer):
        def ask(question):
            self.questions.append(question)
            return answer

        return Toolbox([GrepTool(self.workspace, ask)]).run(ToolCall("1", "grep", "", arguments))

    def test_a_plain_search_asks_nobody(self):
        self.assertEqual(self.run_tool({"pattern": "needle", "type": "txt"}, False).text, "a.txt:1:needle")
        self.assertEqual(self.questions, [])

    def test_protected_files_are_searched_after_a_yes_to_that_very_search(self):
        outcome = self.run_tool({"pattern": "need\nle|needle", "path": ".", "include_protected": True}, True)
        self.assertEqual(outcome.text, ".env:1:needle\na.txt:1:needle")
        self.assertEqual(len(self.questions), 1)
        self.assertIn("search . for need\\nle|needle, in protected files", self.questions[0])

    def test_a_no_is_told_and_nothing_is_searched(self):
        outcome = self.run_tool({"pattern": "needle", "path": ".env", "include_protected": True}, False)
        self.assertTrue(outcome.is_error)
        self.assertIn("Error [declined]:", outcome.text)
        self.assertNotIn("needle", outcome.text)

    def test_what_leads_outside_is_refused_without_a_question(self):
        outcome = self.run_tool({"pattern": "x", "path": "..", "include_protected": True}, True)
        self.assertIn("Error [outside_workspace]:", outcome.text)
        self.assertEqual(self.questions, [])


if __name__ == "__main__":
    unittest.main()
