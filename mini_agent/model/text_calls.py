"""Calls that came as text: found in a reply, and told from a reply that merely talks about calls.

Small models write their calls into the text, and servers that have no parser for a model's own form let them through:

    <tool_call>{"name": …, "arguments": …}</tool_call>         Hermes, Qwen; small ones make up a tag of their own
    <function=NAME><parameter=KEY>VALUE</parameter></function>  Qwen's coders
    <|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}<|tool_call_end|>   Kimi, also in its reasoning
    a JSON object with a name and arguments, in a fence or bare, its braces sometimes doubled as in the chat template

Here is only told what stands there. Whether it is run the runner decides, with the toolbox.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from mini_agent.conversation.messages import AssistantMessage, ToolCall
from mini_agent.model.tool_call_reading import CUT_OFF, arguments_text, clean_name, read_arguments
from mini_agent.model.untrusted_json import parse_first_json

NOT_ALONE = "other text or code stands around it, so that it is not clear whether it was meant."
ONLY_ECHO = "it shows tools, and calls none: name the tool and give its arguments."
_NOT_CLOSED = "it has no end: its closing tag is missing."

_BLOCK = re.compile(
    r"(?:<tool_call>\s*)?<function=(?P<function>[^<>]+)>(?P<xml>.*?)(?P<xml_end></function>(?:\s*</tool_call>)?|\Z)"
    r"|<(?P<tag>tool_call(?=>)|tools(?=>)|[a-z_]+(?=>\s*[{\[]))>(?P<tagged>.*?)(?:</(?P=tag)>|\Z)"
    r"|<\|tool_call_begin\|>(?P<kimi>[^<]*)<\|tool_call_argument_begin\|>(?P<json>.*?)(?P<json_end><\|tool_call_end\|>|\Z)"
    r"|^[ \t]*```(?P<language>[^`\n]*)\n(?P<fenced>.*?)(?:^[ \t]*```[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_PARAMETER = re.compile(r"<parameter=([^<>]+)>((?:(?!<parameter=).)*?)</parameter>", re.DOTALL)
_MARKER = re.compile(r"<\|[a-z_]+\|>|\[TOOL_CALLS\]")  # left over from a model's own form: Kimi, Llama, Qwen, Mistral
_STRING_OR_DOUBLED = re.compile(r'"(?:[^"\\]|\\.)*"|\{\{|\}\}', re.DOTALL)
_LINE_WITH_BRACE = re.compile(r"^[ \t]*\{", re.MULTILINE)
_REASONING_FIELDS = ("reasoning_content", "reasoning")


@dataclass(frozen=True)
class TextCalls:
    """The calls that were found in a text."""

    calls: tuple[ToolCall, ...]  # without ids
    text: str  # what stands before them; what is behind was written as if their results were known
    doubt: str = ""  # why they may not be meant, in words for the model; "" where they are
    may_be_talk: bool = False  # the reply may as well be an answer about calls, or a call with a made-up result


@dataclass(frozen=True)
class _Block:
    start: int
    end: int
    calls: tuple[ToolCall, ...]  # empty for code of another kind
    is_echo: bool = False  # the model repeats the tools that it was offered
    is_our_form: bool = False  # the one that our own instructions name


def find_text_calls(message: AssistantMessage, tool_names: Collection[str], finish_reason: str) -> TextCalls | None:
    """Return the calls that a reply's text holds, or None for a reply that is an answer.

    They are meant where the text, or its one fenced or tagged block, is such a call; so are several blocks with
    nothing but blanks between and behind them. A reply without text is looked for in its reasoning, for tagged ones.
    Calls amid other code are doubtful: small models go on behind a call with a result that they make up.
    """
    text = message.text
    if text.strip():
        found = _find(text[: after_thoughts(text)], text[after_thoughts(text) :], tool_names)
    else:
        thoughts = next((t for t in map(message.provider_fields.get, _REASONING_FIELDS) if isinstance(t, str)), "")
        calls = tuple(call for block in _blocks(thoughts, tool_names, fences=False) for call in block.calls)
        found = TextCalls(calls, "") if calls else None
    if found and finish_reason == "length":
        found = replace(found, calls=tuple(replace(call, problem=CUT_OFF) for call in found.calls))
    return found


def after_thoughts(text: str) -> int:
    """Return where the text begins that is no reasoning; some servers leave the model's <think> part in it."""
    end = text.rfind("</think>")
    return end + len("</think>") if end >= 0 else 0


def _find(thoughts: str, text: str, tool_names: Collection[str]) -> TextCalls | None:
    blocks = list(_blocks(text, tool_names))
    with_calls = [block for block in blocks if block.calls]
    if not with_calls:
        echoes = [block for block in blocks if block.is_echo]
        rest = _without(text, echoes)
        found = _find_bare(thoughts, rest, tool_names)
        if not found and echoes:
            return TextCalls((), (thoughts + rest).strip(), ONLY_ECHO)
        return found
    calls: list[ToolCall] = []
    for block in with_calls:
        calls += [call for call in block.calls if call not in calls]  # small models say the same twice
    left = thoughts + _without(text[: with_calls[0].start], [block for block in blocks if block.is_echo])
    between = [text[one.end : other.start] for one, other in zip(with_calls, with_calls[1:])]
    behind = _MARKER.sub("", text[with_calls[-1].end :]).strip()
    if with_calls[0].is_our_form:
        return TextCalls(with_calls[0].calls, left.strip())
    has_code = any(not block.calls and not block.is_echo for block in blocks)
    if not has_code and (len(calls) == 1 or not "".join([*between, behind]).strip()):
        return TextCalls(tuple(calls), left.strip())
    return TextCalls(tuple(calls), left.strip(), NOT_ALONE, may_be_talk=bool(behind))


