"""The toolbox: the registry of tools, and the one place where a call becomes exactly one outcome.

Whatever the model sends, and whatever a tool does, comes out as text for the model: an unknown tool, unreadable
arguments, a wrong type, a failing tool, a time limit. Only Ctrl-C passes through.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Callable

from mini_agent.conversation.cutting import cut_middle
from mini_agent.conversation.messages import JsonObject, ToolCall
from mini_agent.tools.tool import (
    RESULT_LIMIT_BYTES,
    Tool,
    ToolError,
    ToolOutcome,
    canonical_call,
    check_arguments,
    nearest,
    parameters_schema,
)
from mini_agent.tools.tool_clock import TimeLimitExceeded, ToolClock


class Toolbox:
    """The tools that the model is offered."""

    def __init__(
        self,
        tools: Iterable[Tool],
        clock: ToolClock | None = None,
        result_limit_bytes: Callable[[], int] = lambda: RESULT_LIMIT_BYTES,
    ) -> None:
        """Take the tools.

        result_limit_bytes: tells how long a result may be now, in bytes of UTF-8; longer ones are cut in the middle.
        """
        self._tools: dict[str, Tool] = {tool.name: tool for tool in tools}
        self._clock = clock or ToolClock()
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

    def canonical(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return a call in the form in which two calls are compared: defaults filled in, where the tool takes it."""
        tool = self._tools.get(name)
        try:
            return canonical_call(name, check_arguments(tool.parameters, arguments) if tool else arguments)
        except ToolError:
            return canonical_call(name, arguments)

    def canonical_form(self, call: ToolCall) -> str:
        """Return the same for a call as the model made it; one that could not be read is compared by its text."""
        if call.problem or call.arguments is None:
            return f"{call.name} (not readable) {call.arguments_text}"
        return self.canonical(call.name, call.arguments)

    def run(self, call: ToolCall) -> ToolOutcome:
        """Run one call and return its outcome; raise nothing but KeyboardInterrupt."""
        try:
            tool, arguments = self._checked(call)
            with self._clock.limit(tool.time_limit_seconds):
                outcome = tool.run(arguments)
        except ToolError as error:
            outcome = _error(error.code, str(error))
        except TimeLimitExceeded:
            limit = self._tools[call.name].time_limit_seconds
            outcome = _error("timeout", f"{call.name} took over {limit:g} seconds and was stopped. Ask for less.")
        except Exception as error:  # a tool's fault is the model's to know and not the session's end
            outcome = _error("internal", f"{call.name} failed: {type(error).__name__}: {error}")
        narrowing = self._tools[call.name].narrowing if call.name in self._tools else ""
        limit_bytes = min(self._result_limit_bytes(), RESULT_LIMIT_BYTES)
        return replace(outcome, text=cut_middle(outcome.text, limit_bytes, narrowing))

    def objection_to_text_call(self, call: ToolCall) -> str:
        """Return why a call that was found in a text is not to be run, in words for the model; "" where it may be.

        It has to be right in every respect, and its tool only to read: the text may have meant something else.
        """
        try:
            tool, _ = self._checked(call)
        except ToolError as error:
            return str(error)
        return "" if tool.only_reads else f"{call.name} does more than read, so it is run from a real tool call only."

    def _checked(self, call: ToolCall) -> tuple[Tool, dict[str, Any]]:
        """Return the tool and the checked arguments; raise ToolError where the call cannot be run."""
        tool = self._tools.get(call.name)
        if tool is None:
            near = nearest(call.name, self._tools, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ToolError("unknown_tool", f"unknown tool {call.name!r}; there are {', '.join(self._tools)}.{hint}")
        if call.problem or call.arguments is None:
            raise ToolError("bad_call", call.problem or "the arguments could not be read.")
        return tool, check_arguments(tool.parameters, call.arguments)


def _error(code: str, message: str) -> ToolOutcome:
    return ToolOutcome(f"Error [{code}]: {message}", is_error=True)
