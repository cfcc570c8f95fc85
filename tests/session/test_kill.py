"""`kill -9` of a real process at random moments: what it had shown is in the log, and its session goes on."""

from __future__ import annotations

import itertools
import os
import random
import signal
import tempfile
import time
import unittest
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Callable

from mini_agent.composition import Agent, open_agent
from mini_agent.conversation.events import TEMPORARY_PREFIX, FilesChanged, ToolResultAdded
from mini_agent.conversation.messages import JsonObject, Message
from mini_agent.model.chat_model import ModelReply
from mini_agent.model.scripted import ScriptedModel, Step
from mini_agent.session.event_log import EventLog, LogEntry, read_log
from mini_agent.session.session import Session
from mini_agent.settings import Settings
from tests import generated
from tests.scripted import call, said

NAMES = ("a.txt", "b.txt", "c.txt")
LINES = 60


def content(version: int) -> str:
    return f"version {version}\n" * LINES


def version_of(path: Path) -> int:
    """Return the version that a file is whole in; raise AssertionError for a mixture."""
    text = path.read_text(encoding="utf-8", errors="strict")
    version = int(text.split()[1])
    assert text == content(version), f"{path.name} is half written: {text[:200]!r}"
    return version


def patch(workspace: Path) -> str:
    """Return a patch that takes each file from the version it is in to the next of all."""
    versions = {name: version_of(workspace / name) for name in NAMES}
    following = max(versions.values()) + 1
    parts = []
    for name, version in versions.items():
        old, new = (content(each).splitlines() for each in (version, following))
        lines = [f"--- a/{name}", f"+++ b/{name}", f"@@ -1,{LINES} +1,{LINES} @@"]
        parts += [*lines, *(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    return "\n".join(parts) + "\n"


def work_for_ever(workspace: Path) -> Step:
    """Return a step that asks for a patch and two looks, and ends the turn now and then."""
    counter = itertools.count(1)

    def step(messages: Sequence[Message], tools: Sequence[JsonObject]) -> ModelReply:
        if next(counter) % 4 == 0:
            return said("One turn is done.")
        looks = (call("read_file", path="a.txt", limit=2), call("list_files"))
        return said("On with it.", looks[0], call("apply_patch", patch=patch(workspace)), looks[1])

    return step


def open_scripted(workspace: Path, step: Step, listeners: Sequence[object] = ()) -> Agent:
    """Open the workspace's session, or its first, with the real tools and a scripted model."""
    log_exists = any(workspace.glob(".mini_agent/sessions/*.jsonl"))
    model = ScriptedModel(itertools.repeat(step))
    settings = Settings(workspace=workspace, model="scripted")
    try:
        return open_agent(settings, resume="" if log_exists else None, listeners=listeners, model=model)  # type: ignore[arg-type]
    except Exception as error:
        if "no session to resume" not in str(error):  # killed before anything was asked
            raise
        return open_agent(settings, listeners=listeners, model=model)  # type: ignore[arg-type]


def run_until_killed(workspace: Path, eyes: int) -> None:
    """Run turns; tell through `eyes` which entries of the log were shown."""

    def see(entry: LogEntry) -> None:
        os.write(eyes, b"%d\n" % entry.seq)

    agent = open_scripted(workspace, work_for_ever(workspace), [see])
    os.write(eyes, b"%s\n" % os.fsencode(agent.files.log_path))
    while True:
        agent.run_turn("go on")


def kill_at_rename(number: int) -> None:
    """See to it that this process is killed right before it renames for the n-th time."""
    counter = itertools.count(1)
    rename = os.replace

    def replace(source: Path, target: Path) -> None:
        if next(counter) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        rename(source, target)

    os.replace = replace  # type: ignore[assignment]


def killed_after(workspace: Path, seconds: float, prepare: Callable[[], None] = lambda: None) -> list[bytes]:
    """Run turns in a process of its own, kill it, and return the lines that it told."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork where other tests left threads
        child = os.fork()
    if child == 0:
        try:
            prepare()
            run_until_killed(workspace, writing)
        finally:
            os._exit(1)
    os.close(writing)
    if seconds:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status), "the process ended by itself"
    with open(reading, "rb") as eyes:
        return eyes.read().splitlines()


@unittest.skipUnless(hasattr(os, "fork"), "needs processes that can be forked")
class Killed(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()

    def new_workspace(self, seed: int) -> Path:
        workspace = self.folder / str(seed)
        workspace.mkdir()
        for name in NAMES:
            (workspace / name).write_text(content(1), encoding="utf-8")
        return workspace

    def test_killed_at_any_moment_a_session_goes_on_and_nothing_that_was_shown_is_lost(self) -> None:
        workspace = self.folder
        for number, seed in enumerate(generated.seeds(30, 200)):
            if number % 5 == 0:  # so that a session is killed several times, and no log grows too long
                workspace = self.new_workspace(seed)
            told = killed_after(workspace, random.Random(seed).uniform(0, 0.08))
            with self.subTest(seed=seed):
                self.assertShownIsLogged(workspace, told)
                self.assertGoesOn(workspace)

    def test_killed_between_two_renames_the_next_run_says_which_files_changed(self) -> None:
        for number, changed in ((1, 0), (2, 1), (3, 2), (5, 1)):
            workspace = self.new_workspace(number)
            told = killed_after(workspace, 0, lambda number=number: kill_at_rename(number))  # type: ignore[misc]
            versions = [version_of(workspace / name) for name in NAMES]
            with self.subTest(rename=number):
                self.assertEqual(sum(version == max(versions) for version in versions) % len(NAMES), changed)
                self.assertShownIsLogged(workspace, told)
                self.assertGoesOn(workspace)

    def assertShownIsLogged(self, workspace: Path, told: list[bytes]) -> None:
        seen = [int(line) for line in told if line.isdigit()]
        logs = list(workspace.glob(".mini_agent/sessions/*.jsonl"))
        last = max((len(read_log(log)) for log in logs), default=0)
        self.assertLessEqual(max(seen, default=0), last)
        self.assertEqual(seen, list(range(seen[0], seen[0] + len(seen))) if seen else [])

    def assertGoesOn(self, workspace: Path) -> None:
        for name in NAMES:
            version_of(workspace / name)
        agent = open_scripted(workspace, said("It goes on."))
        conversation = agent.conversation
        self.assertEqual(generated.problem_of(conversation.visible_messages()), "")
        self.assertEqual(conversation.files_in_flight, ())
        self.assertEqual(list(workspace.glob(f"{TEMPORARY_PREFIX}*")), [])
        self.assertFilesAreTold(agent, workspace)
        self.assertEqual(agent.run_turn("go on").answer, "It goes on.")
        agent.close()
        self.assertEqual(Session(EventLog(agent.files.log_path)).conversation, conversation)

    def assertFilesAreTold(self, agent: Agent, workspace: Path) -> None:
        """Check that files in different versions are so because the log says that some changes were not made."""
        events = [entry.event for entry in read_log(agent.files.log_path)]
        versions = {version_of(workspace / name) for name in NAMES}
        if len(versions) > 1:
            changed = [event for event in events if isinstance(event, FilesChanged)]
            results = [event.text for event in events if isinstance(event, ToolResultAdded)]
            self.assertLess(len(changed[-1].files), len(NAMES))
            self.assertTrue(any("the change was not made" in text for text in results))
