from __future__ import annotations

import email.utils
import gzip
import os
import signal
import socket
import threading
import time
import unittest
import zlib
from typing import Any
from unittest import mock

from mini_agent import __version__
from mini_agent.model.chat_model import (
    BadReply,
    BadRequest,
    ConnectionFailed,
    ModelError,
    RateLimited,
    Refused,
    ServerFailed,
)
from mini_agent.model.transport import LARGEST_BODY_BYTES, TRIES, Transport, retry_after_seconds
from tests.model.loopback import Handler, KeptWatch, Loopback, completion, drip, plain, raw, reset, silent

KEY = "sk-secret-0123456789"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def transport(base_url: str, key: str = KEY, timeout: float = 10, deadline: float = 20) -> Transport:
    made = Transport(base_url, key, timeout_seconds=timeout, request_deadline_seconds=deadline)
    made.first_wait_seconds = 0.001
    return made


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class TransportTest(unittest.TestCase):
    def setUp(self) -> None:
        self.watch = KeptWatch()
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        patched = mock.patch.dict(os.environ, environment, clear=True)
        patched.start()
        self.addCleanup(patched.stop)

    def ask(self, server: Loopback, **options: Any) -> Any:
        return transport(server.base_url, **options).post_json("/chat/completions", b"{}", self.watch)

    def fails(self, kind: type[ModelError], *answers: Any, **options: Any) -> tuple[str, Loopback]:
        """Return the line of the error that these answers come to, and the server that was asked."""
        with Loopback(*answers) as server, self.assertRaises(kind) as caught:
            self.ask(server, **options)
        line = str(caught.exception)
        self.assertEqual(len(line.splitlines()), 1)
        self.assertTrue(line.isprintable(), line)
        self.assertNotIn(KEY, line)
        return line, server


class Requests(TransportTest):
    def test_a_request_is_a_post_with_the_key_and_the_name_of_the_program(self) -> None:
        with Loopback(completion()) as server:
            self.ask(server)
        [request] = server.requests
        self.assertEqual((request.command, request.path), ("POST", "/v1/chat/completions"))
        self.assertEqual(request.headers["Authorization"], f"Bearer {KEY}")
        self.assertEqual(request.headers["User-Agent"], f"mini-agent/{__version__}")
        self.assertEqual(request.headers["Content-Type"], "application/json")

    def test_without_a_key_there_is_no_authorization(self) -> None:
        with Loopback(completion()) as server:
            self.ask(server, key="")
        self.assertNotIn("Authorization", server.requests[0].headers)

    def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(self) -> None:
        for key in (KEY + "\n", KEY + "\r\nX-Other: 1", "„" + KEY, KEY + "\x00"):
            with self.subTest(key=key):
                line, server = self.fails(Refused, completion(), key=key)
                self.assertIn("OPENAI_API_KEY", line)
                self.assertEqual(server.requests, [])

    def test_a_loopback_address_is_never_asked_through_a_proxy(self) -> None:
        for host in ("127.0.0.1", "localhost"):
            with (
                Loopback(completion()) as server,
                mock.patch.dict(os.environ, {"http_proxy": "http://127.0.0.1:9", "all_proxy": "http://127.0.0.1:9"}),
            ):
                transport(f"http://{host}:{server.port}/v1").post_json("/chat/completions", b"{}", self.watch)
            self.assertEqual(len(server.requests), 1)

    def test_any_other_address_is_asked_through_the_proxy_that_is_set(self) -> None:
        with (
            Loopback(completion()) as proxy,
            mock.patch.dict(os.environ, {"http_proxy": f"http://127.0.0.1:{proxy.port}"}),
        ):
            transport("http://models.example/v1").post_json("/chat/completions", b"{}", self.watch)
        self.assertEqual(proxy.requests[0].path, "http://models.example/v1/chat/completions")


