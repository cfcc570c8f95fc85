"""A session against a server that fails in every way at random: each turn ends in the right answer or one line."""

from __future__ import annotations

import json
import os
import random
import re
import time
from typing import Any

from mini_agent.composition import Agent, open_agent
from mini_agent.conversation.messages import UserMessage
from mini_agent.session.event_log import EventLog
from mini_agent.session.session import Session
from mini_agent.settings import Settings
from tests.command_line import CommandLineTestCase
from tests.generated import problem_of
from tests.model.loopback import Answer, Handler, Loopback, completion, plain, raw, reset

TURNS = 500 if os.environ.get("MINI_AGENT_LONG_TESTS") == "1" else 50
SEED = int(os.environ.get("MINI_AGENT_TEST_SEED", "5"))
KEY = "sk-Chaos-0123456789"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def message_of(request: Any) -> dict[str, Any]:
    """Return what a good server answers: first a call, then the number that it was asked for."""
    asked = [
        message["content"] for message in request["messages"] if re.fullmatch(r"turn \d+", message["content"] or "")
    ]
    number = int(asked[-1].split()[1])
    if number % 3 == 0 and request["messages"][-1]["content"] == asked[-1]:
        call = {"id": f"c{number}", "function": {"name": "read_file", "arguments": '{"path": "a.txt"}'}}
        return {"content": "I look.", "tool_calls": [call]}
    return {"content": f"answer {number}"}


def streamed(message: dict[str, Any]) -> bytes:
    text = message["content"]
    calls = [{"index": number, **call} for number, call in enumerate(message.get("tool_calls", ()))]
    deltas = [({"content": text[:3]}, None), ({"content": text[3:]}, None), ({"tool_calls": calls}, "stop")]
    choices = [{"choices": [{"delta": delta, "finish_reason": reason}]} for delta, reason in deltas]
    return b"".join(b"data: %s\n\n" % json.dumps(each).encode() for each in choices) + b"data: [DONE]\n\n"


class ChaosTest(CommandLineTestCase):
    def setUp(self) -> None:
        super().setUp()
        (self.workspace / "a.txt").write_text("content\n", encoding="utf-8")
        self.rng = random.Random(SEED)

    def answer(self, handler: Handler) -> None:
        """Give the good answer, or fail in one of many ways."""
        request = json.loads(handler.loopback.bodies[-1])
        message = message_of(request)
        whole = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        stream = STREAM_HEAD + streamed(message)
        good = raw(stream) if "stream" in request else plain(200, whole)
        cut = self.rng.randrange(20, len(whole))
        ways: list[tuple[int, Answer]] = [
            (40, good),
            (50, plain(503, f"no room for {KEY}")),
            (3, reset),
            (3, raw(stream[: self.rng.randrange(len(STREAM_HEAD), len(stream) - 80)])),
            (3, plain(200, whole, {"Content-Length": str(len(whole) + 9)})),
            (3, plain(200, whole[:cut])),
            (2, plain(200, "")),
            (2, plain(200, '{"error": {"message": "busy", "code": 502}}')),
            (1, plain(429, "", {"Retry-After": "3600"})),
            (1, plain(400, f'{{"error": "what is {KEY}?"}}')),
            (1, plain(307, "", {"Location": self.other.base_url})),
            (1, plain(200, "<html><title>Log in</title></html>")),
            (1, self.drip(whole)),
        ]
        way = self.rng.choices([way for _, way in ways], [weight for weight, _ in ways])[0]
        way(handler)

    def drip(self, data: bytes) -> Answer:
        def answer(handler: Handler) -> None:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data))
            for position in range(len(data)):
                handler.wfile.write(data[position : position + 1])
                if handler.loopback.closing.wait(0.05):
                    return

        return answer

    def test_each_turn_ends_in_the_right_answer_or_one_clear_line(self) -> None:
        shown: list[str] = []
        with Loopback(completion()) as self.other, Loopback(self.answer) as server:
            settings = Settings(
                self.workspace,
                "m",
                KEY,
                server.base_url,
                0.5,
                0.8,
                context_window_tokens=1_000_000,
                tool_protocol="native",
            )
            agent = open_agent(settings, on_text=shown.append, listeners=[lambda entry: shown.append(entry.to_line())])
            agent.runner.model._transport.first_wait_seconds = 0.002  # type: ignore[attr-defined]
            for number in range(TURNS):
                with self.subTest(seed=SEED, turn=number):
                    self.run_turn(agent, number, shown)
            agent.close()
            self.assertEqual(self.other.requests, [])
        self.check_history(agent)
        for path in self.workspace.rglob("*"):
            self.assertTrue(path.is_dir() or KEY.encode() not in path.read_bytes(), path)
        self.assertNotIn(KEY, "".join(shown))

    def run_turn(self, agent: Agent, number: int, shown: list[str]) -> None:
        started = time.monotonic()
        result = agent.run_turn(f"turn {number}")
        self.assertLess(time.monotonic() - started, 20)  # two requests of 0.8 seconds, on a machine that is busy
        shown.append(result.reason)
        if result.status == "completed":
            self.assertEqual(result.answer, f"answer {number}")
        else:
            self.assertEqual((result.status, len(result.reason.splitlines())), ("failed", 1))

    def check_history(self, agent: Agent) -> None:
        messages = list(agent.conversation.visible_messages())
        asked = [message.text for message in messages if isinstance(message, UserMessage)]
        self.assertEqual(asked, [f"turn {number}" for number in range(TURNS)])
        self.assertEqual(problem_of(messages), "")
        self.assertEqual(Session(EventLog(agent.files.log_path)).conversation, agent.conversation)
