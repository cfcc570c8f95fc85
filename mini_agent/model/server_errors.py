"""What a failing server said, reduced to one `ModelError` with one clear line and, where one is known, a hint.

Servers agree on the status codes at best. The kind is therefore told from the status and the error's code, and from
words only where nothing else tells: no server but OpenAI has a common code for a conversation that is too long.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from http.client import responses
from typing import Any
from urllib.parse import urlsplit

from mini_agent.conversation.messages import JsonObject
from mini_agent.model.chat_model import (
    BadRequest,
    ContextOverflow,
    ModelError,
    RateLimited,
    Refused,
    ServerFailed,
    ToolsRefused,
    UnknownModel,
)
from mini_agent.model.untrusted_json import parse_json

LONGEST_WORDS = 300  # characters of the server's own text that go into an error
_READ_CHARACTERS = 20_000  # of an error page; what matters stands at its beginning
_OLLAMA_PORT = ":11434"
_SHORTEST_SECRET = 8  # a local server's "none" or "ollama" is a word and no secret

_OVERFLOW_CODES = {"context_length_exceeded", "exceed_context_size_error", "model_max_prompt_tokens_exceeded"}
_NO_CREDIT_CODES = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_RATE_WORDS = re.compile(r"rate.?limit|per (?:second|minute|hour|day)\b|\b[TR]P[MD]\b|quota|billing|credit", re.I)
_OVERFLOW_WORDS = re.compile(
    r"context (?:length|window|size)"  # OpenAI, vLLM, llama.cpp, LM Studio, Mistral, Together
    r"|max(?:imum)? (?:model|prompt|input|sequence) (?:length|tokens)"  # vLLM, xAI
    r"|maximum number of tokens"  # Gemini
    r"|(?:prompt|input|request|conversation) (?:is |was )?too (?:long|large)"  # Anthropic, Bedrock
    r"|(?:entity|payload) too large"  # proxies, with status 413
    r"|(?:model|context|prompt) token limit"  # Moonshot
    r"|range of input length"  # DashScope
    r"|inputs?`? tokens \+ `?max_new_tokens",  # Hugging Face
    re.I,
)
TURN_WORDS = re.compile(r"roles? (?:must )?alternat|alternat\w+ [^.]{0,40}\broles?\b", re.I)  # of chat templates
_NO_TOOLS_WORDS = re.compile(
    r"--tool-call-parser|--jinja"  # vLLM, llama.cpp: how it has to be started
    r"|(?:support|allow|accept|permit)\w*\b[^.]{0,40}\b(?:tools?|functions?)\b(?! (?:message|role))"  # Ollama
    r"|\b(?:tools?|tool_choice|functions?|function calling)\W[^.]{0,40}"
    r"(?:not (?:\w+ )?(?:support|allow|permit)|unsupported)"
    r"|(?:unknown|unrecognized|unexpected|extra|unsupported)\b[^.]{0,60}\btool(?:s|_choice)\b",
    re.I,
)
_WINDOW_WORDS = (  # the first that is found counts
    re.compile(r"\d(?: tokens?)? ?> ?(\d[\d,]*)"),
    re.compile(r"(?:must be <=|range of input length should be \[\d+,) ?(\d[\d,]*)", re.I),
    re.compile(
        r"(?:context (?:length|window|size)|maximum (?:\w+ )?(?:length|tokens|number of tokens)|token limit)"
        r"\D{0,30}(\d[\d,]*)",
        re.I,
    ),
    re.compile(r"(\d[\d,]*) (?:tokens? )?(?:maximum|context)", re.I),
)


@dataclass(frozen=True)
class Server:
    """Who was asked: for telling it in errors, and for keeping its key out of them."""

    base_url: str
    api_key: str = field(default="", repr=False)

    @property
    def address(self) -> str:
        """Return scheme, host and port, without a user and password that someone may have put into the URL."""
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    @property
    def is_loopback(self) -> bool:
        """Tell whether it runs on this very machine."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")

    def without_key(self, text: str) -> str:
        """Return the text with the key masked: a server may send it back, in an error or on purpose."""
        return text.replace(self.api_key, "[the key]") if len(self.api_key) >= _SHORTEST_SECRET else text

    def harmless(self, text: str) -> str:
        """Return the text on one line of at most 300 characters, without the key, control characters made visible."""
        line = " ".join(self.without_key(text)[:_READ_CHARACTERS].split())
        visible = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line)
        return visible if len(visible) <= LONGEST_WORDS else visible[: LONGEST_WORDS - 1] + "…"

    def silence_hint(self) -> str:
        """Return what to do where nothing listens at the address."""
        if self.address.endswith(_OLLAMA_PORT):
            return "is Ollama running? `ollama serve` starts it"
        return "is the server running?" if self.is_loopback else "check OPENAI_BASE_URL"

    def path_hint(self) -> str:
        """Return what is likely wrong with the base URL where its path leads nowhere, "" for nothing known."""
        path = urlsplit(self.base_url).path
        if path.endswith("/chat/completions"):
            return "OPENAI_BASE_URL is to end before /chat/completions."
        if not re.search(r"/v\d", path):
            return f"Most servers answer below /v1: try OPENAI_BASE_URL={self.address}{path}/v1."
        return ""