class Answers(TransportTest):
    def test_a_packed_body_is_unpacked(self) -> None:
        body = b'{"choices": [1]}'
        for encoding, data in (("gzip", gzip.compress(body)), ("deflate", zlib.compress(body)), ("gzip", body)):
            with (
                self.subTest(encoding=encoding, data=data),
                Loopback(plain(200, data, {"Content-Encoding": encoding})) as server,
            ):
                self.assertEqual(self.ask(server), {"choices": [1]})

    def test_a_body_that_unpacks_to_too_much_is_refused(self) -> None:
        bomb = gzip.compress(b" " * (LARGEST_BODY_BYTES + 1), 1)
        line, server = self.fails(BadReply, plain(200, bomb, {"Content-Encoding": "gzip"}))
        self.assertIn("larger than 32 MiB", line)
        self.assertEqual(len(server.requests), 1)

    def test_a_body_without_end_is_refused(self) -> None:
        line, server = self.fails(BadReply, endless)
        self.assertIn("larger than 32 MiB", line)
        self.assertEqual(len(server.requests), 1)

    def test_html_is_told_by_its_title_and_points_to_the_path_that_is_missing(self) -> None:
        page = "<!DOCTYPE html><html><head><title>Please\n log in</title></head><body>no</body></html>"
        with Loopback(plain(200, page)) as server, self.assertRaises(BadReply) as caught:
            transport(f"http://127.0.0.1:{server.port}").post_json("/chat/completions", b"{}", self.watch)
        self.assertRegex(str(caught.exception), r"not JSON.*: Please log in\. .*OPENAI_BASE_URL=\S+/v1")

    def test_what_cannot_be_read_comes_to_one_clear_line(self) -> None:
        bodies = ["[" * 100_000, '{"a":' * 100_000, "\x1b[2Jplain \u202e text", "x" * 1_000_000, "nul\x00", "]", "{]}"]
        for body in bodies:
            with self.subTest(body=body[:20]):
                status, _ = self.fails((BadReply, ConnectionFailed), plain(200, body))  # type: ignore[arg-type]
                self.assertLess(len(status), 500)

    def test_an_answer_that_is_no_http_is_not_asked_for_again(self) -> None:
        line, server = self.fails(ConnectionFailed, raw(b"SSH-2.0-OpenSSH_9.2\r\n"))
        self.assertIn("does not answer in HTTP", line)
        self.assertEqual(len(server.requests), 1)

    def test_a_number_of_5000_digits_does_not_hurt(self) -> None:
        with Loopback(plain(200, '{"created": %s, "x": [NaN, 1e999]}' % ("9" * 5000))) as server:
            self.assertEqual(self.ask(server), {"created": "9" * 5000, "x": ["NaN", "1e999"]})

    def test_the_answer_to_a_large_request_that_is_refused_while_it_is_sent_is_read(self) -> None:
        with Loopback(plain(413, ""), reads_bodies=False) as server, self.assertRaises(BadRequest) as caught:
            transport(server.base_url).post_json("/chat/completions", b"x" * 8_000_000, self.watch)
        self.assertIn("413", str(caught.exception))


def endless(handler: Handler) -> None:
    handler.wfile.write(HEAD + b"\r\n")
    while not handler.loopback.closing.is_set():
        handler.wfile.write(b" " * 65_536)


