"""The toolbox: the registry of tools, and the one place where a call becomes exactly one outcome.

Whatever the model sends, and whatever a tool does, comes out as text for the model: an unknown tool, unreadable
arguments, a wrong type, a failing tool, a time limit. Only Ctrl-C passes through.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Callable

from mini_agent.conversation.messages import JsonObject, ToolCall
from mini_agent.tools.tool import (
    Tool,
    ToolError,
    ToolOutcome,
    canonical_call,
    check_arguments,
    nearest,
    parameters_schema,
)
from mini_agent.tools.tool_clock import TimeLimitExceeded, ToolClock

RESULT_LIMIT_BYTES = 50_000  # about 12,000 tokens: more than a model reads well at once


class Toolbox:
    """The tools that the model is offered."""

    def __init__(
        self,
        tools: Iterable[Tool],
        clock: ToolClock | None = None,
        mask: Callable[[str], str] = str,
        result_limit_bytes: Callable[[], int] = lambda: RESULT_LIMIT_BYTES,
    ) -> None:
        """Take the tools.

        mask: hides secrets in what they return.
        result_limit_bytes: tells how long a result may be now, in bytes of UTF-8; longer ones are cut in the middle.
        """
        self._tools: dict[str, Tool] = {tool.name: tool for tool in tools}
        self._clock = clock or ToolClock()
        self._mask = mask
        self._result_limit_bytes = result_limit_bytes

    @property
    def names(self) -> tuple[str, ...]:
        """Return the tools' names, in the order they were given."""
        return tuple(self._tools)

    def schemas(self) -> tuple[JsonObject, ...]:
        """Return what the model is told of each tool: name, description, parameters as a JSON schema."""
        return tuple(
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": parameters_schema(tool.parameters),
            }
            for tool in self._tools.values()
        )

    def canonical(self, name: str, arguments: Mapping[str, object] | None) -> str:
        """Return a call in the form in which two calls are compared; for one that cannot run, a form of its own."""
        tool = self._tools.get(name)
        try:
            return canonical_call(name, check_arguments(tool.parameters, arguments or {}) if tool else arguments or {})
        except ToolError:
            return canonical_call(name, arguments or {})

    def run(self, call: ToolCall) -> ToolOutcome:
        """Run one call and return its outcome; raise nothing but KeyboardInterrupt."""
        try:
            outcome = self._run(call)
        except ToolError as error:
            outcome = _error(error.code, str(error))
        except TimeLimitExceeded:
            limit = self._tools[call.name].time_limit_seconds
            outcome = _error("timeout", f"{call.name} took over {limit:g} seconds and was stopped. Ask for less.")
        except Exception as error:  # a tool's fault is the model's to know and not the session's end
            outcome = _error("internal", f"{call.name} failed: {type(error).__name__}: {error}")
        return self._presentable(call.name, outcome)

    def _run(self, call: ToolCall) -> ToolOutcome:
        tool = self._tools.get(call.name)
        if tool is None:
            near = nearest(call.name, self._tools, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ToolError("unknown_tool", f"unknown tool {call.name!r}; there are {', '.join(self._tools)}.{hint}")
        if call.problem or call.arguments is None:
            raise ToolError("bad_call", call.problem or "the arguments could not be read.")
        arguments = check_arguments(tool.parameters, call.arguments)
        with self._clock.limit(tool.time_limit_seconds):
            return tool.run(arguments)

    def _presentable(self, name: str, outcome: ToolOutcome) -> ToolOutcome:
        tool = self._tools.get(name)
        limit_bytes = min(self._result_limit_bytes(), RESULT_LIMIT_BYTES)
        text = cut_middle(self._mask(outcome.text), limit_bytes, tool.narrowing if tool else "")
        return ToolOutcome(text, outcome.is_error, outcome.events, outcome.read_paths, outcome.hide_call)


def _error(code: str, message: str) -> ToolOutcome:
    return ToolOutcome(f"Error [{code}]: {message}", is_error=True)


def cut_middle(text: str, limit_bytes: int, narrowing: str = "") -> str:
    """Return `text` in at most about `limit_bytes` of UTF-8: its first 70 %, a line on what is missing, its last 30 %.

    The cuts fall on line ends where there are any near.
    """
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= limit_bytes:
        return text
    head = data[: limit_bytes * 7 // 10]
    tail = data[len(data) - limit_bytes * 3 // 10 :]
    if b"\n" in head[len(head) // 2 :]:
        head = head[: head.rindex(b"\n") + 1]
    if b"\n" in tail[: len(tail) // 2]:
        tail = tail[tail.index(b"\n") + 1 :]
    missing = len(data) - len(head) - len(tail)
    note = f"[… {missing:,} of {len(data):,} bytes are left out here{'. ' + narrowing if narrowing else ''} …]"
    head_text, tail_text = head.decode("utf-8", "ignore"), tail.decode("utf-8", "ignore")
    return f"{head_text.rstrip(chr(10))}\n{note}\n{tail_text}"
