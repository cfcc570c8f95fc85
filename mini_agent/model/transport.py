"""HTTP to one server: within its deadlines, again where that may help, and with the key for that server only.

urllib does the work, but for three things that it leaves undone. Its timeout sees silence only, so a watchdog ends
what takes too long as a whole. It follows redirects with all headers, so they are followed here: to the same origin
only, and a POST stays a POST. And it retries nothing.
"""

from __future__ import annotations

import email.utils
import http.client
import itertools
import math
import random
import socket
import ssl
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Callable, Optional
from urllib.parse import urljoin, urlsplit

from mini_agent import __version__
from mini_agent.model.chat_model import (
    BadReply,
    ConnectionFailed,
    ModelError,
    RateLimited,
    Refused,
    ServerFailed,
    StreamFailed,
    Watch,
)
from mini_agent.model.server_errors import Server, error_from_answer, error_inside, page_text
from mini_agent.model.streaming import StreamCut, read_stream
from mini_agent.model.untrusted_json import parse_json
from mini_agent.model.watchdog import Watchdog, WatchedHandler

OnText = Optional[Callable[[str], None]]  # takes the text of a stream as it comes; None where none is asked for

TRIES = 5
LONGEST_WAIT_SECONDS = 60.0  # a longer one is told instead of slept
LARGEST_BODY_BYTES = 32 * 1024 * 1024  # as it was sent, and again when unpacked
MOST_REDIRECTS = 5
_BEFORE_A_BODY = b"\xef\xbb\xbf \t\r\n"  # a byte order mark, and the blank lines that a queue sends to keep awake


class _MayPass(Exception):
    """A failure that may be gone at the next try."""

    def __init__(self, error: ModelError, retry_after_seconds: float = 0.0) -> None:
        super().__init__(str(error))
        self.error = error
        self.retry_after_seconds = retry_after_seconds  # as the server asks for; 0 where it does not