class Retries(TransportTest):
    def test_what_may_pass_is_asked_for_again_and_each_wait_is_told(self) -> None:
        broken = [
            reset,
            plain(503, "busy"),
            plain(429, '{"error": {"message": "slow down"}}'),
            raw(HEAD + b"Content-Length: 500\r\n\r\n{}"),
            plain(200, " \n"),
            plain(200, '{"choices": [{"mess'),
            plain(200, gzip.compress(b"{}")[:-9], {"Content-Encoding": "gzip"}),
            raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{}"),
            plain(200, '{"error": {"code": 502, "message": "upstream"}}'),
            plain(408, ""),
            plain(529, "overloaded"),
        ]
        for number, answer in enumerate(broken):
            with self.subTest(number), Loopback(answer, completion()) as server:
                self.watch = KeptWatch()
                self.assertIn("choices", self.ask(server))
                self.assertEqual(len(server.requests), 2)
                [notice] = self.watch.notices
                self.assertRegex(notice, r"; asked again in \d+\.\d seconds \(try 2 of 5\)$")

    def test_after_five_tries_it_fails_with_the_reason_of_the_last(self) -> None:
        line, server = self.fails(ServerFailed, *[plain(500, f"fault {number}") for number in range(9)])
        self.assertEqual(len(server.requests), TRIES)
        self.assertIn("fault 4 (tried 5 times)", line)

    def test_what_will_not_pass_is_asked_for_once(self) -> None:
        refused = '{"error": {"message": "no", "code": "insufficient_quota"}}'
        for status, body, kind in (
            (400, "no", BadRequest),
            (401, "no", Refused),
            (403, "no", Refused),
            (404, "no", Refused),
            (422, "no", BadRequest),
            (429, refused, Refused),
        ):
            with self.subTest(status=status):
                _, server = self.fails(kind, plain(status, body))
                self.assertEqual(len(server.requests), 1)

    def test_a_wait_of_over_a_minute_is_told_and_not_slept(self) -> None:
        line, server = self.fails(RateLimited, plain(429, "busy", {"Retry-After": "3600"}))
        self.assertIn("it asks to wait 3,600 seconds", line)
        self.assertEqual(len(server.requests), 1)

    def test_a_wait_beyond_the_deadline_is_not_slept(self) -> None:
        line, server = self.fails(RateLimited, plain(429, "busy", {"Retry-After": "30"}), deadline=5)
        self.assertIn("MINI_AGENT_REQUEST_DEADLINE_SECONDS", line)
        self.assertEqual(len(server.requests), 1)

    def test_the_wait_that_the_server_asks_for_is_read_in_each_form(self) -> None:
        now = 1_700_000_000.0
        for headers, wanted in (
            ({"Retry-After": "7"}, 7.0),
            ({"Retry-After": "0.5"}, 0.5),
            ({"retry-after-ms": "1500", "Retry-After": "2"}, 1.5),
            ({"Retry-After": email.utils.formatdate(now + 20, usegmt=True)}, 20.0),
            ({"Retry-After": email.utils.formatdate(now - 20, usegmt=True)}, 0.0),
            ({"Retry-After": "-3"}, 0.0),
            ({"Retry-After": "nan"}, 0.0),
            ({"Retry-After": "1e999"}, 0.0),
            ({"Retry-After": "soon"}, 0.0),
            ({"Retry-After": "Mon, 99 Foo 99999 99:99:99 GMT"}, 0.0),
            ({"retry-after-ms": "x"}, 0.0),
            ({}, 0.0),
        ):
            with self.subTest(headers=headers):
                self.assertEqual(retry_after_seconds(headers, now), wanted)

    def test_the_wait_that_the_server_asks_for_is_the_least(self) -> None:
        with Loopback(plain(503, "busy", {"retry-after-ms": "40"}), completion()) as server:
            started = time.monotonic()
            self.ask(server)
            self.assertGreaterEqual(time.monotonic() - started, 0.04)

    def test_a_server_that_never_answered_is_not_asked_again(self) -> None:
        asked = transport(f"http://127.0.0.1:{unused_port()}/v1")
        with self.assertRaisesRegex(ConnectionFailed, r"http://127\.0\.0\.1:\d+, .*is the server running\?"):
            asked.post_json("/chat/completions", b"{}", self.watch)
        self.assertEqual(self.watch.notices, [])

    def test_a_server_that_went_away_is_asked_again(self) -> None:
        with Loopback(completion()) as server:
            asked = transport(server.base_url)
            asked.post_json("/chat/completions", b"{}", self.watch)
        with self.assertRaisesRegex(ConnectionFailed, "tried 5 times"):
            asked.post_json("/chat/completions", b"{}", self.watch)
        self.assertEqual(len(self.watch.notices), TRIES - 1)


