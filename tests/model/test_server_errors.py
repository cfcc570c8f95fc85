from __future__ import annotations

import json
import time
import unittest
from typing import Any

from mini_agent.model.chat_model import (
    BadRequest,
    ContextOverflow,
    ModelError,
    RateLimited,
    Refused,
    ServerFailed,
    ToolsRefused,
)
from mini_agent.model.server_errors import Server, error_from_answer, error_inside

SERVER = Server("https://api.example/v1", "sk-0123456789")


def error(status: int, body: Any, server: Server = SERVER) -> ModelError:
    return error_from_answer(status, body if isinstance(body, str) else json.dumps(body), server)


class Kinds(unittest.TestCase):
    def test_the_status_tells_the_kind(self) -> None:
        for kind, statuses in (
            (Refused, (301, 401, 402, 403, 404, 405)),
            (BadRequest, (400, 406, 413, 422)),
            (RateLimited, (429,)),
            (ServerFailed, (408, 409, 425, 500, 502, 503, 504, 529)),
        ):
            for status in statuses:
                with self.subTest(status=status):
                    self.assertIs(type(error(status, "no")), kind)

    def test_an_empty_account_is_refused_and_not_rate_limited(self) -> None:
        self.assertIs(type(error(429, {"error": {"message": "x", "code": "insufficient_quota"}})), Refused)
        self.assertIs(type(error(429, {"error": {"message": "x", "type": "insufficient_quota"}})), Refused)

    def test_an_error_with_status_200_has_the_kind_of_its_code(self) -> None:
        for code, kind in ((429, RateLimited), ("503", ServerFailed), (None, BadRequest), (7, BadRequest)):
            found = error_inside({"error": {"message": "m", "code": code}}, SERVER)
            self.assertIs(type(found), kind)
        found = error_inside({"choices": [{"error": {"code": 502, "message": "upstream"}}]}, SERVER)
        self.assertIs(type(found), ServerFailed)
        self.assertIn("upstream", str(found))
        self.assertIs(type(error_inside([{"error": {"code": 401}}], SERVER)), Refused)

    def test_an_answer_without_an_error_has_none_inside(self) -> None:
        for answer in ({}, {"error": None}, {"error": {}}, {"choices": [{"error": None}]}, None, [], [1, 2], "error"):
            with self.subTest(answer=answer):
                self.assertIsNone(error_inside(answer, SERVER))


class Overflow(unittest.TestCase):
    def test_each_servers_words_are_recognised_with_the_window_that_they_name(self) -> None:
        for status, words, window in (
            (400, "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens", 8192),
            (400, "This endpoint's maximum context length is 32,768 tokens. However, about 40,000 were sent", 32768),
            (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 4096),
            (400, "the request exceeds the available context size (2048 tokens), try increasing it", 2048),
            (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1048576),
            (400, "prompt is too long: 210000 tokens > 200000 maximum", 200000),
            (400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 32768),
            (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131072),
            (400, "The model is loaded with context length of only 4096 tokens", 4096),
            (422, "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 and 20", 4096),
            (400, "Invalid request: Your request exceeded model token limit: 262144", 262144),
            (400, "Range of input length should be [1, 30720]", 30720),
            (400, "Input is too long for requested model.", None),
            (413, "Request Entity Too Large", None),
        ):
            with self.subTest(words):
                found = error(status, {"error": {"message": words}})
                assert isinstance(found, ContextOverflow), found
                self.assertEqual(found.window_tokens, window)

    def test_the_code_tells_it_whatever_the_words_and_the_status(self) -> None:
        for body, window in (
            ({"error": {"code": "context_length_exceeded", "message": "no"}}, None),
            ({"error": {"type": "exceed_context_size_error", "message": "no", "n_ctx": 512}}, 512),
            ({"error": {"message": "no", "n_ctx": "?"}}, None),
        ):
            for status in (400, 500):
                found = error(status, body)
                assert isinstance(found, ContextOverflow), found
                self.assertEqual(found.window_tokens, window)

    def test_rates_and_other_lengths_are_no_overflow(self) -> None:
        for status, words in (
            (429, "This model's maximum context length is 8192 tokens"),
            (500, "context length exceeded"),
            (413, "Request too large for model: tokens per minute (TPM): Limit 6000, requested 9001"),
            (400, "You exceeded your quota: the prompt is too long for your plan"),
            (400, "'messages[2].tool_calls[0].id': string too long. Expected maximum length 40"),
            (400, "Invalid 'tools': array too long. Expected an array with maximum length 128"),
            (400, "max_tokens is too large: 9000"),
            (404, "there is no context window for this model"),
        ):
            with self.subTest(words):
                self.assertNotIsInstance(error(status, {"error": {"message": words}}), ContextOverflow)