class Transport:
    """Ask one server, for as long as the settings allow."""

    def __init__(self, base_url: str, api_key: str, *, timeout_seconds: float, request_deadline_seconds: float) -> None:
        """Take the server's address without a final slash, and the key, "" for none.

        timeout_seconds: the longest silence.
        request_deadline_seconds: the longest call, all retries and waits included.
        """
        self.first_wait_seconds = 0.5  # at most, before the second try; up to twice as long before each further one
        self._server = Server(base_url, api_key)
        self._timeout_seconds = timeout_seconds
        self._request_deadline_seconds = request_deadline_seconds
        self._was_reached = False  # whether the server has ever taken a connection

    def post_json(self, path: str, body: bytes, watch: Watch, on_text: OnText = None) -> Any:
        """Send the body to this path below the base URL, and return the JSON of the answer; raise ModelError.

        on_text: given where the body asks for a stream, gets its text as it comes. A whole answer is taken, too.

        What may pass (429, 5xx, a connection that breaks off, an answer that is empty or cut) is tried up to five
        times; each wait is told in a notice.
        """
        deadline = time.monotonic() + self._request_deadline_seconds
        attempt = 1
        while True:
            try:
                return self._ask(path, body, self._timeout_seconds, deadline, on_text)
            except _MayPass as failure:
                wait = self._wait_seconds(failure, attempt, deadline)
                reason = str(failure).rstrip(".")
            attempt += 1
            watch.notice(f"{reason}; asked again in {wait:.1f} seconds (try {attempt} of {TRIES})")
            time.sleep(wait)

    def get_json(self, path: str, seconds: float) -> Any:
        """Return the JSON at this path below the base URL, in one try of so many seconds; raise ModelError."""
        try:
            return self._ask(path, None, seconds, time.monotonic() + seconds)
        except _MayPass as failure:
            raise failure.error from failure

    def _wait_seconds(self, failure: _MayPass, attempt: int, deadline: float) -> float:
        """Return how long to wait before the next try; where there is to be none, raise the failure's error.

        Exponential with full jitter, so that clients that failed together do not come back together.
        """
        wait = random.uniform(0, self.first_wait_seconds * 2 ** (attempt - 1))
        wait = max(wait, failure.retry_after_seconds)
        if attempt == TRIES:
            why = f"tried {TRIES} times"
        elif wait > LONGEST_WAIT_SECONDS:
            why = f"it asks to wait {wait:,.0f} seconds before the next try"
        elif time.monotonic() + wait >= deadline:
            why = "no time is left for another try: MINI_AGENT_REQUEST_DEADLINE_SECONDS"
        else:
            return wait
        is_too_late = attempt < TRIES and isinstance(failure.error, StreamFailed)  # to ask once more, without a stream
        kind = ConnectionFailed if is_too_late else type(failure.error)
        raise kind(f"{str(failure).rstrip('.')} ({why})") from failure

    # --------------------------------------------------------------------------------------------------- one try

    def _ask(
        self, path: str, body: bytes | None, timeout_seconds: float, deadline: float, on_text: OnText = None
    ) -> Any:
        """Make one try; raise _MayPass where another may help, ModelError where it will not."""
        remaining = max(0.001, deadline - time.monotonic())
        with Watchdog(remaining) as watchdog:
            try:  # the watchdog is to go first where both times are the same, for it says which it was
                answer = self._exchange(path, body, min(timeout_seconds, remaining + 0.2), watchdog, on_text)
            except (OSError, http.client.HTTPException, ValueError, StreamCut) as error:
                if not watchdog.has_bitten:
                    raise self._explained(error, timeout_seconds) from error
            finally:
                self._was_reached = self._was_reached or watchdog.has_held
        if watchdog.has_bitten:  # without an exception too: headers that end in the middle pass for whole ones
            late = f"no whole answer came from {self._server.address} before the deadline of the request"
            raise ConnectionFailed(f"{late}: a slow server needs a larger MINI_AGENT_REQUEST_DEADLINE_SECONDS")
        return self._read_answer(*answer)

    def _exchange(
        self, path: str, body: bytes | None, timeout_seconds: float, watchdog: Watchdog, on_text: OnText
    ) -> tuple[int, Mapping[str, str], Any]:
        """Return status, headers and body of the answer, whatever the status; the body of a stream is its JSON."""
        url, opener = self._server.base_url + path, self._opener(watchdog)
        for _ in range(MOST_REDIRECTS + 1):
            request = urllib.request.Request(url, body, self._headers(body), method="POST" if body else "GET")
            with opener.open(request, timeout=timeout_seconds) as response:
                target = self._redirect_target(url, response)
                if not target:
                    return response.status, response.headers, self._body(response, on_text)
            url = target
        raise Refused(f"{self._server.address} redirects over {MOST_REDIRECTS} times: check OPENAI_BASE_URL")

    def _body(self, response: http.client.HTTPResponse, on_text: OnText) -> Any:
        """Return the text of a body; of one that is a stream of events, as it was asked for, the JSON."""
        chunks, first = _chunks(response), b""
        if on_text and response.status < 300 and not _is_packed(response):
            for first in itertools.accumulate(chunks):
                if first.strip(_BEFORE_A_BODY):
                    break
        if on_text is None or first.strip(_BEFORE_A_BODY)[:1] in (b"", b"{", b"[", b"<"):
            return self._server.without_key(_body_text(response, first))
        try:
            return read_stream(itertools.chain([first], chunks), on_text, self._server.without_key)
        except ValueError as error:
            raise StreamFailed(f"the stream of {self._server.address} holds what is no JSON ({error})") from error

    def _opener(self, watchdog: Watchdog) -> urllib.request.OpenerDirector:
        """Return an opener of the fewest parts: no redirects, no other schemes, each status a plain answer."""
        opener = urllib.request.OpenerDirector()
        opener.add_handler(urllib.request.ProxyHandler({} if self._server.is_loopback else None))
        opener.add_handler(WatchedHandler(watchdog))
        return opener

    def _headers(self, body: bytes | None) -> dict[str, str]:
        headers = {"User-Agent": f"mini-agent/{__version__}", "Accept": "application/json, text/event-stream"}
        if body:
            headers["Content-Type"] = "application/json"
        key = self._server.api_key
        if key and not (key.isascii() and key.isprintable()):
            raise Refused("OPENAI_API_KEY holds a character that no key has (a line break, a quote of another kind?)")
        if key:
            headers["Authorization"] = f"Bearer {key}"
        return headers

    def _redirect_target(self, url: str, response: http.client.HTTPResponse) -> str | None:
        location = response.headers.get("Location")
        if response.status not in (301, 302, 303, 307, 308) or not location:
            return None
        target = urljoin(url, location)
        if response.status != 303 and urlsplit(target)[:2] == urlsplit(url)[:2]:
            return target
        shown = self._server.harmless(target.partition("?")[0])
        raise Refused(
            f"{self._server.address} redirects ({response.status}) to {shown}, which is not followed: the request and "
            "the key go to the configured server only. Check OPENAI_BASE_URL."
        )

    # ------------------------------------------------------------------------------------------ what came of it

    def _read_answer(self, status: int, headers: Mapping[str, str], body: Any) -> Any:
        if status < 300 and isinstance(body, str) and not body.strip():
            raise _MayPass(ConnectionFailed(f"{self._server.address} sent an empty answer"))
        answer = self._parsed(body) if status < 300 and isinstance(body, str) else body
        error = error_inside(answer, self._server) if status < 300 else error_from_answer(status, body, self._server)
        if error is None:
            return answer
        if isinstance(error, (RateLimited, ServerFailed)):
            raise _MayPass(error, retry_after_seconds(headers, time.time()))
        raise error

    def _parsed(self, text: str) -> Any:
        try:
            return parse_json(text)
        except ValueError as error:
            address, text = self._server.address, text.strip()
            if text[0] == "{" and text[-1] != "}":
                raise _MayPass(ConnectionFailed(f"the answer of {address} was cut off")) from error
            words = self._server.harmless(page_text(text))
            line = f"the answer of {address} is not JSON that can be read ({error}): {words}"
            raise BadReply(f"{line.rstrip('.')}. {self._server.path_hint()}".rstrip()) from error

    def _explained(self, error: Exception, timeout_seconds: float) -> Exception:
        """Return what a failed exchange means: _MayPass for a connection that broke off, else ModelError."""
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        address = self._server.address + (" (through a proxy)" if self._uses_proxy() else "")
        if isinstance(cause, ConnectionRefusedError):
            hint = self._server.silence_hint()
            refused = ConnectionFailed(f"nothing answers at {address}, the connection is refused: {hint}")
            return _MayPass(refused) if self._was_reached else refused
        if isinstance(cause, StreamCut):
            return _MayPass(StreamFailed(f"the stream of {address} broke off before its end"))
        if isinstance(cause, (ConnectionError, http.client.IncompleteRead, ssl.SSLEOFError)):
            return _MayPass(ConnectionFailed(f"the connection to {address} broke off"))
        if isinstance(cause, socket.timeout):
            seconds = f"nothing came from {address} for {timeout_seconds:g} seconds"
            return ConnectionFailed(f"{seconds}: a slow server needs a larger MINI_AGENT_TIMEOUT_SECONDS")
        if isinstance(cause, ssl.SSLCertVerificationError):
            trust = f"the certificate of {address} is not trusted: {cause.verify_message}"
            return ConnectionFailed(f"{trust}. SSL_CERT_FILE can name the certificates to trust.")
        if isinstance(cause, socket.gaierror):
            return ConnectionFailed(f"the host of {address} is not found: check OPENAI_BASE_URL and the network")
        if isinstance(cause, http.client.HTTPException):
            name = type(cause).__name__
            return ConnectionFailed(f"{address} does not answer in HTTP ({name}): check OPENAI_BASE_URL")
        if isinstance(cause, OSError):
            words = self._server.harmless(cause.strerror or str(cause))
            return ConnectionFailed(f"no connection to {address}: {words}")
        return ConnectionFailed(f"no request can be made to {address}: check OPENAI_BASE_URL and the proxy settings")

    def _uses_proxy(self) -> bool:
        parts = urlsplit(self._server.base_url)
        if self._server.is_loopback or parts.scheme not in urllib.request.getproxies():
            return False
        return not urllib.request.proxy_bypass(parts.hostname or "")


