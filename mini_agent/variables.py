"""What can be set: one table of all variables, the only place where they are named.

`settings.py` reads values through it; the help, `.env.example` and the tables of both READMEs are compared with it.
It stands apart from `settings.py` because `--help` prints it and has to be quick: nothing is imported here that a bare
`argparse` does not bring along.
"""

from __future__ import annotations

import re
from collections.abc import Callable

LOG_LEVELS = ("debug", "info", "warn", "error", "none")
MOST = 1_000_000_000  # no count of tokens or rounds that makes sense is larger
MOST_SECONDS = 1_000_000  # eleven days; the system's own timers overflow somewhere above


def shown(text: str) -> str:
    """Return a value for an error line: quoted, control characters escaped, not too long."""
    return repr(text if len(text) <= 80 else text[:77] + "...")


# ------------------------------------------------------------------------------------------------------ the checks
# Each takes the text and returns the value; ValueError completes the sentence "it must …".


def _whole_number(least: int = 1) -> Callable[[str], int]:
    def check(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,10}", text) or not least <= int(text) <= MOST:
            raise ValueError(f"be a whole number from {least} to {MOST}")
        return int(text)

    return check


def _seconds(text: str) -> float:
    # float() alone also takes "inf", "nan", "1_0" and the digits of other scripts
    is_number = re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", text, re.IGNORECASE)
    if not is_number or not 0 < float(text) <= MOST_SECONDS:
        raise ValueError(f"be a number of seconds above 0 and at most {MOST_SECONDS}, such as 90 or 2.5")
    return float(text)


