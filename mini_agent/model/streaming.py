"""A streamed answer: server-sent events → the same JSON that a server answers without streaming.

Events are read as the standard has them (WHATWG HTML, "Server-sent events"): comments, any line end, several data
lines, no blank line at the very end. What arrives may be split anywhere, within a character too. The pieces of the
message and of its calls are put together as they come, so that what reads whole answers reads these, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mini_agent.conversation.messages import JsonObject
from mini_agent.model.untrusted_json import parse_json

_LINE_END = re.compile(rb"\r\n|\n|\r")


class StreamCut(Exception):
    """The stream ended before the answer did."""


def data_of_events(chunks: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Yield the type ("" where none is named) and the data of each event that has data."""
    kind, data = "", []
    for line in _lines(chunks):
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "data":
            data.append(value)
        elif name == "event":
            kind = value
        elif not line:
            if data:
                yield kind, "\n".join(data)
            kind, data = "", []
    if data:
        yield kind, "\n".join(data)


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    buffer = b""
    for chunk in chunks:
        buffer += chunk
        if b"\n" not in chunk and b"\r" not in chunk:
            continue
        held = b"\r" if buffer.endswith(b"\r") else b""  # the \n that belongs to it may be in the next chunk
        *lines, buffer = _LINE_END.split(buffer[: len(buffer) - len(held)])
        buffer += held
        yield from (line.decode("utf-8-sig", "replace") for line in lines)
    yield from (line.decode("utf-8-sig", "replace") for line in _LINE_END.split(buffer))


def read_stream(chunks: Iterable[bytes], on_text: Callable[[str], None], clean: Callable[[str], str] = str) -> Any:
    """Return the whole answer of a stream; an error that came in it is returned as it is.

    on_text: gets each piece of text as it comes. clean: is applied to all that is read.
    Raises StreamCut where neither the end of the answer nor `[DONE]` came, and ValueError for data that is no JSON.
    """
    answer = _Answer()
    for kind, data in data_of_events(chunks):
        if answer.bad:
            raise answer.bad
        if data.strip() == "[DONE]":
            return answer.whole()
        try:
            event = parse_json(clean(data))
        except ValueError as error:
            answer.bad = error  # told only where more follows: else it is a stream cut in the middle
            continue
        if isinstance(event, dict) and (kind == "error" or event.get("error")):
            return event if event.get("error") else {"error": event}
        text = answer.add(event)
        if text:
            on_text(text)
    if not answer.has_ended:
        raise StreamCut
    return answer.whole()


def content_text(content: Any) -> str:
    """Return the text of a content: a string, null, or a list of parts of which some hold text."""
    if isinstance(content, list):
        return "".join(content_text(part) for part in content)
    if isinstance(content, dict):
        content = content.get("text")
    return content if isinstance(content, str) else ""


class _Answer:
    """What has come so far."""

    def __init__(self) -> None:
        self.has_ended = False  # the reason why the model stopped has come
        self.bad: ValueError | None = None
        self._frame: JsonObject = {}  # id, model, usage …
        self._message: JsonObject = {}
        self._calls: list[JsonObject] = []
        self._choice: JsonObject = {}

    def whole(self) -> JsonObject:
        """Return it as an answer without streaming."""
        choice = {**self._choice, "message": {**self._message, "tool_calls": self._calls}}
        return {**self._frame, "choices": [choice] if self._choice else []}

    def add(self, event: Any) -> str:
        """Take the data of one event; return the text that is new in it."""
        if not isinstance(event, dict):
            return ""
        self._frame.update({name: value for name, value in event.items() if name != "choices" and value is not None})
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict) or choice.get("index") not in (0, None):
            return ""
        self._choice.update({name: choice.get(name) or self._choice.get(name) for name in ("finish_reason", "error")})
        self.has_ended = bool(self._choice["finish_reason"])
        delta = choice.get("delta") or (None if self._message or self._calls else choice.get("message"))
        return self._add_delta(delta) if isinstance(delta, dict) else ""

    def _add_delta(self, delta: JsonObject) -> str:
        calls = delta.get("tool_calls")
        for piece in calls if isinstance(calls, list) else [calls]:
            if isinstance(piece, dict):
                self._add_call(piece)
        text = content_text(delta.get("content"))
        for name, value in {**delta, "content": text}.items():
            if name not in ("role", "tool_calls"):
                _join(self._message, name, value)
        return text

    def _add_call(self, piece: JsonObject) -> None:
        """Put a piece to its call: by index, by id, or, where it has neither, to the last one."""
        call = self._call_of(piece)
        for name, value in piece.items():
            if name == "function" and isinstance(value, dict):
                function = call.setdefault("function", {})
                for inner, part in value.items():
                    if inner != "name" or function.get("name") != part:  # some repeat the name with every piece
                        _join(function, inner, part)
            elif name in ("id", "index", "type"):
                call[name] = call.get(name) if value in (None, "") else value
            else:
                _join(call, name, value)

    def _call_of(self, piece: JsonObject) -> JsonObject:
        index, id = piece.get("index"), piece.get("id")
        known = [call for call in self._calls if index is not None and call.get("index") == index]
        known = known or [call for call in self._calls if id and call.get("id") == id]
        if not known and index is None and not id:
            known = self._calls
        if not known or _begins_anew(piece, known[-1]):
            self._calls.append({})
            return self._calls[-1]
        return known[-1]


def _begins_anew(piece: JsonObject, call: JsonObject) -> bool:
    """Tell whether a piece is another call under the index of one before: servers exist that count all calls as 0."""
    function = piece.get("function")
    if not isinstance(function, dict) or not function.get("name"):
        return False
    if piece.get("id") and call.get("id"):
        return bool(piece["id"] != call["id"])
    arguments = call.get("function", {}).get("arguments")
    if not isinstance(arguments, str) or not function.get("arguments"):
        return isinstance(arguments, dict)
    try:
        parse_json(arguments)
    except ValueError:
        return False
    return True


def _join(into: JsonObject, name: str, value: Any) -> None:
    """Put a value behind what had come under its name: texts and lists grow, anything else is replaced."""
    before = into.get(name)
    if value is None:
        into.setdefault(name, None)
    elif (isinstance(before, str) and isinstance(value, str)) or (isinstance(before, list) and isinstance(value, list)):
        into[name] = before + value  # type: ignore[operator]
    else:
        into[name] = value