# ------------------------------------------------------------------------------------------------- reading an answer


def _chunks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """Yield what comes of the body, in the moment it comes."""
    size = 0
    while True:
        chunk = response.read1(2**16)
        size += len(chunk)
        if not chunk:
            return
        if size > LARGEST_BODY_BYTES:
            raise BadReply(f"the server's answer is larger than {LARGEST_BODY_BYTES // 2**20} MiB")
        yield chunk


def _body_text(response: http.client.HTTPResponse, first: bytes = b"") -> str:
    """Return the body, unpacked and decoded; raise IncompleteRead where it is shorter than announced.

    first: what was read of it already.
    """
    try:
        data = _read_body(response, first)
    except (OSError, http.client.HTTPException):
        if response.status < 300:
            raise
        data = b""  # the status says enough
    return data.decode("utf-8-sig", "replace")


def _is_packed(response: http.client.HTTPResponse) -> bool:
    return response.headers.get("Content-Encoding", "").strip().lower() in ("gzip", "x-gzip", "deflate")


def _read_body(response: http.client.HTTPResponse, first: bytes) -> bytes:
    announced, data = response.length, response.read(LARGEST_BODY_BYTES + 1)
    if len(data) > LARGEST_BODY_BYTES:
        raise BadReply(f"the server's answer is larger than {LARGEST_BODY_BYTES // 2**20} MiB")
    if announced is not None and len(data) < announced:  # http.client lets this pass where it is told how much to read
        raise http.client.IncompleteRead(b"", announced - len(data))
    data = first + data
    return _unpacked(data) if _is_packed(response) else data


def _unpacked(data: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # 32: tells gzip and zlib apart by itself
    try:
        unpacked = unpacker.decompress(data, LARGEST_BODY_BYTES)
    except zlib.error:
        return data  # some proxies unpack a body and leave the header
    if unpacker.unconsumed_tail:
        raise BadReply(f"the server's answer is larger than {LARGEST_BODY_BYTES // 2**20} MiB when unpacked")
    if not unpacker.eof:
        raise http.client.IncompleteRead(b"")
    return unpacked


def retry_after_seconds(headers: Mapping[str, str], now: float) -> float:
    """Return how long the server asks to wait, in seconds; 0 where it does not say so in a form that can be read.

    headers: `retry-after-ms` (OpenAI, Azure), or `Retry-After` (RFC 9110: seconds, or a date).
    now: seconds since 1970.
    """
    milliseconds, value = headers.get("retry-after-ms", ""), headers.get("Retry-After", "")
    try:
        seconds = float(milliseconds) / 1000 if milliseconds else float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - now
        except (ValueError, TypeError, IndexError, OverflowError):  # TypeError: what 3.9 raises for no date
            return 0.0
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0
