from __future__ import annotations

import os
import sys
import unittest
from pathlib import Path
from unittest import mock

from mini_agent import prompt_loop
from mini_agent.__main__ import leave_current_folder
from mini_agent.variables import HONOURED, VARIABLES
from tests.command_line import CommandLineTestCase, Ran

EVIL = [
    "argparse",
    "json",
    "gzip",
    "readline",
    "textwrap",
    "ssl",
    "subprocess",
    "termios",
    "difflib",
    "mini_agent_none",
]


class FlagsTest(CommandLineTestCase):
    def assert_refused(self, ran: Ran, *words: str) -> None:
        """Check that it was refused in one line that holds these words."""
        self.assertEqual((ran.code, ran.out), (2, ""), ran.err)
        self.assertRegex(ran.err, r"\Aerror: .*\n\Z")
        for word in words:
            self.assertIn(word, ran.err)

    def test_the_help_names_every_variable_and_can_be_printed_in_ascii(self) -> None:
        ran = self.run_here("--help", encoding="ascii")
        self.assertEqual((ran.code, ran.err), (0, ""))
        for name in [*(variable.name for variable in VARIABLES), *(name for name, _ in HONOURED), "--demo"]:
            self.assertIn(name, ran.out)

    def test_the_version_goes_to_the_output(self) -> None:
        self.assertRegex(self.run_here("--version").out, r"^mini-agent \d")

    def test_a_flag_that_does_not_exist_is_refused_in_one_line(self) -> None:
        for flags in ["--replay x", "--xray x", "--check", "--explain", "--works", "--promp x", "word"]:
            with self.subTest(flags):
                self.assert_refused(self.run_here(*flags.split()), flags, "--help")

    def test_a_flag_with_control_characters_is_made_visible(self) -> None:
        self.assert_refused(self.run_here("--\x1b[31m\nx"), "\\x1b[31m\\nx")

    def test_flags_that_do_not_go_together_are_refused(self) -> None:
        self.assert_refused(self.run_here("--output", "json"), "--prompt")
        self.assert_refused(self.run_here("--output", "xml", "-p", "x"), "xml")
        self.assert_refused(self.run_here("--list-sessions", "-p", "x"), "--list-sessions")
        self.assert_refused(self.run_here("--demo", "-p", "x"), "--demo")

    def test_all_that_is_wrong_is_told_at_once(self) -> None:
        self.environment["MINI_AGENT_TIMEOUT_SECONDS"] = "soon"
        ran = self.run_here("-w", "/no/such/folder", "--max-rounds", "0", "--base-url", "ftp:x", "-p", "x")
        self.assertEqual((ran.code, ran.out), (2, ""))
        told = ["--workspace", "--max-rounds", "--base-url", "TIMEOUT_SECONDS", "OPENAI_MODEL"]
        for word in told:
            self.assertEqual(len([line for line in ran.err.splitlines() if word in line.split(";")[0]]), 1, ran.err)
        self.assertEqual(ran.err.count("error: "), len(told), ran.err)

    def test_without_key_and_model_it_says_what_to_set_and_shows_the_demo(self) -> None:
        ran = self.run_here("-p", "x")
        self.assertEqual((ran.code, ran.out), (2, ""))
        for word in ("OPENAI_API_KEY", "OPENAI_MODEL", "--demo"):
            self.assertIn(word, ran.err)

    def test_the_workspaces_own_env_file_is_not_read(self) -> None:
        (self.workspace / ".env").write_text("OPENAI_MODEL=m\nOPENAI_BASE_URL=http://127.0.0.1:9/v1\n")
        self.assertIn("OPENAI_MODEL is not set", self.run_here("-p", "x").err)

    def test_a_script_that_is_none_is_refused(self) -> None:
        self.script("x")
        for text in ('{"replies": [1]}', "nope", '{"replies": [{"tool_calls": 3}]}'):
            (self.folder / "script.json").write_text(text)
            ran = self.run_here("-p", "x")
            self.assertEqual((ran.code, ran.out), (2, ""))
            self.assertRegex(ran.err, r"\Aerror: MINI_AGENT_SCRIPT: .*script\.json.*\n\Z")

    def test_an_own_folder_that_is_a_link_is_refused(self) -> None:
        self.script("x")
        (self.workspace / ".mini_agent").symlink_to(self.folder)
        ran = self.run_here("-p", "x")
        self.assertEqual((ran.code, ran.out), (2, ""))
        self.assertIn("is a link", ran.err)

    def test_a_fault_that_nobody_foresaw_ends_in_one_line(self) -> None:
        for fault in (ZeroDivisionError("by \x1b nought\nand more"), RecursionError(), MemoryError(), OSError(5, "io")):
            with mock.patch.object(prompt_loop, "run", side_effect=fault):
                ran = self.run_here("-p", "x")
            self.assertEqual(ran.code, 1)
            self.assertRegex(ran.err, rf"\Aerror: mini-agent had to stop: {type(fault).__name__}.*\n\Z")

    def test_ctrl_c_before_there_is_a_turn_ends_it_with_130(self) -> None:
        with mock.patch.object(prompt_loop, "run", side_effect=KeyboardInterrupt):
            self.assertEqual(self.run_here("-p", "x"), Ran(130, "", ""))


