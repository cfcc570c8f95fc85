"""How a model is offered tools and calls them: natively, in fields of the format, or in the text, for any model.

The seam has two implementations. `NativeProtocol` leaves all as it is. `TextProtocol` describes the tools in the
instructions, reads a call from a fenced block of the reply, and shows calls and results of before as text; so a model
or a server that knows nothing of tools can work with them.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Protocol

from mini_agent.conversation.messages import AssistantMessage, JsonObject, Message, Reminder, ToolCall, ToolResult
from mini_agent.model.text_calls import after_thoughts, calls_in_json
from mini_agent.model.tool_call_reading import CUT_OFF
from mini_agent.model.untrusted_json import parse_first_json

_BLOCK = """\
end your reply with one block of this form, and write nothing behind it:
```tool_call
{"name": "read_file", "arguments": {"path": "notes.txt"}}
```
The result comes in the next message: never write one yourself."""

_HOW_TO_CALL = f"""\
# How to call a tool
To call one, {_BLOCK} The arguments are JSON, so a line break in a text is \\n in it. When you need no tool any more, \
answer without such a block.

# Your tools"""

# With it Qwen2.5-Coder-1.5B, whose server reads none of its calls, makes 7 of 10 first calls so that they can be read
# here, instead of 4; the rest it makes up, or tells the user what to run.
_OR_AS_TEXT = f"""\
# How to call a tool
Call tools yourself, now, instead of telling the user what to run. Where you have no other way to make a call, \
{_BLOCK}"""

# Without this a small model (Qwen2.5-Coder-1.5B) calls again instead of answering.
_AFTER_RESULTS = "[If this is enough to answer the request, answer it now in plain words and without a call.]"

_OPENING = re.compile(r"^[ \t]*```[ \t]*tool_call[ \t]*\n", re.MULTILINE)
_CLOSING = re.compile(r"^[ \t]*```", re.MULTILINE)


class ToolProtocol(Protocol):
    """A way of offering tools and of calling them."""

    def instructions(self, tools: Sequence[JsonObject]) -> str:
        """Return what the instructions have to say of the tools; "" for nothing."""
        ...

    def offered(self, tools: Sequence[JsonObject]) -> Sequence[JsonObject]:
        """Return the tools that go into the field of the request for them."""
        ...

    def outgoing(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages as they are sent."""
        ...

    def incoming(self, message: AssistantMessage, tool_names: Collection[str], finish_reason: str) -> AssistantMessage:
        """Return the model's message with the calls that it makes."""
        ...


class NativeProtocol:
    """The server knows tools: they go into the request, and calls come in a field of the message."""

    def __init__(self, is_sure: bool = True) -> None:
        """Take whether the model is known to be able to call tools so."""
        self._is_sure = is_sure

    def instructions(self, tools: Sequence[JsonObject]) -> str:
        """Say nothing, for the request has the tools; a model that may not know them is told a way out."""
        return _OR_AS_TEXT if tools and not self._is_sure else ""

    def offered(self, tools: Sequence[JsonObject]) -> Sequence[JsonObject]:
        """Return all of them."""
        return tools

    def outgoing(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return them as they are."""
        return messages

    def incoming(self, message: AssistantMessage, tool_names: Collection[str], finish_reason: str) -> AssistantMessage:
        """Return it as it is."""
        return message


class TextProtocol:
    """The server knows nothing of tools: all that concerns them is text."""

    def instructions(self, tools: Sequence[JsonObject]) -> str:
        """Describe how to call, and each tool in a few lines."""
        return "\n".join([_HOW_TO_CALL, *map(_described, tools)])

    def offered(self, tools: Sequence[JsonObject]) -> Sequence[JsonObject]:
        """Return none."""
        return ()

    def outgoing(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return them with calls as blocks and results in the user's place, those of one reply together."""
        sent: list[Message] = []
        for are_results, group in itertools.groupby(messages, lambda message: isinstance(message, ToolResult)):
            if are_results:  # in one message: templates exist that want user and model in turn
                sent.append(Reminder("\n\n".join([*map(_result, group), _AFTER_RESULTS])))
            else:
                sent += map(_with_blocks, group)
        return sent

    def incoming(self, message: AssistantMessage, tool_names: Collection[str], finish_reason: str) -> AssistantMessage:
        """Read the blocks; of one that cannot be read the model will be told in its result.

        What stands behind them, calls included, is left out: it was written as if their results were known.
        """
        opening, calls = _OPENING.search(message.text, after_thoughts(message.text)), list(message.tool_calls)
        text, rest = message.text[: opening.start()] if opening else "", message.text
        while opening:
            rest = rest[opening.end() :]
            end, next_start = _extent(rest)
            calls += calls_in_json(rest[:end], tool_names, is_tagged=True)
            rest = rest[next_start:].lstrip()
            opening = _OPENING.match(rest)
        if len(calls) == len(message.tool_calls):
            return message
        if finish_reason == "length":
            calls = [replace(call, problem=CUT_OFF) for call in calls]
        return replace(message, text=text.strip(), tool_calls=tuple(calls))


def _extent(text: str) -> tuple[int, int]:
    """Return where the content of a block ends, and where the text goes on behind its closing fence.

    An object that can be read ends by itself: a patch in it may have fences of its own.
    """
    try:
        end = parse_first_json(text)[1]
    except ValueError:
        end = 0
    closing = re.compile(r"\s*```").match(text, end) if end else None
    closing = closing or _CLOSING.search(text)
    return (closing.start(), closing.end()) if closing else (len(text), len(text))


def _result(message: Message) -> str:
    name = message.tool_name if isinstance(message, ToolResult) else ""
    return f"[Result of {name}]\n{message.text}"


def _with_blocks(message: Message) -> Message:
    if not isinstance(message, AssistantMessage) or not message.tool_calls:
        return message
    text = "\n\n".join(filter(None, [message.text, *map(_block, message.tool_calls)]))
    return replace(message, text=text, tool_calls=())


def _block(call: ToolCall) -> str:
    """Return a call as the model is to write it; one that could not be read as it was written."""
    content = call.arguments_text
    if call.arguments is not None:
        content = json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False)
    return f"```tool_call\n{content}\n```"


def _described(tool: JsonObject) -> str:
    lines = [f"- {tool['name']}: {tool['description']}"]
    return "\n".join([*lines, *_fields(tool["parameters"], "    ")])


def _fields(schema: JsonObject, indent: str) -> list[str]:
    """Return a line for each field of an object, those of the objects in a list below it."""
    lines = []
    for name, field in schema["properties"].items():
        default = "" if name in schema["required"] else f", default {json.dumps(field.get('default'))}"
        lines.append(f"{indent}{name} ({field['type']}{default}): {field['description']}")
        if "items" in field:
            lines += _fields(field["items"], indent + "    ")
    return lines
