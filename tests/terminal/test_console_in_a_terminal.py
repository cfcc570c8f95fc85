from __future__ import annotations

import re
import sys
import unittest

if sys.platform == "win32":
    raise unittest.SkipTest("there are no pseudo-terminals here")

from mini_agent.terminal.columns import width
from tests.terminal.pseudo_terminal import TerminalTestCase

SCRIPT = """
import sys, time
from datetime import datetime, timezone
from types import SimpleNamespace
from mini_agent.conversation.events import Notice, TurnEnded, UserMessageAdded
from mini_agent.terminal.console import Console
console = Console(sys.stdout, sys.stderr)
def tell(event):
    console.show(SimpleNamespace(seq=1, time=datetime.now(timezone.utc), event=event))
tell(UserMessageAdded("x"))
WAIT
tell(Notice("a notice " + "x" * 60))
WAIT
console.on_text("the answer")
tell(TurnEnded("completed"))
console.close()
"""


class ProgressLineTest(TerminalTestCase):
    def test_the_progress_line_comes_by_itself_stays_in_its_line_and_is_gone_at_the_end(self) -> None:
        terminal = self.run_in_terminal(SCRIPT.replace("WAIT", "time.sleep(0.4)"), columns=40)
        self.assertEqual(terminal.wait_for_end(), 0)
        lines = terminal.screen.replace("\r\n", "\n").split("\n")
        self.assertEqual([line.split("\r")[-1] for line in lines], ["a notice " + "x" * 60, "the answer", ""])
        drawn = re.findall(r"\r([0-9]+ s, round 1[^\r]*)", terminal.screen)
        self.assertTrue(drawn, terminal.screen)
        self.assertLess(max(map(width, drawn)), 40)

    def test_a_dumb_terminal_gets_neither_progress_nor_orders(self) -> None:
        script = SCRIPT.replace("WAIT", "time.sleep(0.1)")
        terminal = self.run_in_terminal(script, TERM="dumb")
        self.assertEqual(terminal.wait_for_end(), 0)
        self.assertEqual(terminal.screen, f"a notice {'x' * 60}\r\nthe answer\r\n")
