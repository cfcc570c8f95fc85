"""The many shapes in which servers return a tool call, read into `ToolCall`s.

A call is run only when it came whole and can be read in one way. Anything else becomes a call with a `problem`, which
the toolbox gives back to the model as the call's result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from mini_agent.conversation.messages import JsonObject, ToolCall
from mini_agent.model.untrusted_json import parse_first_json

CUT_OFF = (
    "the reply was cut off at the limit of its length, so none of its calls was run. "
    "Send less at a time: one call only, a long patch in several smaller ones."
)
_AROUND_CHARACTERS = 40  # shown on either side of the place where the JSON is wrong
_OF_FUNCTION = ("name", "arguments")
_STANDARD_FIELDS = ("id", "type", "index", "function", *_OF_FUNCTION)
_MARKER = re.compile(r"<\|.*?(?:\|>|$)", re.DOTALL)
_TYPE_NAMES = {str: "a string", list: "an array", bool: "a boolean", int: "a number", float: "a number"}


def read_tool_calls(raw_calls: Any, tool_names: Collection[str], finish_reason: str) -> tuple[ToolCall, ...]:
    """Return the calls of a reply, in order; ids may still be missing or repeated.

    raw_calls: the message's "tool_calls" as it came: a list, null, or one call alone.
    tool_names: those that the model was offered.
    finish_reason: "length" voids all of them, for the last one may look whole and not be.
    """
    if not isinstance(raw_calls, list):
        raw_calls = [raw_calls] if isinstance(raw_calls, dict) else []
    problem = CUT_OFF if finish_reason == "length" else ""
    return tuple(_read_call(raw, tool_names, problem) for raw in raw_calls if raw is not None)


def _read_call(raw: Any, tool_names: Collection[str], problem: str) -> ToolCall:
    if not isinstance(raw, dict):
        return ToolCall("", "", str(raw), None, problem or "the call is no JSON object.")
    function = raw.get("function")
    if not isinstance(function, dict):  # some servers put name and arguments on the call itself
        function = {name: raw.get(name) for name in _OF_FUNCTION}
    fields = {name: value for name, value in raw.items() if name not in _STANDARD_FIELDS and value is not None}
    beside = {name: value for name, value in function.items() if name not in _OF_FUNCTION}
    if beside:
        fields["function"] = beside
    arguments, wrong = read_arguments(function.get("arguments"))
    id = raw.get("id")
    return ToolCall(
        str(id) if isinstance(id, (str, int)) else "",
        clean_name(function.get("name"), tool_names),
        arguments_text(function.get("arguments")),
        arguments,
        problem or wrong,
        fields,
    )


def clean_name(name: Any, tool_names: Collection[str]) -> str:
    """Return the name without a `functions.` prefix or leaked markers (`<|channel|>…`), if that leaves a known tool."""
    if not isinstance(name, str):
        return ""
    for part in _MARKER.split(name):
        candidate = part.strip()
        if candidate.startswith("functions."):
            candidate = candidate[len("functions.") :]
        if candidate in tool_names:
            return candidate
    return name


def arguments_text(raw: Any) -> str:
    """Return the arguments as the model wrote them, as far as the server let that through."""
    return "" if raw is None else raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)


def read_arguments(raw: Any) -> tuple[JsonObject | None, str]:
    """Return the arguments and "", or None and what is wrong with them, in words for the model.

    Taken although not quite right: nothing at all for no arguments; an object in place of its text; text that was
    encoded twice; a code fence around it; a closing tag or other text after it, unless that could be more arguments.
    """
    value = raw
    for _ in range(2):  # the second time for text that was encoded twice
        if not isinstance(value, str):
            break
        text = value.strip().removeprefix("```").removeprefix("json")  # what closes the fence is text after the object
        if not text.strip():
            return {}, ""
        try:
            value, end = parse_first_json(text)
        except json.JSONDecodeError as error:
            return None, _invalid(error.msg, text, error.pos)
        except ValueError as error:
            return None, f"the arguments are invalid JSON: {error}."
        if re.search(r'[{\["]', text[end:]):
            return None, _invalid("there is more after the end of the object", text, end)
    if value is None or value == []:  # an empty object, written in PHP
        return {}, ""
    if not isinstance(value, dict):
        return None, f"the arguments must be one JSON object, not {_TYPE_NAMES[type(value)]}."
    return value, ""


def _invalid(what: str, text: str, position: int) -> str:
    before = text[max(0, position - _AROUND_CHARACTERS) : position]
    after = text[position : position + _AROUND_CHARACTERS]
    place = f"after `{before}`" if before.strip() else "at the very beginning"
    found = f"`{after}`" if after.strip() else "the end"
    return (
        f"the arguments are invalid JSON: {what} at character {position} of {len(text)}, where {place} comes {found}. "
        "Send the call again, whole, with this put right."
    )