def _find_bare(thoughts: str, text: str, tool_names: Collection[str]) -> TextCalls | None:
    """Find an object without a fence: alone, or, which is doubtful, before or behind other text."""
    text = text.strip()
    if text.startswith(("{", "[")):
        calls = calls_in_json(text, tool_names, is_tagged=False)
        if calls:
            return TextCalls(tuple(calls), thoughts.strip())
    for brace in list(_LINE_WITH_BRACE.finditer(text))[-20:]:
        if _goes_on_behind_json(text[brace.start() :]):
            continue
        calls = calls_in_json(text[brace.start() :], tool_names, is_tagged=False)
        if calls:
            return TextCalls(tuple(calls), (thoughts + text[: brace.start()]).strip(), NOT_ALONE)
    return None


def _goes_on_behind_json(text: str) -> bool:
    try:
        return bool(text[parse_first_json(text)[1] :].strip())
    except ValueError:
        return False


def _without(text: str, blocks: list[_Block]) -> str:
    for block in reversed(blocks):
        text = text[: block.start] + text[block.end :]
    return _MARKER.sub("", text)


# ------------------------------------------------------------------------------------------------------- the blocks


def _blocks(text: str, tool_names: Collection[str], fences: bool = True) -> Iterator[_Block]:
    """Yield the tagged and the fenced blocks of a text, in order."""
    for match in _BLOCK.finditer(text):
        if match["function"] is not None:
            calls = [_xml_call(match["function"], match["xml"], bool(match["xml_end"]), tool_names)]
        elif match["json"] is not None:
            name = re.sub(r":\d+\s*$", "", match["kimi"]).strip()
            calls = [_call(name, match["json"], tool_names, "" if match["json_end"] else _NOT_CLOSED)]
        elif match["tag"]:
            calls = calls_in_json(match["tagged"], tool_names, is_tagged=match["tag"] == "tool_call")
        else:
            calls = calls_in_json(match["fenced"], tool_names, is_tagged=False)
        is_block = calls or match["tag"] in (None, "tools")  # else a page of XML that happens to hold a brace
        if is_block and (fences or match["fenced"] is None):
            is_echo, is_our_form = match["tag"] == "tools" and not calls, match["language"] == "tool_call"
            yield _Block(match.start(), match.end(), tuple(calls), is_echo, is_our_form)


def _xml_call(name: str, body: str, is_closed: bool, tool_names: Collection[str]) -> ToolCall:
    """Read a call whose values are plain text; the toolbox reads numbers and lists out of them."""
    arguments = {key.strip(): _unwrapped(value) for key, value in _PARAMETER.findall(body)}
    is_whole = is_closed and not _PARAMETER.sub("", body).strip()
    return _call(name, arguments, tool_names, "" if is_whole else _NOT_CLOSED)


def _unwrapped(value: str) -> str:
    """Return a value without the line ends that the form puts around it."""
    value = value[1:] if value.startswith("\n") else value
    return value[:-1] if value.endswith("\n") else value


def _call(name: Any, raw_arguments: Any, tool_names: Collection[str], problem: str = "") -> ToolCall:
    arguments, wrong = read_arguments(raw_arguments)
    cleaned = clean_name(name.strip() if isinstance(name, str) else "", tool_names)
    return ToolCall("", cleaned, arguments_text(raw_arguments), arguments, problem or wrong)


def calls_in_json(text: str, tool_names: Collection[str], *, is_tagged: bool) -> list[ToolCall]:
    """Return the calls that JSON text holds: one object, several, or a list of them.

    is_tagged: nothing but a call can stand here, so that one that cannot be read or has an unknown name is one, too.
    Elsewhere an object has to name a known tool, or to have a call's two fields and no other: the JSON of an answer
    has names, too.
    """
    try:
        values = _values(text)
    except ValueError:
        if '"description"' in text:  # what a small model makes of a definition that it says again
            return []
        named = re.search(r'"name"\s*:\s*"([^"]*)"', text)
        is_meant = named and clean_name(named[1], tool_names) in tool_names and re.search('"(arg|param)', text)
        if not is_tagged and not (is_meant and text.lstrip().startswith(("{", "["))):
            return []
        return [_call(named[1] if named else "", text, tool_names, read_arguments(text)[1] or NOT_ALONE)]
    calls = []
    for value in values:
        function = value.get("function") if isinstance(value, dict) else None
        value = function if isinstance(function, dict) else value
        if not isinstance(value, dict) or "description" in value:  # a definition of a tool, and no call
            continue
        raw = next((value[key] for key in ("arguments", "parameters") if key in value), None)
        if (raw is None and not is_tagged) or (isinstance(raw, dict) and raw.get("type") == "object"):
            continue
        call = _call(value.get("name"), raw, tool_names)
        is_call_by_its_form = isinstance(raw, dict) and value.keys() == {"name", "arguments"}
        if is_tagged or is_call_by_its_form or call.name in tool_names:
            calls.append(call)
    return calls


def _values(text: str) -> list[Any]:
    """Return the JSON values that follow on one another in a text, lists opened; raise ValueError for all else."""
    text = text.strip()
    if text.startswith("{{"):
        text = _STRING_OR_DOUBLED.sub(_single, text)
    values: list[Any] = []
    while text.strip():
        value, end = parse_first_json(text)
        values += value if isinstance(value, list) else [value]
        text = text[end:]
    return values


def _single(match: re.Match[str]) -> str:
    """Return a doubled brace once; a string as it is."""
    return match[0][0] if match[0] in ("{{", "}}") else match[0]
