from __future__ import annotations

import json
import random
import unittest
from collections.abc import Iterable
from typing import Any
from unittest import mock

from mini_agent.conversation.messages import UserMessage
from mini_agent.model import transport as transport_module
from mini_agent.model.chat_model import BadReply, BadRequest, ConnectionFailed, ModelError, StreamFailed
from mini_agent.model.openai_chat import OpenAIChatModel, read_reply
from mini_agent.model.streaming import StreamCut, data_of_events, read_stream
from mini_agent.model.transport import Transport
from tests.model.loopback import Answer, Handler, KeptWatch, Loopback, completion, drip, plain, raw

TOOL = {"name": "grep", "description": "Search.", "parameters": {"type": "object", "properties": {}}}
SEED = 20250


def delta(finish_reason: str | None = None, **fields: Any) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": fields, "finish_reason": finish_reason}]}, ensure_ascii=False)


def piece(index: int | None = None, id: str | None = None, name: str | None = None, arguments: Any = None) -> Any:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    call = {"index": index, "id": id, "function": function}
    return {key: value for key, value in call.items() if value is not None}


def stream(*data: str, end: str = "data: [DONE]\n\n") -> bytes:
    return ("".join(f"data: {each}\n\n" for each in data) + end).encode("utf-8")


def events(data: bytes, *, headers: str = "Content-Type: text/event-stream\r\n") -> Answer:
    return raw(b"HTTP/1.1 200 OK\r\n" + headers.encode("ascii") + b"Connection: close\r\n\r\n" + data)


def answer_of(*data: str) -> Any:
    return read_stream([stream(*data)], lambda text: None)


HELLO = (
    delta(role="assistant", content=""),
    delta(content="Grüß"),
    delta(content=" Gott 😀"),
    delta("stop"),
    '{"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}',
)


class Events(unittest.TestCase):
    def read(self, chunks: Iterable[bytes]) -> list[tuple[str, str]]:
        return list(data_of_events(chunks))

    def test_comments_other_fields_and_events_without_data_are_passed_over(self) -> None:
        data = b": ping\n\nevent: x\n\nid: 5\nretry: 10\ndata: one\n\nevent: error\ndata:two\ndata\ndata:  three\n\n"
        self.assertEqual(self.read([data]), [("", "one"), ("error", "two\n\n three")])

    def test_any_line_end_and_a_missing_last_one_are_taken(self) -> None:
        for end in ("\n", "\r\n", "\r"):
            data = f"\ufeffdata: a{end}data: b{end}{end}data: c".encode()
            with self.subTest(end):
                self.assertEqual(self.read([data]), [("", "a\nb"), ("", "c")])
                self.assertEqual(self.read(data[i : i + 1] for i in range(len(data))), [("", "a\nb"), ("", "c")])

    def test_it_does_not_matter_where_a_stream_is_split(self) -> None:
        rng = random.Random(SEED)
        data = stream(*HELLO).replace(b"\n", b"\r\n")
        whole = read_stream([data], lambda text: None)
        for _ in range(200):
            cuts = sorted(rng.randrange(len(data)) for _ in range(rng.randrange(1, 12)))
            chunks = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)])]
            texts: list[str] = []
            self.assertEqual(read_stream(chunks, texts.append), whole, f"seed {SEED}, cuts {cuts}")
            self.assertEqual("".join(texts), "Grüß Gott 😀")


