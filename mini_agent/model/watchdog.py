"""A deadline that holds whatever trickles in: connections that a second thread shuts down when the time is over.

A socket's own timeout sees silence only: a server that sends a byte a second, of its headers even, never meets it.
"""

from __future__ import annotations

import functools
import http.client
import socket
import threading
import urllib.request
from typing import Any


class Watchdog:
    """Shut the connections that it holds down when its time is over: what blocks on them then fails at once.

    It holds duplicates of the sockets, so that neither closing nor wrapping one into TLS takes it out of its hands.
    """

    def __init__(self, seconds: float) -> None:
        self.has_bitten = False  # the time was over
        self.has_held = False  # there was a connection
        self._held: list[socket.socket] = []
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._bite)
        self._timer.daemon = True

    def __enter__(self) -> Watchdog:
        self._timer.start()
        return self

    def __exit__(self, *caught: object) -> None:
        self._timer.cancel()
        with self._lock:
            for held in self._held:
                held.close()
            self._held.clear()

    def hold(self, connection: socket.socket) -> None:
        """Take a connected socket that is not wrapped into TLS yet."""
        with self._lock:
            self.has_held = True
            self._held.append(connection.dup())
            if self.has_bitten:
                self._shut_down()

    def _bite(self) -> None:
        with self._lock:
            self.has_bitten = True
            self._shut_down()

    def _shut_down(self) -> None:
        for held in self._held:
            try:
                held.shutdown(socket.SHUT_RDWR)
            except OSError:  # it is closed at the other end already
                pass


class _Connection(http.client.HTTPConnection):
    """A connection that the watchdog holds from its first moment, before TLS and before a proxy answers."""

    watchdog: Watchdog
    is_held = False

    def connect(self) -> None:
        super().connect()
        self._let_hold()

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        self._let_hold()  # here for a proxy's CONNECT, which is sent before connect() is done
        try:
            super().send(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # a server that refuses a large body answers and closes while it is sent: its answer says more

    def _let_hold(self) -> None:
        if not self.is_held:
            self.is_held = True
            self.watchdog.hold(self.sock)


class _SecureConnection(http.client.HTTPSConnection, _Connection):
    """The same with TLS: HTTPSConnection.connect calls the connect above, and wraps the socket after it."""


class WatchedHandler(urllib.request.AbstractHTTPHandler):
    """For an urllib opener: http and https over connections that the watchdog holds."""

    def __init__(self, watchdog: Watchdog) -> None:
        super().__init__()
        self._watchdog = watchdog

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """Open a connection without TLS and send the request on it."""
        return self.do_open(functools.partial(self._connection, _Connection), request)

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """Open a connection with TLS and send the request on it."""
        return self.do_open(functools.partial(self._connection, _SecureConnection), request)

    def _connection(self, kind: type[_Connection], host: str, **options: Any) -> _Connection:
        connection = kind(host, **options)
        connection.watchdog = self._watchdog
        return connection

    http_request = https_request = urllib.request.AbstractHTTPHandler.do_request_
