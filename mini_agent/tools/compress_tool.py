"""compress_tool: the model puts what it has learned in the place of results that it needs no longer in full.

This is the model's own hand on its context, beside the compression that the program does when it must. It does no
work of its own: it returns events, and the conversation shows the shorter text from then on. The log keeps the
originals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Callable

from mini_agent.conversation.conversation import EarlierResult
from mini_agent.conversation.events import Event, Notice, ToolOutputCompressed
from mini_agent.tools.tool import Parameter, Tool, ToolError, ToolOutcome, canonical_call

NAME = "compress_tool"
MOST_COMPRESSIONS = 2  # of one result: a summary of a summary of a summary has lost what it was about
_PREFIX = "functions."  # some models write it before every tool's name

_REPLACEMENTS = Parameter(
    "replacements",
    "array",
    "The results to be replaced.",
    required=True,
    items=(
        Parameter("tool_name", "string", "The tool of the earlier call.", required=True),
        Parameter("tool_arguments", "object", "The arguments of the earlier call.", default={}),
        Parameter("replace_content", "string", "What stands there from now on; shorter, not blank.", required=True),
    ),
)


class CompressTool(Tool):
    """Replace earlier results by shorter texts."""

    name = NAME
    description = (
        "Replace earlier tool results by a short text of yours, to keep the context small. Name each by its tool and "
        "its arguments. Do it only when you know which facts matter, and keep all of those: names, numbers, paths, "
        "line numbers, error messages. Never do it to diffs, stack traces or test failures that may have to be read "
        "exactly. Of a call made several times all results but the newest are replaced. The full text does not come "
        f"back; a result can be replaced {MOST_COMPRESSIONS} times."
    )
    parameters = (_REPLACEMENTS,)

    def __init__(
        self,
        earlier_results: Callable[[], Sequence[EarlierResult]],
        canonical: Callable[[str, Mapping[str, Any]], str],
    ) -> None:
        """Take the view of the conversation.

        earlier_results: returns the results that the model can see, oldest first.
        canonical: returns a call, from name and arguments, in the form in which two are compared.
        """
        self._earlier_results = earlier_results
        self._canonical = canonical

    def run(self, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Replace what can be; each replacement succeeds or fails alone, and the answer has a line for each."""
        if not arguments["replacements"]:
            raise ToolError("bad_arguments", "'replacements' is empty: name at least one earlier call.")
        results = {result.call_id: result for result in self._earlier_results() if _base(result.tool_name) != NAME}
        events: list[ToolOutputCompressed] = []
        lines, failed = [], 0
        for number, item in enumerate(arguments["replacements"], 1):
            try:
                done = self._replace(item, results)
                events += done
                lines.append(f"{number}. {_told(done)}")
            except ToolError as error:
                failed += 1
                lines.append(f"{number}. Error [{error.code}]: {error}")
        told: list[Event] = [Notice(f"{NAME}: {_told(events)}")] if events else []
        return ToolOutcome("\n".join(lines), not events, (*events, *told), hide_call=not failed)

    def _replace(self, item: Mapping[str, Any], results: dict[str, EarlierResult]) -> list[ToolOutputCompressed]:
        """Carry out one replacement: note it in `results` and return its events, or raise ToolError."""
        name, text = _base(item["tool_name"]), item["replace_content"]
        if name == NAME:
            raise ToolError("not_compressible", f"calls of {NAME} cannot be named.")
        if not text.strip():
            raise ToolError("blank", "'replace_content' is blank. Say in it what must be known of the result.")
        same = self._calls_like(name, item["tool_arguments"], list(results.values()))
        events = []
        for result in _to_replace(same, text):
            events.append(ToolOutputCompressed(result.call_id, text, len(result.text)))
            results[result.call_id] = replace(result, text=text, compressions=result.compressions + 1)
        if not events:
            raise ToolError("not_shorter", "'replace_content' is not shorter than what it would replace. Say less.")
        return events

    def _calls_like(
        self, name: str, arguments: Mapping[str, Any], results: Sequence[EarlierResult]
    ) -> list[EarlierResult]:
        """Return the results of this very call, oldest first; raise ToolError, naming what there is, for none."""
        wanted = self._canonical(name, arguments)
        same = [result for result in results if _base(result.canonical_call) == wanted]
        if same:
            return same
        alike = [_base(result.canonical_call) for result in results if _base(result.tool_name) == name]
        if alike:
            there = f"The calls of {name} that you can see: {'; '.join(dict.fromkeys(alike[-3:]))}."
        else:
            there = f"There are results of: {', '.join(sorted({_base(r.tool_name) for r in results})) or 'no tool'}."
        raise ToolError("no_such_call", f"no earlier call {canonical_call(name, arguments)} with a result. {there}")


def _to_replace(same: Sequence[EarlierResult], text: str) -> list[EarlierResult]:
    """Return which results of one repeated call `text` replaces: all but the newest, unless only one is left.

    Those not compressed yet come first; when all are, the same goes for a second time. One that `text` would not make
    shorter is left alone, and does not keep the newest from its turn: a file is often missed before it is read.
    """
    for compressions in range(MOST_COMPRESSIONS):
        left = [result for result in same if result.compressions == compressions]
        if left:
            longer = [result for result in left if _size(text) < _size(result.text)]
            return [result for result in longer if result is not same[-1]] or longer
    raise ToolError("compressed_already", f"this result was compressed {MOST_COMPRESSIONS} times already.")


def _base(name: str) -> str:
    """Return a tool's name, or a call in canonical form, without the prefix."""
    return name[len(_PREFIX) :] if name.startswith(_PREFIX) else name


def _size(text: str) -> int:
    """Return the length in bytes, which is what a text costs: a Chinese character weighs three ASCII ones."""
    return len(text.encode("utf-8", "surrogatepass"))


def _told(events: Sequence[ToolOutputCompressed]) -> str:
    saved = sum(event.characters_before - len(event.text) for event in events)
    return f"Replaced {len(events)} result{'s' if len(events) > 1 else ''}; {saved:,} characters saved."
