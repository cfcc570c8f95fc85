"""Answers that were damaged at random: each comes to a reply or a `ModelError`, and no call runs that is not whole."""

from __future__ import annotations

import json
import os
import random
import unittest
from pathlib import Path
from typing import Any

from mini_agent.conversation.messages import AssistantMessage, ToolCall
from mini_agent.model.chat_model import ModelError
from mini_agent.model.openai_chat import read_reply, render_request
from mini_agent.model.server_errors import Server, error_from_answer, error_inside
from mini_agent.model.streaming import StreamCut, read_stream
from mini_agent.model.text_calls import find_text_calls
from mini_agent.model.tool_protocol import TextProtocol
from mini_agent.model.untrusted_json import parse_json

COUNT = 20_000 if os.environ.get("MINI_AGENT_LONG_TESTS") == "1" else 500
SEED = int(os.environ.get("MINI_AGENT_TEST_SEED", "7"))
NAMES = ["read_file", "apply_patch"]
SERVER = Server("http://127.0.0.1:1/v1", "sk-secret-key")
CALL = '{"name": "read_file", "arguments": {"path": "notes/a.txt"}}'
TEXTS = (
    CALL,
    "{" + CALL + "}",
    f"I look.\n```json\n{CALL}\n```\n",
    f"<tool_call>\n{CALL}\n</tool_call>",
    f"<tools>\n{CALL}\n</tools>",
    f"```tool_call\n{CALL}\n```",
    "<function=read_file>\n<parameter=path>\nnotes/a.txt\n</parameter>\n</function>\n</tool_call>",
    '<|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{"path": "notes/a.txt"}<|tool_call_end|>',
)
PIECES = (
    *(
        b"",
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
        b"\\",
        b"\n",
        b"```",
        b"<",
        b">",
        b"null",
        b"\xff",
        b"\\ud800",
        b"e999",
        b"NaN",
    ),
    *(b"9" * 5000, b"[" * 3000, b"<tool_call>", b"tool_call\n", b"read_file"),
)


def bodies() -> list[bytes]:
    """Return good answers: those of the wire cases, and calls in every form of text."""
    cases = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(__file__).with_name("wire").iterdir())
    ]
    found = [json.dumps(answer["json"]) for case in cases for answer in case["answers"] if "json" in answer]
    for text in TEXTS:
        found.append(json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}))
    return [body.encode("utf-8") for body in found]


def mutated(rng: random.Random, body: bytes) -> bytes:
    for _ in range(rng.randrange(1, 4)):
        start = rng.randrange(len(body) + 1)
        body = body[:start] + rng.choice(PIECES) + body[start + rng.choice((0, 0, 1, 2, 10)) :]
    return body[: rng.randrange(len(body) + 1)] if rng.random() < 0.1 else body


def calls_that_may_run(message: AssistantMessage, finish_reason: str = "stop") -> list[ToolCall]:
    found = find_text_calls(message, NAMES, finish_reason)
    calls = [*message.tool_calls, *TextProtocol().incoming(message, NAMES, finish_reason).tool_calls]
    calls += found.calls if found and not found.doubt else ()
    return [call for call in calls if not call.problem and call.arguments is not None]


class MutatedAnswers(unittest.TestCase):
    def read(self, body: bytes) -> None:
        text = body.decode("utf-8", "replace")
        try:
            answer = parse_json(text)
        except ValueError:  # which the transport tells in one line
            self.assertIsInstance(error_from_answer(500, text, SERVER), ModelError)
            return
        error = error_inside(answer, SERVER)
        self.assertEqual(len(str(error or "x").splitlines()), 1)
        reply = read_reply(answer, NAMES, "m", SERVER.base_url)
        for call in calls_that_may_run(reply.message, reply.finish_reason):
            self.assertIsInstance(call.arguments, dict)
        render_request("m", [reply.message], [])

    def test_each_comes_to_a_reply_or_a_model_error(self) -> None:
        rng, good = random.Random(SEED), bodies()
        for number in range(COUNT):
            body = mutated(rng, rng.choice(good))
            try:
                self.read(body)
            except ModelError:
                pass
            except Exception as error:
                raise AssertionError(f"seed {SEED}, number {number}: {body[:500]!r}") from error

    def test_each_comes_to_that_as_a_stream_too(self) -> None:
        rng, good = random.Random(SEED), bodies()
        for number in range(COUNT // 5):
            lines = [mutated(rng, body.replace(b'"message":', b'"delta":')) for body in rng.choices(good, k=3)]
            data = b"".join(b"data: " + line + b"\n\n" for line in lines) + rng.choice((b"", b"data: [DONE]\n\n"))
            try:
                read_reply(read_stream([data], lambda text: None), NAMES, "m", "")
            except (ModelError, StreamCut, ValueError):
                pass
            except Exception as error:
                raise AssertionError(f"seed {SEED}, number {number}: {data[:500]!r}") from error


class CutAnswers(unittest.TestCase):
    def check(self, message: AssistantMessage, finish_reason: str = "stop") -> None:
        for call in calls_that_may_run(message, finish_reason):
            self.assertEqual((call.name, call.arguments), ("read_file", {"path": "notes/a.txt"}), message)

    def test_a_text_cut_anywhere_holds_no_call_but_the_whole_one(self) -> None:
        for text in TEXTS:
            for end in range(len(text)):
                self.check(AssistantMessage(text[:end]))
            self.assertTrue(calls_that_may_run(AssistantMessage(text)), text)
            self.assertEqual(calls_that_may_run(AssistantMessage(text), "length"), [], text)

    def test_arguments_cut_anywhere_are_no_call(self) -> None:
        arguments = '{"path": "notes/a.txt"}'
        for end in range(1, len(arguments)):
            function: Any = {"name": "read_file", "arguments": arguments[:end]}
            answer = {"choices": [{"message": {"tool_calls": [{"id": "1", "function": function}]}}]}
            self.assertEqual(calls_that_may_run(read_reply(answer, NAMES, "m", "").message), [])


if __name__ == "__main__":
    unittest.main()
