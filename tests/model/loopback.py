"""A server on a loopback port that answers what a test tells it to, in turn, and keeps the requests."""

from __future__ import annotations

import json
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    loopback: Loopback

    def log_message(self, *arguments: Any) -> None:
        pass

    def do_POST(self) -> None:
        self.close_connection = True
        length = int(self.headers.get("Content-Length") or 0) if self.loopback.reads_bodies else 0
        self.loopback.take(self, self.rfile.read(length))

    do_GET = do_POST


class Loopback:
    """Use it as a context manager; the last answer is given again when there are more requests than answers."""

    def __init__(self, *answers: Answer, reads_bodies: bool = True) -> None:
        self.answers = answers
        self.reads_bodies = reads_bodies
        self.bodies: list[bytes] = []
        self.requests: list[Any] = []  # handlers: .path, .headers, .command
        self.closing = threading.Event()
        handler = type("BoundHandler", (Handler,), {"loopback": self})
        self._httpd = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._httpd.serve_forever, args=(0.01,), daemon=True)
        self.port = self._httpd.server_address[1]
        self.base_url = f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Loopback:
        self._thread.start()
        return self

    def __exit__(self, *caught: object) -> None:
        self.closing.set()
        self._httpd.shutdown()
        self._httpd.server_close()
        self._thread.join()

    def take(self, handler: Handler, body: bytes) -> None:
        self.bodies.append(body)
        self.requests.append(handler)
        answer = self.answers[min(len(self.bodies), len(self.answers)) - 1]
        try:
            answer(handler)
        except OSError:
            pass  # the client has gone


def plain(status: int, body: str | bytes, headers: dict[str, str] | None = None) -> Answer:
    data = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")

    def answer(handler: Handler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def raw(data: bytes) -> Answer:
    def answer(handler: Handler) -> None:
        handler.wfile.write(data)

    return answer


def completion(text: str = "hi", **more: Any) -> Answer:
    message = {"role": "assistant", "content": text}
    return plain(200, json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], **more}))


def reset(handler: Handler) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def silent(handler: Handler) -> None:
    handler.loopback.closing.wait(20)


def drip(before: bytes, piece: bytes) -> Answer:
    """Send `before`, then `piece` again and again, 50 times a second, for ever."""

    def answer(handler: Handler) -> None:
        handler.wfile.write(before)
        while not handler.loopback.closing.wait(0.02):
            handler.wfile.write(piece)

    return answer


def from_case(data: dict[str, Any]) -> Answer:
    """Read an answer of a wire case: status, and json or raw; "reset" and "short" break the connection."""
    if data["status"] == "reset":
        return reset
    if data["status"] == "short":
        return raw(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"choices": [')
    body = data["raw"] if "raw" in data else json.dumps(data["json"])
    return plain(
        data["status"], body, {"Content-Type": data.get("type", "application/json"), **data.get("headers", {})}
    )


class KeptWatch:
    """A watch that keeps what it is told."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.notices: list[str] = []

    def text(self, delta: str) -> None:
        self.texts.append(delta)

    def notice(self, text: str) -> None:
        self.notices.append(text)
