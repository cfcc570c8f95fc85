from __future__ import annotations

import os
import random
import signal
import tempfile
import time
import unittest
import warnings
from pathlib import Path

from mini_agent.conversation.events import AssistantMessageAdded, FilesChanged, UserMessageAdded
from mini_agent.conversation.messages import AssistantMessage, ToolCall, ToolResult
from mini_agent.session.event_log import EventLog, read_log
from mini_agent.session.session import Session, repair_after_crash
from mini_agent.tools.apply_patch.apply_patch import apply_patch
from mini_agent.tools.workspace import Workspace

COUNT = 300 if os.environ.get("MINI_AGENT_LONG_TESTS") else 4
FILES = 20


def _text(number: int, word: str) -> str:
    return "".join(f"line {at} of file {number}\n" for at in range(200)) + f"{word}\n"


def _patch() -> str:
    return "".join(
        f"--- a/f{number}.txt\n+++ b/f{number}.txt\n@@ -200,2 +200,2 @@\n line 199 of file {number}\n-old\n+new\n"
        for number in range(FILES)
    )


def _apply_until_killed(folder: Path, log: Path, ready: int) -> None:
    """Run a turn with one call, which tells and slows down each rename, so that kills come between two of them."""
    replace = os.replace
    os.replace = lambda *names: (os.write(ready, b"."), time.sleep(0.002), replace(*names))  # type: ignore
    session = Session(EventLog(log))
    session.record(UserMessageAdded("patch them"))
    call = ToolCall("1", "apply_patch", "", {"patch": _patch()})
    session.record(AssistantMessageAdded(AssistantMessage("", (call,)), None, "a model", ""))
    apply_patch(_patch(), Workspace(folder, record=session.record))


def kill_during_a_patch(test: unittest.TestCase, chance: random.Random) -> None:
    """Kill a process that patches 20 files at a random moment, look at the files, and resume its session."""
    with tempfile.TemporaryDirectory() as name:
        folder, log = Path(name, "workspace"), Path(name, "session.jsonl")
        folder.mkdir()
        for number in range(FILES):
            (folder / f"f{number}.txt").write_text(_text(number, "old"), encoding="utf-8")
        waiting, ready = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork where other tests left threads
            child = os.fork()
        if child == 0:
            try:
                _apply_until_killed(folder, log, ready)
            finally:
                os._exit(0)
        os.close(ready)
        os.read(waiting, 1)
        time.sleep(chance.random() * 0.06)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(waiting)
        replaced = []
        for number in range(FILES):
            found = (folder / f"f{number}.txt").read_text(encoding="utf-8")
            test.assertIn(found, (_text(number, "old"), _text(number, "new")), f"file {number} is neither old nor new")
            replaced += [f"f{number}.txt"] if found == _text(number, "new") else []
        session = Session(EventLog(log))
        in_flight = session.conversation.files_in_flight
        repair_after_crash(session, folder)
        told = [entry.event for entry in read_log(log) if isinstance(entry.event, FilesChanged)]
        test.assertEqual([file.path for file in told[-1].files] if told else [], replaced)
        result = session.conversation.visible_messages()[-1]
        test.assertIsInstance(result, ToolResult)
        for file in in_flight:
            fate = "the change was made" if file.path in replaced else "the change was not made"
            test.assertIn(f"{file.path}: {fate}.", result.text)
        test.assertEqual(len(list(folder.iterdir())), FILES, "temporary files are left")
        session.log.close()


@unittest.skipUnless(hasattr(os, "fork"), "needs processes that can be forked")
class CrashTest(unittest.TestCase):
    def test_a_kill_during_a_patch_leaves_each_file_whole_and_the_resume_says_which_changed(self) -> None:
        seed = random.randrange(10**6)
        chance = random.Random(seed)
        for run in range(COUNT):
            with self.subTest(seed=seed, run=run):
                kill_during_a_patch(self, chance)


if __name__ == "__main__":
    unittest.main()
