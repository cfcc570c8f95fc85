"""What a tool is: a name, a description, parameters, and a function of the checked arguments.

One definition of the parameters serves three ends: the JSON schema that the model is sent, the check of what it
sends back, and the canonical form in which two calls are compared.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mini_agent.conversation.events import Event
from mini_agent.conversation.messages import JsonObject

RESULT_LIMIT_BYTES = 50_000  # of any result: about 12,000 tokens, more than a model reads well at once


class ToolError(Exception):
    """A tool call that came to nothing, told to the model: the cause, the nearest thing that exists, the next step."""

    def __init__(self, code: str, message: str) -> None:
        """Keep `code`, one word in snake_case for the kind, and `message`, sentences for the model."""
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class ToolOutcome:
    """What running a tool came to."""

    text: str
    is_error: bool = False
    events: tuple[Event, ...] = ()  # facts to be recorded before the result
    read_paths: tuple[Path, ...] = ()  # resolved files that the model has now seen
    hide_call: bool = False  # bookkeeping: the model is not shown this call and its result again


@dataclass(frozen=True)
class Parameter:
    """One argument of a tool."""

    name: str
    type: str  # a JSON schema type: string, integer, boolean, object, array
    description: str
    default: Any = None
    required: bool = False
    items: tuple[Parameter, ...] = ()  # of an array: the fields of the objects in it


class Tool(Protocol):
    """Anything that the model can be offered. `run` gets arguments that passed the check, defaults filled in."""

    name: str
    description: str
    time_limit_seconds: float = 60.0
    narrowing: str = ""  # how to ask for less, for the line that says a result was cut
    only_reads: bool = False  # it changes nothing, so that a call of it may be run that was written as text

    @property
    def parameters(self) -> Sequence[Parameter]:
        """Return its arguments."""
        ...

    def run(self, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Do the work; raise ToolError where it cannot be done."""
        ...


_TYPE_NAMES = {str: "string", int: "integer", bool: "boolean", dict: "object", list: "array", float: "number"}


def parameters_schema(parameters: Sequence[Parameter]) -> JsonObject:
    """Return the JSON schema of an object with these fields."""
    properties: JsonObject = {}
    for parameter in parameters:
        entry: JsonObject = {"type": parameter.type, "description": parameter.description}
        if parameter.items:
            entry["items"] = parameters_schema(parameter.items)
        if not parameter.required:
            entry["default"] = parameter.default
        properties[parameter.name] = entry
    required = [parameter.name for parameter in parameters if parameter.required]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def check_arguments(parameters: Sequence[Parameter], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with defaults filled in; raise ToolError that names every mistake at once.

    Taken although not quite right: an integer, boolean, object or array as text, null for what may be left out.
    """
    problems: list[str] = []
    checked = _check_object(parameters, arguments, "", problems)
    if problems:
        raise ToolError("bad_arguments", "; ".join(problems) + ". Call it again with these put right.")
    return checked


def _check_object(
    parameters: Sequence[Parameter], arguments: Mapping[str, Any], prefix: str, problems: list[str]
) -> dict[str, Any]:
    known = {parameter.name: parameter for parameter in parameters}
    for name in arguments:
        if name not in known:
            near = nearest(str(name), known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            problems.append(f"unknown argument {prefix + str(name)!r}: {hint}")
    checked: dict[str, Any] = {}
    for name, parameter in known.items():
        value = arguments.get(name)
        if value is None and parameter.required:
            problems.append(f"argument {prefix + name!r} ({parameter.type}) is missing")
        elif value is None:
            checked[name] = parameter.default
        else:
            checked[name] = _check_value(parameter, value, prefix + name, problems)
    return checked


def _check_value(parameter: Parameter, value: Any, label: str, problems: list[str]) -> Any:
    value = _from_text(parameter.type, value)
    if _type_name(value) != parameter.type:
        problems.append(f"argument {label!r} must be {parameter.type}, not {_type_name(value)}")
    elif parameter.items:
        return [_check_item(parameter, item, f"{label}[{index}]", problems) for index, item in enumerate(value)]
    return value


def _check_item(parameter: Parameter, item: Any, label: str, problems: list[str]) -> Any:
    if not isinstance(item, dict):
        problems.append(f"{label} must be object, not {_type_name(item)}")
        return item
    return _check_object(parameter.items, item, label + ".", problems)


def _from_text(type_name: str, value: Any) -> Any:
    """Read what came as text and is not meant as text, or a float without a fraction, as small models write them."""
    if isinstance(value, str) and type_name != "string":
        try:
            read = json.loads(value.lower() if type_name == "boolean" else value)
        except (ValueError, RecursionError):
            return value
        value = read if _type_name(read) in (type_name, "number") else value
    is_whole = type_name == "integer" and isinstance(value, float) and value.is_integer()
    return int(value) if is_whole else value


def _type_name(value: Any) -> str:
    """Return the JSON schema type of what was read from JSON."""
    return _TYPE_NAMES.get(type(value), "null")


def canonical_call(name: str, arguments: Mapping[str, Any]) -> str:
    """Return a call in the one form in which two calls are compared: checked arguments, keys sorted."""
    return f"{name} {json.dumps(arguments, sort_keys=True, ensure_ascii=True)}"


def nearest(name: str, existing: Iterable[str], count: int = 3) -> list[str]:
    """Return the names most like `name`, best first, for an error that says what there is instead."""
    return difflib.get_close_matches(name, list(existing), count, cutoff=0.5)