class StreamsTest(CommandLineTestCase):
    """Streams that are closed, full, or read by nobody."""

    def setUp(self) -> None:
        super().setUp()
        self.script("the answer")

    def test_closed_streams_lose_nothing_of_the_session(self) -> None:
        ran = self.run_apart("-p", "x", shell="<&- >&- 2>&-")
        self.assertEqual(ran, Ran(0, "", ""))
        self.assertEqual(self.log()[-1].event.type, "turn_ended")

    def test_bad_usage_with_the_error_output_closed_is_still_bad_usage(self) -> None:
        self.assertEqual(self.run_apart("--nope", shell="2>&-"), Ran(2, "", ""))

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full here")
    def test_an_answer_that_cannot_be_written_is_no_success(self) -> None:
        for output in ("text", "events"):
            ran = self.run_apart("-p", "x", "--output", output, shell=">/dev/full")
            self.assertEqual(ran.code, 1, output)
            self.assertIn("error: the answer could not be written: No space left", ran.err)
            self.assertNotIn("Traceback", ran.err)

    def test_a_reader_of_the_help_that_has_left_sees_no_traceback(self) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        ran = self.run_apart("--help", stdout=writer)
        os.close(writer)
        self.assertEqual(ran, Ran(1, "", ""))

    def test_an_answer_that_the_output_has_no_characters_for_is_written_out(self) -> None:
        self.script("größer \ud83d\ude00")
        ran = self.run_here("-p", "x", encoding="ascii")
        self.assertEqual((ran.code, ran.out), (0, "gr\\xf6\\xdfer \\U0001f600\n"))

    def test_an_argument_that_is_no_utf_8_is_read_with_replacements(self) -> None:
        self.assertEqual(self.run_here("-p", "a\udcffb").code, 0)
        self.assertIn('"text":"a\\ufffdb"', self.log_paths()[0].read_text())

    def test_stdin_that_is_no_utf_8_is_read_with_replacements(self) -> None:
        ran = self.run_here(stdin=b"a\xffb\0c\n")
        self.assertEqual(ran.code, 0)
        self.assertIn("the input is not UTF-8", ran.err)
        self.assertIn('"text":"a\\ufffdb\\u0000c"', self.log_paths()[0].read_text())


class ImportsTest(CommandLineTestCase):
    """What is imported, when, and from where."""

    def test_the_help_loads_nothing_that_a_bare_parser_does_not(self) -> None:
        program = (
            "import argparse, contextlib, io, sys\n"
            "parser = argparse.ArgumentParser(epilog='x')\n"
            "parser.add_argument('--flag', help='x')\n"
            "parser.format_help()\n"
            "before, path = set(sys.modules), list(sys.path)\n"
            "from mini_agent.__main__ import main\n"
            "assert sys.path == path, 'importing it alone changes nothing'\n"
            "with contextlib.redirect_stdout(io.StringIO()):\n"
            "    main()\n"
            "print(*sorted(set(sys.modules) - before))\n"
        )
        ran = self.run_apart("--help", python=("-c", program))
        ours = {"mini_agent", "mini_agent.__main__", "mini_agent.cli", "mini_agent.variables"}
        self.assertLessEqual(set(ran.out.split()), {*ours, "__future__", "collections.abc", "textwrap"}, ran.err)

    def run_among_strangers(self, *python: str, path: str) -> Ran:
        """Run it in a folder whose modules say that they were imported."""
        self.script({"tool_calls": [{"name": "grep", "arguments": {"pattern": "x"}}]}, "the answer")
        for name in EVIL:
            (self.workspace / f"{name}.py").write_text(f"print('{name} of a stranger')\n")
        self.environment["PYTHONPATH"] = path
        return self.run_apart("-p", "x", python=python, cwd=self.workspace)

    def test_python_dash_m_imports_nothing_from_the_current_folder(self) -> None:
        ran = self.run_among_strangers("-m", "mini_agent", path=str(Path(__file__).resolve().parents[1]))
        self.assertEqual((ran.code, ran.out), (0, "the answer\n"), ran.err)

    def test_the_script_imports_nothing_from_the_current_folder_under_any_of_its_names(self) -> None:
        link = self.folder / "link"
        link.symlink_to(self.workspace)
        path = os.pathsep.join([str(Path(__file__).resolve().parents[1]), "", ".", "../work", str(link)])
        # -c puts "" in front, where the script has the folder that it lies in
        script = (
            "import sys; sys.path.insert(0, sys.path.pop(1)); from mini_agent.__main__ import main; sys.exit(main())"
        )
        ran = self.run_among_strangers("-c", script, path=path)
        self.assertEqual((ran.code, ran.out), (0, "the answer\n"), ran.err)

    def test_it_runs_where_the_current_folder_was_removed(self) -> None:
        self.script("the answer")
        gone = self.folder / "gone"
        gone.mkdir()
        script = self.folder / "mini-agent"
        script.write_text(
            f"import os, sys; os.rmdir({str(gone)!r}); sys.path += ['', '.']\n"
            "from mini_agent.__main__ import main; sys.exit(main())\n"
        )
        ran = self.run_apart("-p", "x", python=(str(script),), cwd=gone)
        self.assertEqual((ran.code, ran.out), (0, "the answer\n"), ran.err)

    def test_python_s_own_folder_stays_where_it_is_the_current_one(self) -> None:
        library = os.path.dirname(os.path.realpath(os.__file__))
        before, here = list(sys.path), os.getcwd()
        try:
            os.chdir(library)
            leave_current_folder()
            self.assertEqual(sys.path, before)
        finally:
            os.chdir(here)
            sys.path[:] = before
