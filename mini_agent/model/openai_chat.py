"""The OpenAI chat completions format: messages → request, answer → `ModelReply`, and the model that does both.

The pure halves are functions. A request is plain (model, messages, tools, tool_choice) because old and small servers
refuse what they do not know. An answer is read generously, because every server leaves out or adds something.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mini_agent.conversation.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    SystemMessage,
    ToolCall,
    ToolResult,
    Usage,
)
from mini_agent.model.chat_model import (
    BadReply,
    BadRequest,
    ModelError,
    ModelReply,
    Refused,
    StreamFailed,
    UnknownModel,
    Watch,
)
from mini_agent.model.server_errors import TURN_WORDS
from mini_agent.model.streaming import content_text
from mini_agent.model.tool_call_reading import read_tool_calls
from mini_agent.model.tool_protocol import NativeProtocol, ToolProtocol
from mini_agent.model.transport import Transport

MODELS_TIMEOUT_SECONDS = 2.0
_EMPTY_CONTENT_WORDS = re.compile(
    r"\b(?:content|text)\b[^.]{0,80}\b(?:empty|blank|null|least 1|at least one|too short)"
    r"|(?:empty|blank)\b[^.]{0,40}\bcontent|either content or tool_?calls",
    re.I,
)
_WINDOW_FIELDS = (  # the first that is there counts; n_ctx_train is what a model could, not what the server lets it
    "loaded_context_length",  # LM Studio
    "n_ctx",  # llama.cpp, in "meta"
    "max_model_len",  # vLLM
    "context_length",  # OpenRouter, Together
    "context_window",  # Groq
    "max_context_length",  # Mistral
)

# ----------------------------------------------------------------------------------------------- messages → request


@dataclass(frozen=True)
class Dialect:
    """How a request is put so that this server takes it."""

    no_text: str | None = ""  # stands for the text of a message that has only calls: Ollama refuses null, others ""
    wants_turns: bool = False  # user and model have to take turns: templates of Mistral and Gemma refuse all else
    streams: bool = False
    tells_stream_usage: bool = True  # a stream is asked for what it costs; old servers refuse to be asked that


def render_request(
    model_name: str,
    messages: Sequence[Message],
    tools: Sequence[JsonObject],
    may_call_tools: bool = True,
    dialect: Dialect = Dialect(),
) -> bytes:
    """Return the body of a request, UTF-8 JSON.

    Each message is rendered from itself alone, so that what is sent only grows at its end and prompt caches hit.
    (Where turns are wanted, a message of the user's that follows one without an answer is joined to it.)
    Lone surrogates, which servers refuse, are sent as "?".
    """
    rendered = [render_message(message, dialect.no_text) for message in messages]
    rendered = _in_turn(rendered) if dialect.wants_turns else rendered
    request: JsonObject = {"model": model_name, "messages": rendered}
    if tools:
        request["tools"] = [{"type": "function", "function": dict(tool)} for tool in tools]
        request["tool_choice"] = "auto" if may_call_tools else "none"
    if dialect.streams:
        request["stream"] = True
    if dialect.streams and dialect.tells_stream_usage:
        request["stream_options"] = {"include_usage": True}
    return json.dumps(request, ensure_ascii=False).encode("utf-8", "replace")


def render_message(message: Message, no_text: str | None = "") -> JsonObject:
    """Return one message as the format has it; no_text as in `Dialect`."""
    if isinstance(message, SystemMessage):
        return {"role": "system", "content": message.text}
    if isinstance(message, ToolResult):
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    if not isinstance(message, AssistantMessage):  # the user's own words, or what stands in their place
        return {"role": "user", "content": message.text}
    rendered: JsonObject = {"role": "assistant", "content": message.text}
    if message.tool_calls:
        rendered["content"] = message.text or no_text
        rendered["tool_calls"] = [_render_call(call) for call in message.tool_calls]
    return {**rendered, **{name: value for name, value in message.provider_fields.items() if name not in rendered}}


def _in_turn(rendered: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the messages with those in the user's place that follow one another, as after a compression, as one."""
    joined: list[JsonObject] = []
    for message in rendered:
        if joined and joined[-1]["role"] == message["role"] == "user":
            message = {**message, "content": f"{joined.pop()['content']}\n\n{message['content']}"}
        joined.append(message)
    return joined


def with_own_fields(messages: Sequence[Message], model_name: str, base_url: str) -> list[Message]:
    """Return the messages without what another server, or a model of another family, had added to them."""
    sent: list[Message] = []
    for message in messages:
        if isinstance(message, AssistantMessage) and not _is_own(message.origin, model_name, base_url):
            calls = tuple(replace(call, provider_fields={}) for call in message.tool_calls)
            message = replace(message, provider_fields={}, tool_calls=calls)
        sent.append(message)
    return sent


def _is_own(origin: tuple[str, str], model_name: str, base_url: str) -> bool:
    model, asked_url = origin
    return not asked_url or (asked_url == base_url and model_family(model) == model_family(model_name))


def model_family(model_name: str) -> str:
    """Return the word that a model's name begins with, behind the maker's: deepseek for deepseek-ai/DeepSeek-R1."""
    name = model_name.strip().lower().rpartition("/")[2]
    return (re.match("[a-z]+", name) or [name])[0]


def _render_call(call: ToolCall) -> JsonObject:
    """Return a call of the model's as it goes back to it.

    Its arguments are valid JSON whatever it wrote, because servers parse them; its name has only the characters that
    OpenAI allows, because a conversation with any other is refused for ever.
    """
    function = {
        "name": re.sub(r"[^a-zA-Z0-9_-]", "_", call.name)[:64] or "unnamed",
        "arguments": json.dumps(call.arguments or {}, ensure_ascii=False),
    }
    fields = dict(call.provider_fields)
    return {"id": call.id, "type": "function", **fields, "function": {**fields.get("function", {}), **function}}


# ------------------------------------------------------------------------------------------------- answer → reply


def read_reply(answer: Any, tool_names: Collection[str], model_name: str, base_url: str) -> ModelReply:
    """Return the reply that an answer holds; raise BadReply where it is no chat completion.

    model_name: as it was asked for, used where the answer names none.
    """
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or not choices:
        raise BadReply("the server's answer is no chat completion: it has no choices")
    choice = choices[0]
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise BadReply("the server's answer is no chat completion: its first choice has no message")
    finish_reason, named = content_text(choice.get("finish_reason")), content_text(answer.get("model"))
    calls = read_tool_calls(message.get("tool_calls"), tool_names, finish_reason)
    text = content_text(message.get("content")) or content_text(message.get("refusal"))
    said = AssistantMessage(text, calls, _provider_fields(message))
    return ModelReply(said, read_usage(answer.get("usage")), named or model_name, base_url, finish_reason)


def _provider_fields(message: JsonObject) -> JsonObject:
    """Return what else the server put on the message, as reasoning: DeepSeek refuses a message that lacks it later.

    Null and empty lists say nothing, and stricter servers refuse them.
    """
    own = ("role", "content", "tool_calls")
    return {name: value for name, value in message.items() if name not in own and value is not None and value != []}


def read_usage(raw: Any) -> Usage | None:
    """Return what the server counted; None where it did not count."""
    if not isinstance(raw, dict):
        return None
    details = raw.get("prompt_tokens_details")
    cached = (
        _count(details.get("cached_tokens") if isinstance(details, dict) else None)
        or _count(raw.get("prompt_cache_hit_tokens"))  # DeepSeek
        or _count(raw.get("cached_tokens"))  # Moonshot
    )
    usage = Usage(_count(raw.get("prompt_tokens")), _count(raw.get("completion_tokens")), cached)
    return usage if usage.total_tokens else None


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**12 else 0


def read_window(answer: Any, model_name: str) -> int | None:
    """Return the window, in tokens, that an answer to GET /models tells of the model, or None.

    A server that serves one model alone (llama.cpp) answers for it under any name.
    """
    entries = _models(answer)
    named = [entry for entry in entries if entry.get("id") == model_name] or (entries if len(entries) == 1 else [])
    for entry in named:
        meta = entry.get("meta")
        for name in _WINDOW_FIELDS:
            window = _count(entry.get(name)) or _count(meta.get(name) if isinstance(meta, dict) else None)
            if window:
                return window
    return None


def _models(answer: Any) -> list[JsonObject]:
    """Return what an answer to GET /models lists."""
    data = answer.get("data") if isinstance(answer, dict) else answer
    return [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []


# --------------------------------------------------------------------------------------------------- the model


class OpenAIChatModel:
    """A chat model behind a server that speaks this format."""

    def __init__(
        self,
        transport: Transport,
        model_name: str,
        base_url: str,
        protocol: ToolProtocol | None = None,
        stream: str = "off",
    ) -> None:
        """Take what carries the requests, the model's name at the server, and the address for the record.

        protocol: how tools are offered and called; None for natively. stream: off, on, or auto for on as long as the
        server can.
        """
        self.name = model_name
        self.base_url = base_url
        self.protocol = protocol or NativeProtocol()  # may be exchanged between two requests
        self._dialect = Dialect(streams=stream != "off")
        self._may_stop_streaming = stream == "auto"
        self._transport = transport

    def reply(
        self, messages: Sequence[Message], tools: Sequence[JsonObject], watch: Watch, may_call_tools: bool = True
    ) -> ModelReply:
        """Ask the server for the next message; see `ChatModel.reply`."""
        while True:
            try:
                return self._ask(messages, tools, watch, may_call_tools)
            except UnknownModel as error:
                raise Refused(f"{error}{self._nearest_models()}") from error
            except (BadRequest, StreamFailed) as error:
                if not self._learns_from(error, watch):
                    raise

    def _learns_from(self, error: ModelError, watch: Watch) -> bool:
        """Return whether the next request avoids what this server refuses; each such thing is learned once."""
        words, dialect = str(error), self._dialect
        cannot_stream = isinstance(error, StreamFailed) or re.search(r"\bstream", words)
        if dialect.streams and dialect.tells_stream_usage and re.search("stream_options|include_usage", words):
            self._dialect = replace(dialect, tells_stream_usage=False)
        elif dialect.streams and self._may_stop_streaming and cannot_stream:
            self._dialect = replace(dialect, streams=False)
            watch.notice(f"{words.rstrip('.')}; from now on answers come whole and not streamed")
        elif dialect.no_text == "" and _EMPTY_CONTENT_WORDS.search(words):
            self._dialect = replace(dialect, no_text=None)
        elif TURN_WORDS.search(words):
            self._dialect = replace(dialect, wants_turns=True)
        return self._dialect != dialect

    def _ask(
        self, messages: Sequence[Message], tools: Sequence[JsonObject], watch: Watch, may_call_tools: bool
    ) -> ModelReply:
        protocol, names = self.protocol, [tool["name"] for tool in tools]
        sent = protocol.outgoing(with_own_fields(messages, self.name, self.base_url))
        body = render_request(self.name, sent, protocol.offered(tools), may_call_tools, self._dialect)
        shown: list[str] = []

        def show(piece: str) -> None:
            shown.append(piece)
            watch.text(piece)

        on_text = show if self._dialect.streams else None
        answer = self._transport.post_json("/chat/completions", body, watch, on_text)
        reply = read_reply(answer, names, self.name, self.base_url)
        if tools:
            reply = replace(reply, message=protocol.incoming(reply.message, names, reply.finish_reason))
        if reply.message.text and not shown:
            watch.text(reply.message.text)
        if reply.finish_reason == "length" and not reply.message.tool_calls:
            watch.notice("the model's reply was cut off at the server's limit of output tokens")
        return reply

    def _nearest_models(self) -> str:
        """Return a sentence with the server's model names that are most like ours, "" where it does not tell any."""
        try:
            answer = self._transport.get_json("/models", MODELS_TIMEOUT_SECONDS)
        except ModelError:
            return ""
        names = [name for name in (str(entry.get("id")) for entry in _models(answer)) if name.isprintable()]
        near = difflib.get_close_matches(self.name, names, 3, cutoff=0.4) or names[:3]
        return f" The server has {', '.join(name[:100] for name in near)}." if near else ""

    def server_window_tokens(self) -> int | None:
        """Ask the server once how large the model's window is, in tokens; None where it does not tell in time."""
        try:
            return read_window(self._transport.get_json("/models", MODELS_TIMEOUT_SECONDS), self.name)
        except ModelError:
            return None
