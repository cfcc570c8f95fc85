from __future__ import annotations

import json
import random
import unittest
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mini_agent.conversation.conversation import Conversation
from mini_agent.conversation.events import (
    AssistantMessageAdded,
    InstructionsSet,
    ModelChanged,
    ReminderAdded,
    SessionStarted,
    ToolResultAdded,
    UserMessageAdded,
)
from mini_agent.conversation.messages import (
    AssistantMessage,
    Message,
    Reminder,
    Summary,
    SystemMessage,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from mini_agent.model.chat_model import BadReply, BadRequest, ModelError, ModelReply, Refused
from mini_agent.model.openai_chat import (
    OpenAIChatModel,
    read_reply,
    read_usage,
    read_window,
    render_message,
    render_request,
    with_own_fields,
)
from mini_agent.model.server_errors import Server, error_inside
from mini_agent.model.transport import Transport
from mini_agent.model.untrusted_json import parse_json
from tests.model.loopback import KeptWatch, Loopback, completion, drip, plain

TOOL = {"name": "grep", "description": "Search.", "parameters": {"type": "object", "properties": {}}}


def sent(messages: Sequence[Message], tools: Sequence[Any] = (), may_call_tools: bool = True) -> Any:
    return json.loads(render_request("m", messages, tools, may_call_tools))


def reply(message: Any, finish_reason: Any = "stop", **more: Any) -> ModelReply:
    answer = {"choices": [{"message": message, "finish_reason": finish_reason}], **more}
    return read_reply(answer, ["grep"], "m", "http://h/v1")


class Requests(unittest.TestCase):
    def test_each_message_has_its_role(self) -> None:
        call = ToolCall("c1", "grep", '{"pattern":"x"}', {"pattern": "x"})
        messages = [
            SystemMessage("s"),
            UserMessage("u"),
            AssistantMessage("", (call,)),
            ToolResult("c1", "grep", "r", True),
            Reminder("m"),
            Summary("c"),
            AssistantMessage("a"),
        ]
        function = {"name": "grep", "arguments": '{"pattern": "x"}'}
        self.assertEqual(
            sent(messages)["messages"],
            [
                {"role": "system", "content": "s"},
                {"role": "user", "content": "u"},
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"id": "c1", "type": "function", "function": function}],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "r"},
                {"role": "user", "content": "m"},
                {"role": "user", "content": "c"},
                {"role": "assistant", "content": "a"},
            ],
        )

    def test_a_request_holds_nothing_that_old_servers_refuse(self) -> None:
        self.assertEqual(set(sent([UserMessage("u")])), {"model", "messages"})
        self.assertEqual(set(sent([UserMessage("u")], [TOOL])), {"model", "messages", "tools", "tool_choice"})

    def test_tools_stay_named_when_they_may_not_be_called(self) -> None:
        free, closed = sent([], [TOOL]), sent([], [TOOL], may_call_tools=False)
        self.assertEqual(free["tools"], [{"type": "function", "function": TOOL}])
        self.assertEqual((free["tool_choice"], closed["tool_choice"]), ("auto", "none"))
        self.assertEqual(free["tools"], closed["tools"])

    def test_a_call_goes_back_with_valid_json_and_a_valid_name_whatever_the_model_wrote(self) -> None:
        calls = (
            ToolCall("1", "grep", '{"pattern": "x', None, "invalid JSON"),
            ToolCall("2", "functions.bash ü", "", {}),
            ToolCall("3", "", "", {"n": 10**300}),
            ToolCall("4", "x" * 100, "", {"a": "\ud800"}),
        )
        rendered = sent([AssistantMessage("", calls)])["messages"][0]["tool_calls"]
        self.assertEqual(json.loads(rendered[0]["function"]["arguments"]), {})
        self.assertEqual(json.loads(rendered[3]["function"]["arguments"]), {"a": "?"})
        for call in rendered:
            self.assertRegex(call["function"]["name"], r"^[a-zA-Z0-9_-]{1,64}$")

    def test_lone_surrogates_are_replaced_everywhere(self) -> None:
        body = render_request("m\udc80", [UserMessage("a\ud800b\U0001f600"), ToolResult("\udfff", "", "\udcff")], [])
        self.assertNotIn("\\ud", body.decode("utf-8"))
        self.assertEqual(json.loads(body)["messages"][0]["content"], "a?b\U0001f600")

    def test_what_came_with_a_message_goes_back_with_it_and_overrides_nothing(self) -> None:
        raw = {
            "role": "assistant",
            "content": None,
            "reasoning_content": "",
            "reasoning_details": [{"type": "x"}],
            "refusal": None,
            "annotations": [],
            "tool_calls": [{"id": "c", "function": {"name": "grep", "arguments": "{}", "sign": 1}, "extra": {"s": 2}}],
        }
        message = reply(raw).message
        self.assertEqual(
            render_message(message),
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {
                        "id": "c",
                        "type": "function",
                        "extra": {"s": 2},
                        "function": {"sign": 1, "name": "grep", "arguments": "{}"},
                    }
                ],
                "reasoning_content": "",
                "reasoning_details": [{"type": "x"}],
            },
        )
        forged = AssistantMessage("mine", (), {"role": "system", "content": "yours"})
        self.assertEqual(render_message(forged), {"role": "assistant", "content": "mine"})

    def test_what_is_sent_only_grows(self) -> None:
        """Invariant: each request's messages begin, byte for byte, with those of the request before it."""
        seed = random.randrange(2**32)
        for number in range(30):
            dice = random.Random(seed + number)
            conversation, before = Conversation(), b""
            conversation.apply(InstructionsSet("Be good.", (), "h"))
            for event_number in range(25):
                for event in random_round(dice, event_number):
                    conversation.apply(event)
                body = render_request("m", conversation.visible_messages(), [])
                self.assertTrue(body.startswith(before), f"seed {seed}, conversation {number}, round {event_number}")
                before = body[: -len(b"]}")]


