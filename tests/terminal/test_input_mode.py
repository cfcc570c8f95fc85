from __future__ import annotations

import io
import os
import select
import signal
import sys
import unittest

if sys.platform == "win32":
    raise unittest.SkipTest("there are no pseudo-terminals here")

from mini_agent.terminal.console import Console
from mini_agent.terminal.input_mode import Keyboard
from tests.terminal.pseudo_terminal import TerminalTestCase

START = """
import os, signal, sys, time
from mini_agent.terminal.console import Console
from mini_agent.terminal.input_mode import Keyboard
console = Console(sys.stdout, sys.stderr)
keyboard = Keyboard(sys.stdin, console)
def work(seconds=60):
    print("working", flush=True)
    time.sleep(seconds)
"""


class AskYesTest(TerminalTestCase):
    def test_only_yes_is_a_yes(self) -> None:
        terminal = self.run_in_terminal(START + "while True: print('answer:', keyboard.ask_yes('May I?'), flush=True)")
        for typed, answer in (
            ("yes", True),
            (" yes ", True),
            ("y", False),
            ("YES", False),
            ("", False),
            ("yes yes", False),
        ):
            terminal.wait_for("refuse: ")
            terminal.type(typed + "\n")
            terminal.wait_for(f"answer: {answer}")

    def test_what_was_typed_before_the_question_does_not_answer_it(self) -> None:
        script = """
import select
print("type", flush=True)
select.select([0], [], [])  # until it has come in
print("answer:", keyboard.ask_yes("May I?"))
"""
        terminal = self.run_in_terminal(START + script)
        terminal.wait_for("type")
        terminal.type("yes\nyes\n")
        terminal.wait_for("refuse: ")
        terminal.type("no\n")
        terminal.wait_for("answer: False")

    def test_the_question_can_be_answered_while_the_agent_works_and_keys_are_hushed_again_after_it(self) -> None:
        body = "print('answer:', keyboard.ask_yes('May I?'))\n    work()"
        terminal = self.run_in_terminal(START + f"with keyboard.working():\n    {body}")
        terminal.wait_for("refuse: ")
        self.assertTrue(terminal.shows_keys())
        terminal.type("yes\n")
        terminal.wait_for("answer: True")
        terminal.wait_for("working")
        self.assertFalse(terminal.shows_keys())

    def test_end_of_input_is_a_no_and_ctrl_c_is_an_interrupt_and_no_answer(self) -> None:
        asking = "print('answer:', keyboard.ask_yes('May I?'), flush=True)"
        script = f"{asking}\ntry: {asking}\nexcept KeyboardInterrupt: print('interrupted')"
        terminal = self.run_in_terminal(START + script)
        terminal.wait_for("refuse: ")
        terminal.type("\x04")
        terminal.wait_for("answer: False")
        terminal.wait_for("refuse: ")
        terminal.type("\x03")
        terminal.wait_for("\ninterrupted")

    def test_the_question_is_shown_whole_and_obeyed_by_nobody(self) -> None:
        question = "May I write?\\n" + "+line\\n" * 100 + "\\x1b[2J\\u202etxt.exe"
        terminal = self.run_in_terminal(START + f"keyboard.ask_yes('{question}')")
        terminal.wait_for("refuse: ")
        self.assertEqual(terminal.screen.count("+line"), 100)
        self.assertIn("\\x1b[2J\\u202etxt.exe", terminal.screen)

    def test_without_a_terminal_the_answer_is_no_and_says_so(self) -> None:
        err = io.StringIO()
        self.assertFalse(Keyboard(io.StringIO("yes\n"), Console(io.StringIO(), err)).ask_yes("May I?"))
        self.assertIn("so the answer is no", err.getvalue())

    def test_a_question_that_nobody_can_see_is_a_no(self) -> None:
        script = (
            "console = Console(sys.stdout, open(os.devnull, 'w'))\nprint(Keyboard(sys.stdin, console).ask_yes('?'))"
        )
        terminal = self.run_in_terminal(START + script)
        terminal.wait_for("False")


