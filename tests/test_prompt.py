"""A person at the prompt, in a real pseudo-terminal."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

from mini_agent.session.event_log import read_log
from tests.command_line import CommandLineTestCase, call
from tests.model.loopback import Loopback, completion, silent

if sys.platform == "win32":
    raise unittest.SkipTest("there are no pseudo-terminals here")

from tests.terminal.pseudo_terminal import PseudoTerminal

CTRL_C, CTRL_D = "\x03", "\x04"
PATCH = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"


class PromptTest(CommandLineTestCase):
    def open(self, *arguments: str) -> PseudoTerminal:
        program = "import sys; from mini_agent.__main__ import main; sys.argv = {}; sys.exit(main())"
        terminal = PseudoTerminal(program.format(["mini-agent", *self.arguments(*arguments)]), **self.variables())
        self.addCleanup(terminal.close)
        terminal.wait_for("> ")
        return terminal

    def type(self, terminal: PseudoTerminal, text: str, *shown: str) -> None:
        """Type it, and wait for what it brings about."""
        if text == CTRL_C:
            # Python's readline sees no signal that comes just before it begins to wait for a key
            state = Path(f"/proc/{terminal.pid}/stat")
            terminal.wait_until(lambda: not state.exists() or ") S " in state.read_text())
        terminal.type(text)
        for each in shown:
            terminal.wait_for(each)

    def requests(self) -> list[str]:
        return [entry.event.to_json()["text"] for entry in self.log() if entry.event.type == "user_message_added"]

    def test_requests_over_several_lines_and_ctrl_d(self) -> None:
        self.script("one", "two")
        terminal = self.open()
        self.assertIn(f"workspace {self.workspace}", terminal.screen)
        self.type(terminal, '"""\n', "... ")
        self.type(terminal, "a\n", "... ")
        self.type(terminal, ' b"""\n', "one", "> ")
        self.type(terminal, "c\\\n", "... ")
        self.type(terminal, "d\n", "two", "> ")
        self.type(terminal, CTRL_D)
        self.assertEqual(terminal.wait_for_end(), 0)
        self.assertTrue(terminal.shows_keys())
        self.assertEqual(self.requests(), ["a\n b", "c\nd"])

    def test_ctrl_c_takes_back_what_was_typed_and_leaves_when_pressed_twice_at_an_empty_prompt(self) -> None:
        self.script()
        terminal = self.open()
        for _ in range(2):
            self.type(terminal, "half a word", "half a word")
            self.type(terminal, CTRL_C, "> ")
        self.type(terminal, "half a request\\\n", "... ")
        self.type(terminal, CTRL_C, "leaves", "> ")
        self.type(terminal, "/model\n", "the model is", "> ")
        self.type(terminal, CTRL_C, "leaves", "> ")
        self.type(terminal, CTRL_C)
        self.assertEqual(terminal.wait_for_end(), 130)
        self.assertTrue(terminal.shows_keys())
        self.assertEqual(self.requests(), [])

    def test_ctrl_c_in_a_turn_returns_to_the_prompt_with_the_history_whole_and_a_second_one_leaves(self) -> None:
        server = Loopback(silent, completion("hello again"), silent)
        terminal = self.open("--base-url", server.base_url, "--model", "m", "--context-window", "9000")
        with server:
            self.type(terminal, "the first\n")
            terminal.wait_until(lambda: server.requests)
            terminal.wait_until(lambda: not terminal.shows_keys())
            self.type(terminal, "typed for nothing\n")
            self.type(terminal, CTRL_C, "interrupted by the user", "> ")
            self.type(terminal, "the second\n", "hello again", "> ")
            self.type(terminal, "the third\n")
            terminal.wait_until(lambda: len(server.requests) == 3)
            self.type(terminal, CTRL_C, "interrupted by the user", "> ")
            self.type(terminal, CTRL_C)
            self.assertEqual(terminal.wait_for_end(), 130)
            self.assertIn(b"the first", server.bodies[1])
        self.assertTrue(terminal.shows_keys())
        self.assertEqual(self.requests(), ["the first", "the second", "the third"])
        self.assertNotIn("Traceback", terminal.screen)

    def test_a_patch_is_shown_and_made_after_yes_only(self) -> None:
        (self.workspace / "a.txt").write_text("old\n")
        self.script(call("apply_patch", patch=PATCH), "refused", call("apply_patch", patch=PATCH), "made")
        terminal = self.open("--ask-writes")
        for answer, told in (("y", "refused"), ("yes", "made")):
            self.type(terminal, "go\n", "-old", "+new", "to refuse: ")
            self.type(terminal, f"{answer}\n", told, "> ")
        self.type(terminal, "/EXIT\n")
        self.assertEqual(terminal.wait_for_end(), 0)
        self.assertEqual((self.workspace / "a.txt").read_text(), "new\n")

    def test_where_the_answers_go_to_a_file_the_prompt_does_not(self) -> None:
        self.script("one")
        answers = self.folder / "answers"
        program = (
            "import os, sys; os.dup2(os.open({!r}, os.O_CREAT | os.O_WRONLY), 1)\n"
            "from mini_agent.__main__ import main; sys.argv = {}; sys.exit(main())"
        )
        arguments = ["mini-agent", *self.arguments()]
        terminal = PseudoTerminal(program.format(str(answers), arguments), **self.variables())
        self.addCleanup(terminal.close)
        self.type(terminal, "", "> ")
        self.type(terminal, "go\n", "> ")
        self.type(terminal, CTRL_D)
        self.assertEqual(terminal.wait_for_end(), 0)
        self.assertEqual(answers.read_text(), "one\n")

    def test_resume_goes_on_in_the_other_session_and_refuses_this_one(self) -> None:
        self.script("one", "two")
        self.run_here("-p", "before")
        terminal = self.open()
        self.type(terminal, "/resume\n", "turns so far: 1", "> ")
        self.type(terminal, "/resume\n", "no other session", "> ")
        self.type(terminal, f"/resume {self.log_paths()[0].stem}\n", "this is that session", "> ")
        self.type(terminal, "after\n", "one", "> ")
        self.type(terminal, "quit\n")
        self.assertEqual(terminal.wait_for_end(), 0)
        grown, other = (len(read_log(path)) for path in self.log_paths())
        self.assertGreater(grown, 8)
        self.assertLess(other, 4)
