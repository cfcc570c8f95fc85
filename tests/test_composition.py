from __future__ import annotations

import contextlib
import io
import json
import re
import signal
import threading
from typing import Any
from unittest import mock

from mini_agent import composition
from mini_agent.composition import open_agent
from mini_agent.conversation.events import Notice
from mini_agent.model.scripted import ScriptedModel
from mini_agent.session.event_log import LogEntry
from mini_agent.settings import Settings, SettingsError
from tests.command_line import CommandLineTestCase, call
from tests.model.loopback import Loopback, completion, plain
from tests.scripted import call as tool_call
from tests.scripted import said

KEY = 'sk-Test-0123456789"\\x'


class LibraryTest(CommandLineTestCase):
    def open(self, *steps: Any, **options: Any) -> composition.Agent:
        agent = open_agent(Settings(workspace=self.workspace), model=ScriptedModel(steps), **options)
        self.addCleanup(agent.close)
        return agent

    def test_the_example_in_the_docstring_runs(self) -> None:
        example = "\n".join(re.findall(r"^    (.*)$", composition.__doc__ or "", re.MULTILINE))
        out = io.StringIO()
        with Loopback(completion("It sets 8080.")) as server, contextlib.redirect_stdout(out):
            example = example.replace("http://127.0.0.1:8080/v1", server.base_url).replace(
                "some/project", str(self.workspace)
            )
            exec(example, {})
        self.assertIn("UserMessageAdded(text='Which port", out.getvalue())
        self.assertTrue(out.getvalue().endswith("\nIt sets 8080.\n"))

    def test_two_agents_in_one_process_know_nothing_of_each_other(self) -> None:
        first, second = self.open(said("one"), said("three")), self.open(said("two"))
        answers = [agent.run_turn("go").answer for agent in (first, second, first)]
        self.assertEqual(answers, ["one", "two", "three"])
        self.assertEqual([agent.conversation.turn_count for agent in (first, second)], [2, 1])

    def test_nothing_of_the_process_is_changed_for_good(self) -> None:
        def state() -> Any:
            for thread in threading.enumerate():
                if thread.name == "retention":  # of this test or of one before: it ends by itself
                    thread.join()
            return [signal.getsignal(number) for number in signal.valid_signals()], threading.active_count()

        before = state()
        agent = self.open(said("", tool_call("list_files")), said("one"))
        agent.run_turn("go")
        agent.close()
        self.assertEqual(state(), before)

    def test_answers_are_streamed_where_somebody_looks_on_or_it_is_set(self) -> None:
        look: Any = lambda delta: None  # noqa: E731
        for stream, on_text, streams in (
            ("auto", look, True),
            ("auto", None, False),
            ("on", None, True),
            ("off", look, False),
        ):
            with self.subTest(stream=stream, looks=bool(on_text)), Loopback(completion("hi")) as server:
                settings = Settings(
                    self.workspace, "m", base_url=server.base_url, context_window_tokens=8192, stream=stream
                )
                agent = open_agent(settings, on_text=on_text)
                self.assertEqual(agent.run_turn("go").answer, "hi")
                agent.close()
                self.assertEqual("stream" in json.loads(server.bodies[0]), streams)

    def test_a_listener_that_fails_stops_nothing(self) -> None:
        def fail(entry: LogEntry) -> None:
            raise ZeroDivisionError

        seen: list[LogEntry] = []
        agent = self.open(said("one"), listeners=[fail, seen.append])
        self.assertEqual(agent.run_turn("go").answer, "one")
        self.assertEqual(len([entry for entry in seen if isinstance(entry.event, Notice)]), 1)

    def test_a_turn_after_an_interrupted_one_runs(self) -> None:
        agent = self.open(mock.Mock(side_effect=KeyboardInterrupt), said("two"))
        self.assertEqual([agent.run_turn("go").status for _ in range(2)], ["interrupted", "completed"])

    def test_ctrl_c_while_the_window_is_asked_for_ends_the_turn(self) -> None:
        agent = open_agent(Settings(workspace=self.workspace, model="m", base_url="http://127.0.0.1:9/v1"))
        self.addCleanup(agent.close)
        with mock.patch.object(composition.OpenAIChatModel, "server_window_tokens", side_effect=KeyboardInterrupt):
            self.assertEqual(agent.run_turn("go").status, "interrupted")
        self.assertEqual(agent.conversation.turn_count, 1)

    def test_a_script_or_a_log_that_cannot_be_opened_is_told(self) -> None:
        with self.assertRaisesRegex(SettingsError, "MINI_AGENT_SCRIPT: .*No such file"):
            open_agent(Settings(workspace=self.workspace, script=self.folder / "none.json"))


class KeyTest(CommandLineTestCase):
    """The key is in no file, no event, no error and no answer, wherever it comes from."""

    def written(self) -> bytes:
        """Return every byte that is in a file of the session."""
        return b"".join(
            path.read_bytes() for path in self.workspace.rglob("*") if ".mini_agent" in path.parts and path.is_file()
        )

    def test_it_is_masked_wherever_it_turns_up(self) -> None:
        for name in ("notes.txt", "AGENTS.md"):
            (self.workspace / name).write_text(f"The key is {KEY}.\n")
        (self.workspace / KEY.replace("\\", "")).write_text("")
        self.environment.update(OPENAI_API_KEY=KEY, MINI_AGENT_SYSTEM_PROMPT=f"Use {KEY}.")
        self.script(
            call("read_file", path="notes.txt"), call("grep", pattern=KEY, include_protected=True), f"It is {KEY}."
        )
        ran = self.run_here("-p", f"Is it {KEY}?", "--output", "events")
        self.assertEqual(ran.code, 0)
        for key in (KEY, KEY.replace("\\", "\\\\").replace('"', '\\"')):
            self.assertNotIn(key.encode(), self.written())
            self.assertNotIn(key, ran.out)
        self.assertGreater(ran.out.count("[the API key, masked]"), 5)

    def test_a_server_that_sends_it_back_gets_it_into_nothing(self) -> None:
        key = "sk-Test-0123456789"
        self.environment["OPENAI_API_KEY"] = key
        answers = [plain(401, f'{{"error": {{"message": "bad key {key}"}}}}'), completion(f"Your key is {key}.")]
        with Loopback(*answers) as server:
            flags = ["--base-url", server.base_url, "--model", "m", "--context-window", "9000"]
            for code in (1, 0):
                ran = self.run_here(*flags, "-p", "x", "--output", "json")
                self.assertEqual(ran.code, code)
                self.assertNotIn(key, ran.out + ran.err)
                self.assertIn("key]", ran.out)
            self.assertEqual(server.requests[0].headers["Authorization"], f"Bearer {key}")
        self.assertNotIn(key.encode(), self.written())

    def test_a_word_that_stands_for_no_key_is_left_alone(self) -> None:
        for word in ("local", "assistant_message_added", "not_needed", "12345"):
            self.environment["OPENAI_API_KEY"] = word
            self.script(f"It says {word}.")
            self.assertEqual(self.run_here("-p", word).out, f"It says {word}.\n")