def error_from_answer(status: int, text: str, server: Server) -> ModelError:
    """Return the error that an answer with this status (300 or more) and body stands for."""
    data = _parsed(text)
    return _error(status, f"answered {status}", data, text, server)


def error_inside(data: Any, server: Server) -> ModelError | None:
    """Return the error that a router wrapped into an answer with status 200, or None where there is none."""
    if isinstance(data, list) and len(data) == 1:  # as Gemini wraps its errors
        data = data[0]
    choices = data.get("choices") if isinstance(data, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    for holder in (data, choice):
        if isinstance(holder, dict) and holder.get("error"):
            code = str(holder["error"].get("code") if isinstance(holder["error"], dict) else "")
            status = int(code) if re.fullmatch(r"[45]\d\d", code) else 400
            return _error(status, "answered with an error inside", holder, "", server)
    return None


def _error(status: int, what: str, data: Any, text: str, server: Server) -> ModelError:
    said = _said(data) or page_text(text[:_READ_CHARACTERS])
    words = server.harmless(said) or responses.get(status, "no word of explanation")
    line = f"{server.address} {what}: {words}"
    codes = _codes(data)
    if _is_overflow(status, codes, data, said):
        line = _with_hint(line, "The conversation does not fit the model's window.")
        return ContextOverflow(line, _window(data, said))
    if _refuses_tools(status, data, said):
        return ToolsRefused(_with_hint(line, _tools_hint(said)))
    if _is_unknown_model(status, codes, said):
        return UnknownModel(_with_hint(line, "Check OPENAI_MODEL."))
    if TURN_WORDS.search(said[:_READ_CHARACTERS]):
        return BadRequest(_with_hint(line, "The model's template wants that roles alternate."))  # also with status 500
    return _kind(status, codes)(_with_hint(line, _hint(status, codes, said, server)))


def _kind(status: int, codes: set[str]) -> type[ModelError]:
    if status in (300, 301, 302, 303, 307, 308, 401, 402, 403, 404, 405, 410) or codes & _NO_CREDIT_CODES:
        return Refused
    if status == 429:
        return RateLimited
    return ServerFailed if status >= 500 or status in (408, 409, 425) else BadRequest


def _hint(status: int, codes: set[str], said: str, server: Server) -> str:
    if status == 401:
        return "Check OPENAI_API_KEY." if server.api_key else "It wants a key: set OPENAI_API_KEY."
    if status == 403:
        return "Check what OPENAI_API_KEY may be used for."
    return (server.path_hint() or "Check OPENAI_BASE_URL.") if status in (404, 405) else ""


def _is_unknown_model(status: int, codes: set[str], said: str) -> bool:
    if "model_not_found" in codes or (status == 404 and "model" in said.lower()):
        return True
    words = r"not a valid model|invalid model|unknown model|model\b.{0,100}(?:does not exist|not found|not exist)"
    return status in (400, 422) and bool(re.search(words, said[:_READ_CHARACTERS], re.I))


def _refuses_tools(status: int, data: Any, said: str) -> bool:
    """Tell whether it is the tools in the request that are refused; 404: OpenRouter, 500: llama.cpp."""
    if status not in (400, 404, 422, 500, 501):
        return False
    named = any(holder.get("param") in ("tools", "tool_choice") for holder in _fields(data))
    places = [item.get("loc") for holder in _fields(data) for item in _list(holder.get("detail"))]  # FastAPI
    named = named or any(isinstance(place, list) and "tools" in place[:2] for place in places)
    return named or bool(_NO_TOOLS_WORDS.search(said[:_READ_CHARACTERS]))


def _list(value: Any) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _tools_hint(said: str) -> str:
    if "--tool-call-parser" in said:
        start = "Start vLLM with --enable-auto-tool-choice and --tool-call-parser"
    elif "--jinja" in said:
        start = "Start llama-server with --jinja"
    else:
        start = "Take a model that knows tools"
    return f"{start}, or set MINI_AGENT_TOOL_PROTOCOL=text."


def _with_hint(line: str, hint: str) -> str:
    return f"{line.rstrip('. ')}. {hint}" if hint else line


# ------------------------------------------------------------------------------------------------ what the body says


def _parsed(text: str) -> Any:
    try:
        data = parse_json(text)
    except ValueError:
        return None
    return data[0] if isinstance(data, list) and data else data


def _fields(data: Any) -> list[JsonObject]:
    """Return the objects in which a server may have put the facts of an error, the inner one first."""
    error = data.get("error") if isinstance(data, dict) else None
    return [holder for holder in (error, data) if isinstance(holder, dict)]


def _codes(data: Any) -> set[str]:
    return {str(holder.get(name)) for holder in _fields(data) for name in ("code", "type")}


def _said(data: Any, depth: int = 2) -> str:
    """Return the server's own words from its error object, also where they are JSON in a string once more."""
    if isinstance(data, str) and data.lstrip().startswith("{") and depth:
        return _said(_parsed(data), depth - 1) or data
    if isinstance(data, str):
        return page_text(data[:_READ_CHARACTERS])
    if isinstance(data, list):
        return "; ".join(filter(None, (_said(item, depth) for item in data[:5])))
    if not isinstance(data, dict):
        return ""
    said = next(filter(None, (_said(data.get(n), depth) for n in ("error", "message", "msg", "detail"))), "")
    metadata = data.get("metadata")
    raw = _said(metadata.get("raw"), depth) if isinstance(metadata, dict) else ""  # the maker's words, from a router
    return f"{said} ({raw})" if said and raw else said or raw


def page_text(text: str) -> str:
    """Return a page of HTML as its title, or as its text where it has none; other text as it is."""
    if not re.search(r"<(?:!doctype|html|head|title|body)\b", text, re.I):
        return text
    title = re.search(r"<title[^<>]*>([^<]*)", text, re.I)
    return (title[1] if title else re.sub(r"<[^<>]*>", " ", text)).strip()


def _is_overflow(status: int, codes: set[str], data: Any, said: str) -> bool:
    if codes & _OVERFLOW_CODES or any("n_ctx" in holder for holder in _fields(data)):
        return True
    if status not in (400, 413, 422) or _RATE_WORDS.search(said):
        return False
    return bool(_OVERFLOW_WORDS.search(said[:_READ_CHARACTERS]))


def _window(data: Any, said: str) -> int | None:
    """Return the window that the server named, in tokens."""
    for holder in _fields(data):
        named = holder.get("n_ctx")
        if isinstance(named, int) and named > 0:
            return named
    for pattern in _WINDOW_WORDS:
        found = pattern.search(said[:_READ_CHARACTERS])
        if found and len(found[1]) < 12:
            return int(found[1].replace(",", "")) or None
    return None