def _one_of(*words: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(f"be one of {', '.join(words)}")
        return text.lower()

    return check


def _on_off(text: str) -> bool:
    return _one_of("on", "off")(text) == "on"


def _api_key(text: str) -> str:
    if not re.fullmatch("[!-~]+", text):
        found = "a line break" if re.search(r"[\r\n]", text) else "a blank, a control character or one outside ASCII"
        raise ValueError(f"be visible ASCII characters only, and holds {found}: copy it again")
    return text


def _model_name(text: str) -> str:
    if re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", text):
        raise ValueError("hold no control characters and be valid UTF-8")
    return text


def _prompt(text: str) -> str:
    if re.search(r"[\ud800-\udfff\x00]", text):
        raise ValueError("be valid UTF-8 text")
    return text


def _file_path(text: str) -> str:
    if text.endswith(("/", "\\")) or text in (".", "..", "~") or "\0" in text:
        raise ValueError("name a file, not a folder")
    return text


def _record_path(text: str) -> str:
    if text.lower().endswith(".jsonl"):
        raise ValueError("not end in .jsonl: the event log lies beside the record under that name")
    return _file_path(text)


_NAME = r"[a-z0-9_-]{1,63}"  # one part of a host's name
_URL = rf"https?://(\[.*\]|{_NAME}(\.{_NAME})*\.?)(:[0-9]+)?(/[\w.~%!$&'()*+,;=:@/-]*)?"


def _base_url(text: str) -> str:
    from ipaddress import IPv6Address  # both lazy: the help prints this table and checks nothing
    from urllib.parse import urlsplit

    if not re.match("https?://", text, re.IGNORECASE):
        raise ValueError("begin with http:// or https://, as in http://localhost:11434/v1")
    if re.search("[?#]|//[^/]*@", text):
        raise ValueError("have no query, no fragment and no user name: the key belongs into OPENAI_API_KEY")
    try:
        is_url = re.fullmatch(_URL, text, re.ASCII | re.IGNORECASE) and urlsplit(text).port != 0
        if is_url and "[" in text:
            IPv6Address(urlsplit(text).hostname or "")
    except ValueError:  # a port that is too high, brackets without an IPv6 address in them
        is_url = False
    if not is_url:
        raise ValueError(
            "name a host, in ASCII, with at most a port and a path after it, as in http://localhost:11434/v1"
        )
    scheme, rest = text.rstrip("/").split("://")
    too_many = re.search("/(chat/completions|completions|responses|models|embeddings)$", rest)
    if too_many:
        raise ValueError(f"end before {too_many[0]}, which is added to it")
    return f"{scheme.lower()}://{rest}"


# ------------------------------------------------------------------------------------------------------- the table


class Variable:
    """One thing that can be set: in the environment or a `.env` file by its name, some by a flag as well."""

    def __init__(
        self, name: str, field: str, check: Callable[[str], object], default: str, why: str, flag: str = ""
    ) -> None:
        """Describe it.

        field: of `Settings`. check: text → value, or ValueError that completes "it must …". default: for people.
        why: one line. flag: with its dashes; "" where there is none.
        """
        self.name, self.field, self.flag = name, field, flag
        self.check = check
        self.default, self.why = default, why

    def shown(self, text: str) -> str:
        """Return a wrong value for an error line; hide a key, and a URL with a part that people put keys into."""
        is_secret = self.field == "api_key" or (self.field == "base_url" and re.search(r"[@?#]", text))
        return "not shown here" if is_secret else shown(text)


# fmt: off
VARIABLES = (
    Variable("OPENAI_API_KEY", "api_key", _api_key, "none",
        "the server's key; needed unless the server runs on this machine; never printed, logged or sent elsewhere"),
    Variable("OPENAI_MODEL", "model", _model_name, "none",
        "the model to ask, by the server's name for it; needed", "--model"),
    Variable("OPENAI_BASE_URL", "base_url", _base_url, "https://api.openai.com/v1",
        "the server, up to the part that /chat/completions is added to", "--base-url"),
    Variable("MINI_AGENT_TIMEOUT_SECONDS", "timeout_seconds", _seconds, "90; 600 for a server on this machine",
        "the longest silence of the server; a local model thinks in silence, so it gets more"),
    Variable("MINI_AGENT_REQUEST_DEADLINE_SECONDS", "request_deadline_seconds", _seconds,
        "600; 1800 for a server on this machine",
        "the longest that one request may take with all its retries, whatever trickles in meanwhile"),
    Variable("MINI_AGENT_MAX_TOOL_ROUNDS", "max_tool_rounds", _whole_number(), "40",
        "rounds of tool calls in one turn; real repairs take 10 to 30", "--max-rounds"),
    Variable("MINI_AGENT_CONTEXT_WINDOW", "context_window_tokens", _whole_number(2048),
        "known for well-known models, else asked of the server, else 32768",
        "the model's window in tokens; set it where the server does not tell", "--context-window"),
    Variable("MINI_AGENT_COMPACTION_RESERVE_TOKENS", "compaction_reserve_tokens", _whole_number(),
        "16384, at most a quarter of the window",
        "kept free for the answer: above window minus reserve the conversation is compressed"),
    Variable("MINI_AGENT_COMPACTION_KEEP_RECENT_TOKENS", "compaction_keep_recent_tokens", _whole_number(),
        "20000, at most a third of the window",
        "how much of the latest conversation a compression leaves as it is"),
    Variable("MINI_AGENT_SYSTEM_PROMPT", "system_prompt", _prompt, "built in",
        "replaces the first part of the instructions; workspace and project notes still follow it"),
    Variable("MINI_AGENT_TERMINAL_LOG_LEVEL", "terminal_log_level", _one_of(*LOG_LEVELS), "info",
        f"the least level that the terminal shows: {', '.join(LOG_LEVELS)}"),
    Variable("MINI_AGENT_TRACE_LOG_PATH", "trace_log_path", _file_path, ".mini_agent/logs/log.log",
        "the trace log, from the workspace; each session's time goes before the suffix"),
    Variable("MINI_AGENT_SESSION_RECORD_PATH", "session_record_path", _record_path, ".mini_agent/sessions/session.md",
        "the session record, likewise; the event log lies beside it as .jsonl"),
    Variable("MINI_AGENT_STREAM", "stream", _one_of("auto", "on", "off"), "auto",
        "on: answers are streamed; off: they come whole; auto: streamed on a terminal, as long as the server can"),
    Variable("MINI_AGENT_TOOL_PROTOCOL", "tool_protocol", _one_of("auto", "native", "text"), "auto",
        "native: tools by the server's own fields; text: in the text, for a model or server without tool calls; "
        "auto: native first, text where that does not work"),
    Variable("MINI_AGENT_COMPRESSION", "compression", _on_off, "on",
        "off: a conversation that grows too long is never compressed (for comparing both)"),
    Variable("MINI_AGENT_SHORTENING", "shortening", _on_off, "on",
        "off: it is summarized at once, without first cutting old tool results to head and tail (for comparing both)"),
    Variable("MINI_AGENT_MAX_TURN_TOKENS", "max_turn_tokens", _whole_number(), "none",
        "ends a turn that has cost more tokens than this, read and written together"),
    Variable("MINI_AGENT_SCRIPT", "script", _file_path, "none",
        "a script file: a scripted model answers from it, and no server is asked (for tests and evals)"),
)
# fmt: on

# Not ours, honoured as everywhere, and read from the environment only: no .env file sets them.
HONOURED = (
    ("NO_COLOR", "no colours in the terminal"),
    ("COLUMNS", "the terminal's width in columns"),
    ("HTTPS_PROXY", "the proxy for https:// servers"),
    ("NO_PROXY", "hosts that are reached without the proxy"),
    ("SSL_CERT_FILE", "the certificates to trust instead of the system's"),
)
