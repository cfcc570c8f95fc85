"""What servers really answer: each case in wire/ goes through the real transport into a whole turn of the runner.

A case is a file: the `answers` of a server, and what must come of them (`want`):
`calls` run with these arguments; `text` is the answer; `feedback` is told to the model, and nothing runs;
`feedback_or_calls` either; `error` is in the one line that the turn fails with; `overflow` (with its `window`) is
recognised, or not; `echo`, `echo_in_call`: the next request carries this field back; `requests` were made;
`empty`: asked again once, then an error.
"""

from __future__ import annotations

import itertools
import json
import tempfile
import unittest
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mini_agent.agent.runner import AgentRunner, TurnResult
from mini_agent.model.chat_model import ContextOverflow, ToolsRefused
from mini_agent.model.openai_chat import OpenAIChatModel
from mini_agent.model.tool_protocol import TextProtocol
from mini_agent.model.transport import Transport
from mini_agent.session.event_log import EventLog
from mini_agent.session.session import Session
from mini_agent.tools.tool import Parameter, ToolOutcome
from mini_agent.tools.toolbox import Toolbox
from tests.model.loopback import Loopback, completion, from_case

CASES = sorted(Path(__file__).with_name("wire").glob("*.json"))


class KeepingTool:
    """A tool that keeps the arguments it is run with. Its one parameter may be left out."""

    description = "A tool."
    time_limit_seconds = 10.0
    narrowing = ""

    def __init__(self, name: str, parameter: str, ran: list[Any]) -> None:
        self.name = name
        self.only_reads = name == "read_file"
        self.parameters = (Parameter(parameter, "string", "What to work on."),)
        self._ran = ran

    def run(self, arguments: Mapping[str, Any]) -> ToolOutcome:
        given = {name: value for name, value in arguments.items() if value is not None}
        self._ran.append([self.name, given])
        return ToolOutcome("content")


class Turn:
    """One turn against a server that gives a case's answers, and then says "hi"."""

    def __init__(self, case: dict[str, Any], folder: Path, stream: str) -> None:
        self.stream = stream
        self.ran: list[Any] = []
        self.overflows: list[ContextOverflow] = []
        answers = [from_case(answer) for answer in case["answers"]]
        ends_by_itself = len(answers) > 1 or "error" in case["want"] or "empty" in case["want"]
        with Loopback(*answers, *(() if ends_by_itself else (completion(),))) as server:
            self.result = self._run(server, folder)
            self.requests = [json.loads(body) for body in server.bodies]

    def _run(self, server: Loopback, folder: Path) -> TurnResult:
        transport = Transport(server.base_url, "", timeout_seconds=5, request_deadline_seconds=20)
        transport.first_wait_seconds = 0.001
        tools = [KeepingTool("read_file", "path", self.ran), KeepingTool("apply_patch", "patch", self.ran)]
        session = Session(EventLog(folder / "log.jsonl"))
        try:
            self.model = OpenAIChatModel(transport, "m", server.base_url, None, self.stream)
            runner = AgentRunner(
                self.model, Toolbox(tools), session, self._make_room, change_protocol=self._change_protocol
            )
            return runner.run_turn("Read a.txt")
        finally:
            session.log.close()

    def _change_protocol(self, refusal: ToolsRefused | None = None, is_certain: bool = False) -> bool:
        if refusal:
            self.model.protocol = TextProtocol()
        return refusal is not None

    def _make_room(self, conversation: Any, record: Any, ask: Any, overflow: ContextOverflow | None = None) -> bool:
        if overflow is not None:
            self.overflows.append(overflow)
        return overflow is not None


class WireCases(unittest.TestCase):
    def test_every_recorded_answer_comes_to_what_it_should(self) -> None:
        self.assertGreater(len(CASES), 40)
        for path, stream in itertools.product(
            CASES, ("off", "auto")
        ):  # a server may answer a stream as if it were none
            text = path.read_text(encoding="utf-8")
            case = json.loads(text.replace('"Retry-After": "1"', '"Retry-After": "0"'))  # waiting has a test of its own
            with self.subTest(path.name, stream=stream), tempfile.TemporaryDirectory() as folder:
                turn = Turn(case, Path(folder), stream)
                for key, wanted in case["want"].items():
                    getattr(self, f"check_{key}")(turn, wanted)

    def check_calls(self, turn: Turn, wanted: Any) -> None:
        self.assertEqual(turn.ran, wanted)
        self.assertEqual((turn.result.status, turn.result.answer), ("completed", "hi"))
        calls = [call for message in turn.requests[-1]["messages"] for call in message.get("tool_calls", ())]
        for call in calls:
            self.assertTrue(call["id"])
            self.assertIsInstance(json.loads(call["function"]["arguments"]), dict)

    def check_text(self, turn: Turn, wanted: Any) -> None:
        self.assertEqual((turn.result.status, turn.result.answer), ("completed", wanted))

    def check_feedback(self, turn: Turn, wanted: Any) -> None:
        self.assertEqual(turn.ran, [])
        self.assertIn(wanted, turn.requests[1]["messages"][-1]["content"])
        self.assertEqual(turn.result.status, "completed")

    def check_feedback_or_calls(self, turn: Turn, wanted: Any) -> None:
        self.assertEqual([name for name, _ in turn.ran], [wanted])

    def check_error(self, turn: Turn, wanted: Any) -> None:
        self.assertEqual(turn.result.status, "failed")
        self.assertIn(wanted, turn.result.reason)
        self.assertEqual(len(turn.result.reason.splitlines()), 1)

    def check_empty(self, turn: Turn, wanted: Any) -> None:
        self.assertEqual((turn.result.kind, len(turn.requests)), ("empty_reply", 2))

    def check_overflow(self, turn: Turn, wanted: Any) -> None:
        self.assertEqual(len(turn.overflows), 1 if wanted else 0)

    def check_window(self, turn: Turn, wanted: Any) -> None:
        self.assertEqual(turn.overflows[0].window_tokens, wanted)

    def check_requests(self, turn: Turn, wanted: Any) -> None:
        self.assertEqual(len(turn.requests), wanted)

    def check_echo(self, turn: Turn, wanted: Any) -> None:
        self.assertEqual(turn.requests[1]["messages"][1][wanted], "think")

    def check_echo_in_call(self, turn: Turn, wanted: Any) -> None:
        [call] = turn.requests[1]["messages"][1]["tool_calls"]
        self.assertEqual(call[wanted], {"google": {"thought_signature": "c2lnbmF0dXJl"}})