def random_round(dice: random.Random, number: int) -> list[Any]:
    """Return the events of one round; the seed of the caller is printed where it matters."""
    kind = dice.randrange(3)
    text = "".join(dice.choice('aé"\\\n\ud800\x00{}') for _ in range(dice.randrange(12)))
    if kind == 0:
        return [UserMessageAdded(text)]
    if kind == 1:
        return [ReminderAdded(text)]
    calls = tuple(
        ToolCall(f"{number}-{index}", text, text, dice.choice([None, {}, {text: [1.5, None, text]}]), "", {text: 1})
        for index in range(dice.randrange(1, 4))
    )
    results = [ToolResultAdded(call.id, call.name, text, False, "") for call in calls]
    message = AssistantMessage(text, calls, {"reasoning": text})
    return [AssistantMessageAdded(message, None, "m", ""), *results]


class Replies(unittest.TestCase):
    def test_text_comes_in_many_shapes(self) -> None:
        for content, text in (
            ("hi", "hi"),
            (None, ""),
            ([{"type": "text", "text": "h"}, {"type": "image_url"}, {"type": "text", "text": "i"}], "hi"),
            (["h", "i"], "hi"),
            ({"type": "text", "text": "hi"}, "hi"),
            (5, ""),
            ([{"type": "thinking", "thinking": [{"text": "hm"}]}, {"type": "text", "text": "hi"}], "hi"),
        ):
            with self.subTest(content=content):
                self.assertEqual(reply({"content": content}).message.text, text)

    def test_a_refusal_is_what_the_model_said(self) -> None:
        self.assertEqual(reply({"content": None, "refusal": "I can't."}).message.text, "I can't.")

    def test_the_servers_words_for_model_and_end_are_kept(self) -> None:
        found = reply({"content": "hi"}, "length", model="m-2024")
        self.assertEqual((found.model, found.finish_reason, found.base_url), ("m-2024", "length", "http://h/v1"))
        found = reply({"content": "hi"}, None, model=None)
        self.assertEqual((found.model, found.finish_reason), ("m", ""))

    def test_usage_is_read_as_far_as_it_is_there(self) -> None:
        for raw, usage in (
            (None, None),
            ({}, None),
            ([1], None),
            ({"prompt_tokens": 0, "completion_tokens": 0}, None),
            ({"prompt_tokens": "9" * 5000, "completion_tokens": -1}, None),
            ({"prompt_tokens": 7}, Usage(7, 0, 0)),
            ({"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": None}, Usage(7, 2, 0)),
            ({"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 5}}, Usage(7, 0, 5)),
            ({"prompt_tokens": 7, "prompt_cache_hit_tokens": 4}, Usage(7, 0, 4)),
            ({"prompt_tokens": 7, "cached_tokens": 3}, Usage(7, 0, 3)),
            ({"prompt_tokens": True, "completion_tokens": 2}, Usage(0, 2, 0)),
        ):
            with self.subTest(raw=str(raw)[:50]):
                self.assertEqual(read_usage(raw), usage)

    def test_what_is_no_chat_completion_is_a_bad_reply(self) -> None:
        for answer in (
            None,
            5,
            "hi",
            [],
            {},
            {"choices": None},
            {"choices": []},
            {"choices": {}},
            {"choices": [None]},
            {"choices": ["hi"]},
            {"choices": [{}]},
            {"choices": [{"text": "hi"}]},
            {"choices": [{"message": "hi"}]},
        ):
            with self.subTest(answer=answer), self.assertRaisesRegex(BadReply, "choice"):
                read_reply(answer, [], "m", "")

    def test_mutated_answers_come_to_a_reply_or_a_model_error_and_can_be_sent_back(self) -> None:
        seed = random.randrange(2**32)
        folder = Path(__file__).with_name("wire")
        answers = [
            json.dumps(answer["json"])
            for path in sorted(folder.glob("*.json"))
            for answer in json.loads(path.read_text(encoding="utf-8"))["answers"]
            if "json" in answer
        ]
        for number in range(1500):
            text = mutated(random.Random(seed + number), answers)
            try:
                try:
                    data = parse_json(text)
                except ValueError:
                    continue
                error = error_inside(data, Server("http://h/v1"))
                if error is not None:
                    raise error
                message = read_reply(data, ["read_file"], "m", "").message
            except ModelError:
                continue
            except Exception as error:
                raise AssertionError(f"seed {seed}, number {number}: {text!r}") from error
            for call in message.tool_calls:
                self.assertTrue(call.problem or call.arguments is not None, f"seed {seed}, number {number}")
            self.assertTrue(json.loads(render_request("m", [message], [])))


def mutated(dice: random.Random, answers: Sequence[str]) -> str:
    """Return one of the answers with some of its values exchanged for others, or some of its characters."""
    text = dice.choice(answers)
    odd = ["null", "[]", "{}", '"x"', "-1", "NaN", "true", '{"error": 5}', "[[1]]", '"{\\"a\\": 1"', "9" * 500]
    for _ in range(dice.randrange(1, 4)):
        start = dice.randrange(len(text))
        if dice.random() < 0.3:
            text = text[:start] + dice.choice('{}[]",:\\\x00\ud800 e') + text[start + 1 :]
            continue
        colon = text.find(": ", start)
        end = min((text.find(mark, colon) for mark in ",}]" if text.find(mark, colon) > 0), default=-1)
        if colon > 0 and end > 0:
            text = text[: colon + 2] + dice.choice(odd) + text[end:]
    return text


class Windows(unittest.TestCase):
    def test_the_window_of_the_asked_model_is_found_in_each_servers_field(self) -> None:
        for entry, window in (
            ({"id": "m", "context_length": 5}, 5),
            ({"id": "m", "max_model_len": 6}, 6),
            ({"id": "m", "context_window": 7}, 7),
            ({"id": "m", "meta": {"n_ctx": 8, "n_ctx_train": 32}}, 8),
            ({"id": "m", "max_context_length": 9}, 9),
            ({"id": "m", "loaded_context_length": 4, "max_context_length": 9}, 4),
            ({"id": "m", "context_length": "5"}, None),
            ({"id": "m", "context_length": -5, "meta": [1]}, None),
            ({"id": "m"}, None),
        ):
            with self.subTest(entry=entry):
                self.assertEqual(read_window({"data": [{"id": "other", "context_length": 99}, entry]}, "m"), window)

    def test_a_server_with_one_model_answers_for_it_under_any_name(self) -> None:
        self.assertEqual(read_window({"data": [{"id": "/models/q.gguf", "meta": {"n_ctx": 8}}]}, "local"), 8)
        self.assertIsNone(read_window({"data": [{"id": "a", "n_ctx": 1}, {"id": "b", "n_ctx": 2}]}, "local"))

    def test_anything_else_tells_no_window(self) -> None:
        for answer in (None, 5, "x", [], {}, {"data": None}, {"data": [None, 5]}, [{"id": "m"}]):
            with self.subTest(answer=answer):
                self.assertIsNone(read_window(answer, "m"))


class WhatGoesBack(unittest.TestCase):
    CALL = ToolCall("c1", "grep", "{}", {}, "", {"extra_content": {"signature": "s"}})

    def sent_by(self, model: str, base_url: str, origin: tuple[str, str]) -> Any:
        message = AssistantMessage("", (self.CALL,), {"reasoning_content": "think"}, origin)
        [rendered] = sent(with_own_fields([message], model, base_url))["messages"]
        return rendered

    def test_added_fields_go_to_the_same_server_and_family_only(self) -> None:
        here = "http://h/v1"
        for model, base_url, origin, goes in (
            ("deepseek-reasoner", here, ("deepseek-chat", here), True),
            ("deepseek-ai/DeepSeek-R1", here, ("deepseek-r1-0528", here), True),
            ("local", here, ("local", here), True),
            ("m", here, ("", ""), True),
            ("gpt-4o", here, ("deepseek-chat", here), False),
            ("deepseek-chat", "http://other/v1", ("deepseek-chat", here), False),
        ):
            with self.subTest(model=model, base_url=base_url, origin=origin):
                rendered = self.sent_by(model, base_url, origin)
                self.assertEqual("reasoning_content" in rendered, goes)
                self.assertEqual("extra_content" in rendered["tool_calls"][0], goes)
                self.assertEqual(rendered["tool_calls"][0]["id"], "c1")

    def test_the_fold_knows_of_each_message_who_was_asked_for_it(self) -> None:
        conversation = Conversation()
        for event in (
            SessionStarted("/w", "deepseek-chat", "http://h/v1", "1"),
            AssistantMessageAdded(AssistantMessage("a"), None, "deepseek-v3", "http://h/v1"),
            ModelChanged("gpt-4o", "http://h/v1"),
            AssistantMessageAdded(AssistantMessage("b"), None, "gpt-4o-2024", "http://h/v1"),
        ):
            conversation.apply(event)
        origins = [message.origin for message in conversation.visible_messages()]
        self.assertEqual(origins, [("deepseek-chat", "http://h/v1"), ("gpt-4o", "http://h/v1")])


class TheModel(unittest.TestCase):
    def model(self, server: Loopback) -> OpenAIChatModel:
        transport = Transport(server.base_url, "", timeout_seconds=5, request_deadline_seconds=10)
        return OpenAIChatModel(transport, "m", server.base_url)

    def test_a_reply_is_shown_and_returned(self) -> None:
        watch = KeptWatch()
        with Loopback(completion("hello")) as server:
            found = self.model(server).reply([UserMessage("u")], [TOOL], watch)
        self.assertEqual((found.message.text, watch.texts, watch.notices), ("hello", ["hello"], []))
        self.assertEqual(server.bodies, [render_request("m", [UserMessage("u")], [TOOL])])

    def test_a_server_that_refuses_empty_content_beside_calls_gets_null_from_then_on(self) -> None:
        history = [
            UserMessage("u"),
            AssistantMessage("", (ToolCall("1", "grep", "{}", {}),)),
            ToolResult("1", "grep", "r"),
        ]
        for words in ("messages.1: text content blocks must be non-empty", "content cannot be an empty string"):
            refused = plain(400, json.dumps({"error": {"message": words}}))
            with self.subTest(words), Loopback(refused, completion("one"), completion("two"), refused) as server:
                model = self.model(server)
                texts = [model.reply(history, [TOOL], KeptWatch()).message.text for _ in range(2)]
                with self.assertRaises(BadRequest):  # null does not help either
                    model.reply(history, [TOOL], KeptWatch())
                contents = [json.loads(body)["messages"][1]["content"] for body in server.bodies]
                self.assertEqual((texts, contents), (["one", "two"], ["", None, None, None]))

    def test_a_template_that_wants_user_and_model_in_turn_gets_what_follows_one_another_as_one(self) -> None:
        history = [SystemMessage("s"), UserMessage("one"), Summary("two"), AssistantMessage("so"), UserMessage("three")]
        for status, words in (
            (500, "Conversation roles must alternate user/assistant/user/assistant/... at row 12, column 9"),
            (
                400,
                "Error rendering prompt: "
                + "x" * 400
                + "After the optional system message, conversation roles must alternate",
            ),
        ):
            refused = plain(status, json.dumps({"error": {"message": words}}))
            with self.subTest(status), Loopback(refused, completion("one"), completion("two"), refused) as server:
                model = self.model(server)
                for _ in range(2):
                    model.reply(history, [TOOL], KeptWatch())
                with self.assertRaises(BadRequest):  # that does not help either
                    model.reply(history, [TOOL], KeptWatch())
                sent = [[message["content"] for message in json.loads(body)["messages"]] for body in server.bodies]
                self.assertEqual(sent[0], ["s", "one", "two", "so", "three"])
                self.assertEqual(sent[1:], [["s", "one\n\ntwo", "so", "three"]] * 3)

    def test_an_answer_that_was_cut_off_is_told_to_people(self) -> None:
        watch = KeptWatch()
        body = json.dumps({"choices": [{"message": {"content": "half an ans"}, "finish_reason": "length"}]})
        with Loopback(plain(200, body)) as server:
            self.assertEqual(self.model(server).reply([], [], watch).message.text, "half an ans")
        self.assertIn("cut off", watch.notices[0])

    def test_for_a_model_that_is_not_there_the_nearest_names_of_the_server_are_told(self) -> None:
        models = json.dumps({"data": [{"id": "gpt-4o-mini"}, {"id": "qwen3"}, {"id": "m2"}, {"id": "m\n3"}]})
        for status, body in (
            (404, '{"error": {"message": "The model `m1` does not exist."}}'),
            (400, '{"error": {"message": "m1 is not a valid model ID"}}'),
        ):
            with Loopback(plain(status, body), plain(200, models)) as server, self.assertRaises(Refused) as caught:
                self.model(server).reply([], [], KeptWatch())
            self.assertIn("Check OPENAI_MODEL. The server has m2", str(caught.exception))
        with Loopback(plain(404, body), plain(500, "")) as server, self.assertRaises(Refused) as caught:
            self.model(server).reply([], [], KeptWatch())
        self.assertTrue(str(caught.exception).endswith("Check OPENAI_MODEL."))

    def test_the_window_is_asked_for_once_and_a_failure_is_no_window(self) -> None:
        for answer, window in (
            (plain(200, '{"data": [{"id": "m", "context_length": 4096}]}'), 4096),
            (plain(500, "x"), None),
            (plain(404, "x"), None),
            (plain(200, "x"), None),
        ):
            with Loopback(answer) as server:
                self.assertEqual(self.model(server).server_window_tokens(), window)
            self.assertEqual([(r.command, r.path) for r in server.requests], [("GET", "/v1/models")])

    def test_a_server_that_drips_its_models_is_given_up(self) -> None:
        with Loopback(drip(b"HTTP/1.1 200 OK\r\nX: ", b"x")) as server:
            transport = Transport(server.base_url, "", timeout_seconds=5, request_deadline_seconds=10)
            with self.assertRaises(ModelError):
                transport.get_json("/models", 0.1)
