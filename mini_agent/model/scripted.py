"""A model that follows a script: for the demo, for tests and for evals. The rest of the program can't tell.

A script is a JSON file:

    {"replies": [
        {"text": "I look first.", "tool_calls": [{"name": "list_files", "arguments": {"path": "."}}]},
        {"text": "Done.", "usage": {"input": 1200, "output": 40, "cached": 1000}},
        {"error": "server_failed", "text": "the server is down"}
     ],
     "summaries": ["What was done so far: …"]}

Each reply is given once, in order. A request without tools asks for a summary, and takes the next of `summaries`.
`arguments` is an object, or text, which is read like a server's, so that a script can be as wrong as a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Callable, Union

from mini_agent.conversation.messages import AssistantMessage, JsonObject, Message, ToolCall, Usage
from mini_agent.model.chat_model import BadReply, ModelError, ModelReply, Watch
from mini_agent.model.tool_call_reading import arguments_text, read_arguments
from mini_agent.model.untrusted_json import parse_json

Step = Union[ModelReply, ModelError, Callable[[Sequence[Message], Sequence[JsonObject]], ModelReply]]

_ERRORS = {error.kind: error for error in ModelError.__subclasses__()}


class ScriptedModel:
    """Give one step of a script after the other."""

    def __init__(self, steps: Iterable[Step], summaries: Iterable[str] = (), name: str = "scripted") -> None:
        """Take the steps: replies, errors to be raised, or functions of the request that return a reply.

        They may come from a generator; one is taken at each request.
        """
        self.name = name
        self._steps: Iterator[Step] = iter(steps)
        self._summaries = iter(summaries)

    def reply(
        self, messages: Sequence[Message], tools: Sequence[JsonObject], watch: Watch, may_call_tools: bool = True
    ) -> ModelReply:
        """Return the next reply of the script; see `ChatModel.reply`."""
        if not tools:
            return ModelReply(AssistantMessage(next(self._summaries, "(The script has no summary.)")), model=self.name)
        step = next(self._steps, None)
        if step is None:
            raise BadReply("the script has no more replies")
        if isinstance(step, ModelError):
            raise step
        reply = step if isinstance(step, ModelReply) else step(messages, tools)
        if reply.message.text:
            watch.text(reply.message.text)
        return reply


_FORM = '{"text": "…", "tool_calls": [{"name": "…", "arguments": {…}}]}'


def load_script(path: Path) -> ScriptedModel:
    """Read a script file; raise ValueError, saying where, when it is no script, and OSError as `open` does."""
    try:
        data = parse_json(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"{path}: not JSON: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("replies"), list):
        raise ValueError(f'{path}: a script is an object with a list "replies"')
    summaries = data.get("summaries", [])
    if not isinstance(summaries, list):
        raise ValueError(f'{path}: "summaries" is no list')
    steps: list[Step] = []
    for number, item in enumerate(data["replies"], 1):
        try:
            steps.append(_read_step(item))
        except ValueError as error:
            raise ValueError(f"{path}, reply {number}: {error}") from error
        except (TypeError, AttributeError) as error:
            raise ValueError(f"{path}, reply {number}: not of the form {_FORM}") from error
    return ScriptedModel(steps, [str(text) for text in summaries])


def _read_step(item: JsonObject) -> Step:
    unknown = set(item) - {"text", "tool_calls", "usage", "error"}
    if unknown:
        raise ValueError(f"a reply has text, tool_calls, usage or error, and no {', '.join(sorted(unknown))}")
    text = str(item.get("text", ""))
    if "error" in item:
        if item["error"] not in _ERRORS:
            raise ValueError(f"no such error: {item['error']!r}; there are {', '.join(_ERRORS)}")
        return _ERRORS[item["error"]](text)
    calls = tuple(_read_call(call) for call in item.get("tool_calls", ()))
    usage = item.get("usage")
    counted = Usage(*(int(usage.get(name, 0)) for name in ("input", "output", "cached"))) if usage else None
    return ModelReply(AssistantMessage(text, calls), counted, "scripted", "", "tool_calls" if calls else "stop")


def _read_call(item: JsonObject) -> ToolCall:
    if "name" not in item:
        raise ValueError("a tool call has no name")
    raw = item.get("arguments", {})
    arguments, problem = read_arguments(raw)
    return ToolCall("", str(item["name"]), arguments_text(raw), arguments, problem)