class Answers(unittest.TestCase):
    def calls(self, *pieces: Any) -> list[tuple[str, str, Any]]:
        data = [delta(tool_calls=each if isinstance(each, list) else [each]) for each in pieces]
        message = read_reply(answer_of(*data, delta("tool_calls")), ["grep", "read_file"], "m", "").message
        return [(call.id, call.name, call.arguments) for call in message.tool_calls]

    def test_text_usage_and_reason_come_together(self) -> None:
        found = read_reply(answer_of(*HELLO), [], "m", "")
        assert found.usage is not None
        self.assertEqual(
            (found.message.text, found.finish_reason, found.usage.input_tokens), ("Grüß Gott 😀", "stop", 7)
        )

    def test_reasoning_and_unknown_fields_come_together(self) -> None:
        found = answer_of(
            delta(reasoning_content="I "),
            delta(reasoning_content="think", reasoning_details=[{"a": 1}]),
            delta(content="x", reasoning_details=[{"b": 2}], refusal=None),
            delta("stop"),
        )["choices"][0]["message"]
        self.assertEqual(found["reasoning_content"], "I think")
        self.assertEqual(found["reasoning_details"], [{"a": 1}, {"b": 2}])

    def test_pieces_of_calls_find_together(self) -> None:
        two = [("a", "grep", {"x": 1}), ("b", "read_file", {"y": 2})]
        for name, pieces in {
            "by index": [piece(0, "a", "grep", ""), piece(1, "b", "read_file", ""), piece(0, arguments='{"x": '),
                         piece(1, arguments='{"y": 2}'), piece(0, arguments="1}")],
            "name and id repeated": [piece(0, "a", "grep", '{"x"'), piece(0, "a", "grep", ": 1}"),
                                     piece(1, "b", "read_file", '{"y": 2}')],
            "by id": [piece(None, "a", "grep", '{"x": '), piece(None, "a", arguments="1}"),
                      piece(None, "b", "read_file", '{"y": 2}')],
            "whole, at once": [[piece(None, "a", "grep", '{"x": 1}'), piece(None, "b", "read_file", '{"y": 2}')]],
            "whole, all under index 0": [piece(0, "a", "grep", '{"x": 1}'), piece(0, "b", "read_file", '{"y": 2}')],
            "objects": [piece(0, "a", "grep", {"x": 1}), piece(1, "b", "read_file", {"y": 2})],
            "neither index nor id behind the first piece": [piece(None, "a", "grep", '{"x"'), piece(arguments=": 1}"),
                                                            piece(None, "b", "read_file", '{"y": 2}')],
        }.items():  # fmt: skip
            with self.subTest(name):
                self.assertEqual(self.calls(*pieces), two)

    def test_whole_calls_under_one_index_and_without_ids_are_two(self) -> None:
        found = self.calls(piece(0, None, "grep", '{"x": 1}'), piece(0, None, "grep", '{"x": 2}'))
        self.assertEqual([arguments for _, _, arguments in found], [{"x": 1}, {"x": 2}])

    def test_fields_of_a_call_stay_with_it(self) -> None:
        call = {**piece(0, "a", "grep", "{}"), "extra_content": {"google": {"thought_signature": "s"}}}
        message = read_reply(answer_of(delta("tool_calls", tool_calls=[call])), ["grep"], "m", "").message
        self.assertEqual(message.tool_calls[0].provider_fields, {"extra_content": call["extra_content"]})

    def test_a_message_in_place_of_a_delta_and_a_list_of_parts_are_taken(self) -> None:
        whole = json.dumps({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]})
        for data in ([whole], [delta(content=[{"type": "text", "text": "h"}]), delta("stop", content="i"), whole]):
            self.assertEqual(answer_of(*data)["choices"][0]["message"]["content"], "hi")

    def test_the_end_is_told_by_done_or_by_the_reason_and_what_lacks_both_is_cut(self) -> None:
        for data in (stream(delta(content="x")), stream(delta("stop", content="x"), end="")):
            self.assertEqual(read_stream([data], lambda text: None)["choices"][0]["message"]["content"], "x")
        for data in (b"", stream(delta(content="x"), end=""), stream(delta(content="x"), end='data: {"choi')):
            with self.assertRaises(StreamCut):
                read_stream([data], lambda text: None)

    def test_data_that_is_no_json_is_an_error_where_more_follows(self) -> None:
        with self.assertRaises(ValueError):
            answer_of(delta(content="x"), "oops", delta("stop"))
        with self.assertRaises(ValueError):
            answer_of(delta(content="x"), '{"half')