class WorkingTest(TerminalTestCase):
    def test_keys_are_not_shown_and_are_thrown_away(self) -> None:
        script = """
import select
with keyboard.working():
    work(0)
    end = time.monotonic() + 1
    while not select.select([0], [], [], 0)[0] and time.monotonic() < end:
        pass  # until a key has come in, and not so long that it is surely read away
print("done", flush=True)
print("got", sys.stdin.readline())
"""
        terminal = self.run_in_terminal(START + script)
        terminal.wait_for("working")
        terminal.type("for nothing\n")
        terminal.wait_for("done")
        self.assertNotIn("for nothing", terminal.screen)
        terminal.type("at last\n")
        terminal.wait_for("got at last")

    def test_the_mode_comes_back_after_the_block_an_exception_and_ctrl_c(self) -> None:
        script = """
import termios
before = termios.tcgetattr(0)
for body in (lambda: None, lambda: 1 / 0, work):
    try:
        with keyboard.working():
            assert termios.tcgetattr(0) != before
            body()
    except (ZeroDivisionError, KeyboardInterrupt) as error:
        print(type(error).__name__)
    print("as before:", termios.tcgetattr(0) == before, flush=True)
"""
        terminal = self.run_in_terminal(START + script)
        terminal.wait_for("as before: True")
        terminal.wait_for("ZeroDivisionError\r\nas before: True")
        terminal.wait_for("working")
        self.assertFalse(terminal.shows_keys())
        terminal.type("\x03")
        terminal.wait_for("KeyboardInterrupt\r\nas before: True")

    def test_the_mode_comes_back_when_the_program_is_ended_by_a_signal(self) -> None:
        terminal = self.run_in_terminal(START + "with keyboard.working(): work()")
        terminal.wait_for("working")
        terminal.send_signal(signal.SIGTERM)
        self.assertEqual(terminal.wait_for_end(), -signal.SIGTERM)
        self.assertTrue(terminal.shows_keys())

    def test_a_stopped_program_gives_the_mode_back_and_takes_it_again(self) -> None:
        # A process group without a shell behind it is not stopped by Ctrl-Z, so it gets one: a parent that waits.
        script = START + "with keyboard.working(): work()"
        shell = f"""
import os, signal, sys
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.executable, [sys.executable, "-S", "-c", {script!r}])
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
while True:
    _, status = os.waitpid(child, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        break
    os.tcsetpgrp(0, os.getpid())
    print("stopped", flush=True)
    sys.stdin.readline()
    os.tcsetpgrp(0, child)
    os.kill(child, signal.SIGCONT)
print("ended", flush=True)
"""
        terminal = self.run_in_terminal(shell)
        terminal.wait_for("working")
        self.assertFalse(terminal.shows_keys())
        terminal.type("\x1a")
        terminal.wait_for("stopped")
        self.assertTrue(terminal.shows_keys())
        terminal.type("fg\n")
        terminal.wait_until(lambda: not terminal.shows_keys())
        terminal.type("\x03")
        terminal.wait_for("ended")
        self.assertTrue(terminal.shows_keys())

    def test_ctrl_c_gets_through_behind_a_flood_of_keys(self) -> None:
        script = "try:\n    with keyboard.working(): work()\nexcept KeyboardInterrupt: print('interrupted')"
        terminal = self.run_in_terminal(START + script)
        terminal.wait_for("working")
        flood = b"x\n" * 6_000 + b"\x03"
        os.set_blocking(terminal.master, False)
        while flood and select.select([], [terminal.master], [], 10)[1]:
            flood = flood[os.write(terminal.master, flood[:2000]) :]
        os.set_blocking(terminal.master, True)
        terminal.wait_for("interrupted")

    def test_a_program_in_the_background_is_not_stopped_by_it(self) -> None:
        script = f"""
import os, sys
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.execv(sys.executable, [sys.executable, "-S", "-c", {START + "with keyboard.working(): work(0.3)"!r}])
_, status = os.waitpid(child, os.WUNTRACED)
print("stopped" if os.WIFSTOPPED(status) else "ran through", flush=True)
"""
        terminal = self.run_in_terminal(script)
        terminal.wait_for("ran through")

    def test_without_a_terminal_it_does_nothing(self) -> None:
        before = signal.getsignal(signal.SIGTERM)
        with Keyboard(io.StringIO(""), Console(io.StringIO(), io.StringIO())).working():
            self.assertIs(signal.getsignal(signal.SIGTERM), before)