class Deadlines(TransportTest):
    def test_silence_ends_the_call(self) -> None:
        line, server = self.fails(ConnectionFailed, silent, timeout=0.2)
        self.assertIn("MINI_AGENT_TIMEOUT_SECONDS", line)
        self.assertEqual(len(server.requests), 1)

    def test_the_deadline_ends_the_call_whatever_trickles_in(self) -> None:
        for name, answer in (
            ("headers", drip(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x")),
            ("many headers", drip(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n")),
            ("continue", drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n")),
            ("body", drip(HEAD + b"\r\n", b" ")),
            ("announced body", drip(HEAD + b"Content-Length: 100000\r\n\r\n", b" ")),
            ("chunks", drip(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n")),
        ):
            with self.subTest(name):
                line, server = self.fails(ConnectionFailed, answer, timeout=10, deadline=0.15)
                self.assertRegex(line, "^no whole answer came .* MINI_AGENT_REQUEST_DEADLINE_SECONDS$")
                self.assertEqual(len(server.requests), 1)

    def test_the_deadline_holds_for_all_tries_together(self) -> None:
        line, _ = self.fails(ConnectionFailed, plain(500, "x"), plain(500, "x"), silent, deadline=0.3)
        self.assertIn("MINI_AGENT_REQUEST_DEADLINE_SECONDS", line)

    def test_the_longest_timeout_that_can_be_set_is_taken(self) -> None:
        with Loopback(completion()) as server:
            self.assertIn("choices", self.ask(server, timeout=1e6, deadline=1e6))

    def test_no_thread_and_no_connection_stays_behind(self) -> None:
        with Loopback(completion(), reset, plain(500, "x"), completion()) as server:
            self.ask(server)
            self.ask(server)
            names = [thread.name for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
            deadline = time.monotonic() + 5
            while names and time.monotonic() < deadline:  # a cancelled timer takes a moment to end
                time.sleep(0.01)
                names = [thread.name for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
        self.assertEqual(names, [])

    @unittest.skipUnless(hasattr(signal, "setitimer"), "needs an alarm")
    def test_ctrl_c_ends_a_call_and_a_wait_at_once(self) -> None:
        before = signal.signal(signal.SIGALRM, lambda *caught: signal.raise_signal(signal.SIGINT))
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, interrupt)
        for name, answer in (
            ("silence", silent),
            ("drip", drip(b"HTTP/1.1 200 OK\r\nX: ", b"x")),
            ("wait", plain(429, "", {"Retry-After": "50"})),
        ):
            with self.subTest(name), Loopback(answer) as server:
                started = time.monotonic()
                signal.setitimer(signal.ITIMER_REAL, 0.2)
                with self.assertRaises(KeyboardInterrupt):
                    self.ask(server, deadline=60)
                self.assertLess(time.monotonic() - started, 8)


class Redirects(TransportTest):
    def test_one_within_the_server_is_followed_as_the_same_post(self) -> None:
        for status in (301, 302, 307, 308):
            with (
                self.subTest(status=status),
                Loopback(plain(status, "", {"Location": "/v2/chat"}), completion()) as server,
            ):
                self.ask(server)
            self.assertEqual([(r.command, r.path) for r in server.requests][1:], [("POST", "/v2/chat")])
            self.assertEqual(server.bodies, [b"{}", b"{}"])
            self.assertEqual(server.requests[1].headers["Authorization"], f"Bearer {KEY}")

    def test_another_origin_sees_nothing_at_all(self) -> None:
        with Loopback(completion()) as other:
            for target in (
                other.base_url,
                f"//127.0.0.1:{other.port}/v1",
                f"http://127.0.0.1:1@127.0.0.1:{other.port}/",
            ):
                line, _ = self.fails(Refused, plain(307, "", {"Location": target}))
                self.assertIn("not followed", line)
        self.assertEqual(other.requests, [])

    def test_none_turns_the_post_into_a_get(self) -> None:
        _, server = self.fails(Refused, plain(303, "", {"Location": "/v1/elsewhere"}), completion())
        self.assertEqual(len(server.requests), 1)

    def test_a_circle_of_them_ends(self) -> None:
        line, _ = self.fails(Refused, plain(308, "", {"Location": "/v1/again"}))
        self.assertIn("redirects over 5 times", line)

    def test_a_target_that_is_no_address_comes_to_one_clear_line(self) -> None:
        for target in ("http://[", "http://\xff/", "\x1b[2J", "file:///etc/passwd", f"https://example.org/{KEY}"):
            with self.subTest(target=target):
                self.fails(ModelError, plain(307, "", {"Location": target}))


class Secrets(TransportTest):
    def test_the_key_is_in_no_error_however_the_server_repeats_it(self) -> None:
        for body in (f"wrong key {KEY}", f'{{"error": {{"message": "wrong: {KEY}"}}}}', f"<title>{KEY}</title>"):
            for status in (200, 401, 500):
                with self.subTest(body=body, status=status):
                    self.fails(ModelError, plain(status, body))

    def test_the_key_is_in_no_notice(self) -> None:
        with Loopback(plain(500, f"the key {KEY} met a fault"), completion()) as server:
            self.ask(server)
        self.assertNotIn(KEY, "".join(self.watch.notices))


class Addresses(TransportTest):
    def test_an_address_that_cannot_be_used_comes_to_one_clear_line(self) -> None:
        for base_url in (
            "http://host.invalid/v1",
            "http://a..b/v1",
            "http://127.0.0.1:99999/v1",
            "http://127.0.0.1:port/v1",
            "http://127.0.0.1:1/v 1",
            "http://127.0.0.1:1/ü",
        ):
            with self.subTest(base_url), self.assertRaises(ModelError) as caught:
                transport(base_url).post_json("/chat/completions", b"{}", self.watch)
            self.assertEqual(len(str(caught.exception).splitlines()), 1)

    def test_a_plain_server_behind_https_comes_to_one_clear_line(self) -> None:
        with Loopback(completion()) as server, self.assertRaises(ConnectionFailed) as caught:
            transport(f"https://127.0.0.1:{server.port}/v1").post_json("/chat/completions", b"{}", self.watch)
        self.assertIn(f"https://127.0.0.1:{server.port}", str(caught.exception))