class StreamsOverHttp(unittest.TestCase):
    def reply(self, *answers: Answer, stream: str = "auto", deadline: float = 10) -> tuple[str, KeptWatch, list[Any]]:
        """Return the reply's text, what the watch was told, and the requests; the model is asked twice."""
        watch = KeptWatch()
        with Loopback(*answers) as server, mock.patch.object(transport_module.time, "sleep"):
            transport = Transport(server.base_url, "", timeout_seconds=1, request_deadline_seconds=deadline)
            model = OpenAIChatModel(transport, "m", server.base_url, None, stream)
            try:
                text = model.reply([UserMessage("u")], [TOOL], watch).message.text
            finally:
                self.requests = [json.loads(body) for body in server.bodies]
        return text, watch, self.requests

    def test_text_is_shown_as_it_comes_and_only_once(self) -> None:
        text, watch, [request] = self.reply(events(stream(*HELLO)))
        self.assertEqual((text, watch.texts), ("Grüß Gott 😀", ["Grüß", " Gott 😀"]))
        self.assertEqual((request["stream"], request["stream_options"]), (True, {"include_usage": True}))

    def test_blank_lines_and_comments_before_a_stream_are_waited_out(self) -> None:
        text, _, _ = self.reply(events(b"\n\n: wait\n\n" + stream(*HELLO), headers=""))
        self.assertEqual(text, "Grüß Gott 😀")

    def test_it_may_come_a_byte_at_a_time_from_the_byte_order_mark_on(self) -> None:
        def one_by_one(handler: Handler) -> None:
            for byte in b"HTTP/1.1 200 OK\r\n\r\n\xef\xbb\xbf" + stream(*HELLO[1:4]):
                handler.wfile.write(bytes([byte]))

        self.assertEqual(self.reply(one_by_one)[0], "Grüß Gott 😀")

    def test_a_server_that_answers_whole_is_taken_as_it_is(self) -> None:
        text, watch, requests = self.reply(completion("hello"))
        self.assertEqual((text, watch.texts, len(requests), watch.notices), ("hello", ["hello"], 1, []))

    def test_off_asks_for_no_stream(self) -> None:
        _, _, [request] = self.reply(completion("hello"), stream="off")
        self.assertNotIn("stream", request)

    def test_a_stream_cut_before_its_end_is_asked_for_again(self) -> None:
        cut = events(stream(*HELLO[:2], end=""))
        text, watch, requests = self.reply(cut, events(stream(*HELLO)))
        self.assertEqual((text, len(requests), len(watch.notices)), ("Grüß Gott 😀", 2, 1))
        self.assertIn("broke off", watch.notices[0])

    def test_a_chunk_that_breaks_off_is_a_failure_too(self) -> None:
        data = stream(*HELLO[:3], end="")
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        cut = raw(head + b"%x\r\n" % (len(data) + 50) + data)
        text, _, requests = self.reply(cut, events(stream(*HELLO)))
        self.assertEqual((text, len(requests)), ("Grüß Gott 😀", 2))

    def test_an_error_in_the_middle_is_told_or_asked_again_as_its_kind_is(self) -> None:
        for data in (
            delta(content="x"),
            '{"choices": [{"delta": {}, "error": {"code": 400, "message": "no such thing"}}]}',
        ):
            last = '{"error": {"message": "no such thing", "code": 400}}'
            with self.assertRaisesRegex(BadRequest, "no such thing"):
                self.reply(events(stream(data, last)))
        overloaded = stream(delta(content="x"), '{"error": {"message": "busy", "code": 503}}')
        text, watch, _ = self.reply(events(overloaded), events(stream(*HELLO)))
        self.assertEqual((text, len(watch.notices)), ("Grüß Gott 😀", 1))
        with self.assertRaisesRegex(BadRequest, "bad luck"):
            self.reply(events(b'event: error\ndata: {"message": "bad luck"}\n\n'))

    def test_a_server_that_refuses_stream_options_is_not_sent_them_again(self) -> None:
        refused = plain(400, '{"error": {"message": "Unknown parameter: stream_options"}}')
        text, watch, requests = self.reply(refused, events(stream(*HELLO)))
        self.assertEqual(
            [("stream_options" in each, each["stream"]) for each in requests], [(True, True), (False, True)]
        )
        self.assertEqual((text, watch.notices), ("Grüß Gott 😀", []))

    def test_auto_stops_streaming_for_good_where_the_server_cannot_and_on_does_not(self) -> None:
        refused = plain(400, '{"error": {"message": "streaming is not supported"}}')
        for answer in (refused, events(stream("oops", delta("stop")))):
            text, watch, requests = self.reply(answer, completion("hello"))
            self.assertEqual((text, ["stream" in each for each in requests]), ("hello", [True, False]))
            self.assertIn("from now on", watch.notices[0])
            with self.assertRaises((BadRequest, StreamFailed)):
                self.reply(answer, completion("hello"), stream="on")

    def test_auto_asks_for_a_whole_answer_where_no_stream_ever_comes_to_its_end(self) -> None:
        cut = events(stream(*HELLO[:2], end=""))
        text, watch, requests = self.reply(*[cut] * 5, completion("hello"))
        self.assertEqual((text, len(requests), len(watch.notices)), ("hello", 6, 5))

    def test_a_dripping_stream_ends_at_the_deadline_and_a_silent_one_before(self) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        with self.assertRaisesRegex(ConnectionFailed, "DEADLINE"):
            self.reply(drip(head, b": wait\n\n"), deadline=0.3)

        def silent_after_text(handler: Handler) -> None:
            handler.wfile.write(head + stream(*HELLO[:2], end=""))
            handler.loopback.closing.wait(20)

        with self.assertRaisesRegex(ConnectionFailed, "TIMEOUT"):
            self.reply(silent_after_text)

    def test_a_stream_without_end_is_given_up_at_the_largest_size(self) -> None:
        with mock.patch.object(transport_module, "LARGEST_BODY_BYTES", 10_000), self.assertRaises(BadReply):
            self.reply(events(stream(*[delta(content="x" * 100)] * 200)))

    def test_whatever_comes_in_a_stream_is_a_reply_or_a_model_error(self) -> None:
        rng = random.Random(SEED)
        good = stream(*HELLO[:3], delta(tool_calls=[piece(0, "a", "grep", '{"x": 1}')]), *HELLO[3:])
        for number in range(300):
            data = bytearray(good)
            for _ in range(rng.randrange(1, 6)):
                at = rng.randrange(len(data))
                data[at : at + rng.randrange(3)] = bytes(
                    rng.choice(b'{}[]",:\n\r0e\\x\xff') for _ in range(rng.randrange(3))
                )
            with self.subTest(seed=SEED, number=number):
                try:
                    read_reply(read_stream([bytes(data)], lambda text: None), ["grep"], "m", "")
                except (ModelError, StreamCut, ValueError):
                    pass


if __name__ == "__main__":
    unittest.main()