class Words(unittest.TestCase):
    def test_the_servers_own_words_are_found_in_each_shape(self) -> None:
        for body in (
            {"error": {"message": "the words"}},
            {"error": "the words"},
            {"message": "the words", "code": 400},
            {"detail": "the words"},
            {"detail": [{"loc": ["body"], "msg": "the words"}]},
            {"error": {"message": '{"error": {"message": "the words"}}'}},
            {"error": {"message": "", "metadata": {"raw": '{"message": "the words"}'}}},
            [{"error": {"message": "the words"}}],
            "the words",
            "<html><head><TITLE>\n the words</TITLE></head><body>and more</body></html>",
            "<html><body><h1>the words</h1></body></html>",
        ):
            with self.subTest(body=body):
                self.assertEqual(str(error(400, body)), "https://api.example answered 400: the words")

    def test_a_routers_error_shows_the_makers_words_too(self) -> None:
        body = {"error": {"message": "Provider returned error", "metadata": {"raw": "model is overloaded"}}}
        self.assertIn("Provider returned error (model is overloaded)", str(error(503, body)))

    def test_without_words_the_meaning_of_the_status_stands_there(self) -> None:
        for body in ("", "   ", {}, {"error": {}}, {"error": None}):
            with self.subTest(body=body):
                self.assertIn("503", str(error(503, body)))
        self.assertIn("Service Unavailable", str(error(503, "")))

    def test_a_line_is_one_short_line_without_control_characters(self) -> None:
        found = str(error(400, "a\r\nb\x1b[31m\x07\u202e\ud800\x9b" + "x" * 100_000))
        self.assertTrue(found.isprintable())
        self.assertIn("a b\\x1b[31m\\x07\\u202e\\ud800\\x9b", found)
        self.assertLess(len(found), 400)

    def test_the_key_is_taken_out_before_the_words_are_cut(self) -> None:
        for padding in range(280, 301):
            found = str(error(400, "x" * padding + SERVER.api_key))
            self.assertNotIn("sk-0", found)
        self.assertNotIn(SERVER.api_key, repr(SERVER))

    def test_hostile_pages_take_no_time(self) -> None:
        started = time.monotonic()
        for body in (
            "<html" * 200_000,
            "<title" * 200_000,
            "<html>" + "<" * 1_000_000,
            "1" * 1_000_000,
            "context " * 99_999,
        ):
            error(400, body)
            error(400, {"error": {"message": body}})
        self.assertLess(time.monotonic() - started, 10)


class Hints(unittest.TestCase):
    def test_a_wrong_and_a_missing_key_are_told_apart(self) -> None:
        self.assertIn("Check OPENAI_API_KEY.", str(error(401, "no")))
        self.assertIn("set OPENAI_API_KEY", str(error(401, "no", Server("https://api.example/v1"))))

    def test_an_unknown_model_and_a_wrong_path_are_told_apart(self) -> None:
        unknown = {"error": {"message": "The model `x` does not exist", "code": "model_not_found"}}
        self.assertIn("Check OPENAI_MODEL.", str(error(404, unknown)))
        self.assertIn("Check OPENAI_MODEL.", str(error(400, unknown)))
        self.assertIn("Check OPENAI_MODEL.", str(error(404, {"error": 'model "x" not found, try pulling it first'})))
        self.assertIn("Check OPENAI_BASE_URL.", str(error(404, "Not Found")))

    def test_the_path_that_is_missing_or_too_much_is_named(self) -> None:
        self.assertIn("OPENAI_BASE_URL=http://h:1/v1.", str(error(404, "Not Found", Server("http://h:1"))))
        too_much = Server("http://h:1/v1/chat/completions")
        self.assertIn("before /chat/completions", str(error(404, "Not Found", too_much)))

    def test_a_refusal_of_tools_is_told_from_other_bad_requests_with_how_to_start_the_server(self) -> None:
        for status, words, hint in (
            (
                400,
                '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
                "Start vLLM",
            ),
            (500, "tools param requires --jinja flag", "Start llama-server"),
            (400, "registry.ollama.ai/library/m does not support tools", "PROTOCOL=text"),
            (404, "No endpoints found that support tool use.", "PROTOCOL=text"),
            (400, "`tools` is not supported by this model", "PROTOCOL=text"),
            (400, "Function calling is not enabled, tools are not supported", "PROTOCOL=text"),
            (422, "Unrecognized request argument supplied: tools", "PROTOCOL=text"),
        ):
            with self.subTest(words):
                found = error(status, {"error": {"message": words}})
                self.assertIs(type(found), ToolsRefused)
                self.assertIn(hint, str(found))
        self.assertIs(type(error(422, {"detail": [{"loc": ["body", "tools"], "msg": "Extra inputs"}]})), ToolsRefused)
        self.assertIs(type(error(400, {"error": {"message": "no", "param": "tool_choice"}})), ToolsRefused)
        for status, words in (
            (400, "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"),
            (400, "max_tokens is not supported"),
            (503, "tools are not supported"),
        ):
            self.assertIsNot(type(error(status, {"error": {"message": words}})), ToolsRefused, words)

    def test_where_ollama_is_expected_it_is_named(self) -> None:
        self.assertIn("ollama serve", Server("http://127.0.0.1:11434/v1").silence_hint())
        self.assertIn("is the server running?", Server("http://127.0.0.1:8080/v1").silence_hint())
        self.assertIn("OPENAI_BASE_URL", Server("https://api.example/v1").silence_hint())


class Addresses(unittest.TestCase):
    def test_this_machine_is_told_from_others(self) -> None:
        for host in ("127.0.0.1", "127.9.9.9", "localhost", "LOCALHOST", "a.localhost", "[::1]"):
            self.assertTrue(Server(f"http://{host}:80/v1").is_loopback, host)
        for host in ("128.0.0.1", "localhost.example", "10.0.0.1", "[fe80::1]", "127.0.0.1.example"):
            self.assertFalse(Server(f"http://{host}:80/v1").is_loopback, host)
