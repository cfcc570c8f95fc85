"""Settings: every value that a person can choose, checked before anything starts.

A flag goes before the environment, the environment before `.env` files, those before the defaults; an empty value is
an unset one. All that is wrong is told at once. `variables.py` holds the table of what can be set.

The workspace's own `.env` is never read: a project that someone else wrote must not be able to send the key elsewhere.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mini_agent.variables import VARIABLES, Variable, shown

_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


@dataclass(frozen=True)
class Settings:
    """All settings of one run, checked."""

    workspace: Path  # resolved
    model: str = ""
    api_key: str = field(default="", repr=False)
    base_url: str = "https://api.openai.com/v1"  # without a slash at its end
    timeout_seconds: float = 90
    request_deadline_seconds: float = 600
    max_tool_rounds: int = 40
    context_window_tokens: int | None = None  # None: known model, else the server's word, else 32768
    compaction_reserve_tokens: int | None = None  # None: 16384, at most a quarter of the window
    compaction_keep_recent_tokens: int | None = None  # None: 20000, at most a third of the window
    system_prompt: str = ""  # "": the built-in one
    terminal_log_level: str = "info"
    trace_log_path: Path = Path(".mini_agent/logs/log.log")  # absolute as `load_settings` gives it
    session_record_path: Path = Path(".mini_agent/sessions/session.md")  # likewise
    stream: str = "auto"  # auto, on or off
    tool_protocol: str = "auto"  # auto, native or text
    compression: bool = True
    shortening: bool = True
    max_turn_tokens: int | None = None
    script: Path | None = None  # a script file: a scripted model answers
    ask_writes: bool = False
    compress_tool: bool = True
    project_instructions: bool = True
    warnings: tuple[str, ...] = ()  # what a person should be told at the start, one line each


class SettingsError(Exception):
    """Settings that cannot be used: one line for each thing that is wrong, then a hint where there is one."""

    def __init__(self, problems: Sequence[str], hint: str = "") -> None:
        """Keep the lines."""
        super().__init__("\n".join([*problems, hint] if hint else problems))
        self.problems, self.hint = tuple(problems), hint


def load_settings(
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    env_files: Sequence[Path] | None = None,
    *,
    model_needed: bool = True,
) -> Settings:
    """Return the settings; raise SettingsError that tells all that is wrong.

    flags: argparse's values by their names (`base_url` for `--base-url`), numbers as text; None is not given.
    env_files: read in this order, the first that sets a variable wins; None: `default_env_files()`. The flag
    `env_file` goes before both. model_needed: False where no server will be asked, as by --demo and --list-sessions.
    """
    problems: list[str] = []
    sources = [("the environment", environment), *_read_env_files(flags.get("env_file"), env_files, problems)]
    files_are_whole = not problems
    workspace = _workspace(flags.get("workspace"), problems)
    values, wrong = _checked_values(flags, sources, problems)
    _check_script(values, problems)
    _check_window(values, problems)
    if workspace is not None:
        _check_written_paths(values, workspace, problems)
    missing = _missing(values, wrong, sources) if model_needed and files_are_whole else []
    if problems or missing or workspace is None:
        raise SettingsError([*problems, *missing], _demo_hint() if missing else "")
    if _host_is(values.get("base_url", ""), "is_loopback"):  # a local model thinks in silence
        values = {"timeout_seconds": 600.0, "request_deadline_seconds": 1800.0, **values}
    return Settings(
        workspace,
        ask_writes=bool(flags.get("ask_writes")),
        compress_tool=not flags.get("disable_compress_tool"),
        project_instructions=not flags.get("no_project_instructions"),
        warnings=(*_unknown_names(sources), *_plain_http(values.get("base_url", ""), environment)),
        **values,
    )


# ------------------------------------------------------------------------------------------------------- the values

_Sources = Sequence[tuple[str, Mapping[str, str]]]  # where from, for people, and the values there; the first wins


def _checked_values(
    flags: Mapping[str, object], sources: _Sources, problems: list[str]
) -> tuple[dict[str, Any], set[str]]:
    """Return the values that are set and right, by field, and the fields of those that are wrong."""
    values: dict[str, Any] = {}
    wrong: set[str] = set()
    for variable in VARIABLES:
        text, label, origin = _find(variable, flags, sources)
        if not text:
            continue
        try:
            values[variable.field] = variable.check(text)
        except ValueError as error:
            wrong.add(variable.field)
            problems.append(f"{label} is {variable.shown(text)}{origin}; it must {error}")
    return values, wrong


def _find(variable: Variable, flags: Mapping[str, object], sources: _Sources) -> tuple[str, str, str]:
    """Return the text that counts ("" where none is set), the name it was set by, and where."""
    flag = flags.get(variable.flag[2:].replace("-", "_")) if variable.flag else None
    if flag is not None and str(flag).strip():
        return str(flag).strip(), variable.flag, ""
    for origin, values in sources:
        text = values.get(variable.name, "")
        if text.strip():
            # A line break at the end of a key is told, not mended: what made it may have mangled more.
            return text if variable.field == "api_key" else text.strip(), variable.name, f" (from {origin})"
    return "", "", ""


def _workspace(asked: object, problems: list[str]) -> Path | None:
    """Return the folder, resolved; None where it cannot be used, which is then told."""
    label = "the current folder" if asked is None else f"--workspace {shown(str(asked))}"
    try:
        if asked == "":  # Path("") would be the current folder: hardly what an unset shell variable was to mean
            raise ValueError("it is empty")
        folder = Path.cwd() if asked is None else Path(str(asked)).expanduser().resolve()
        with os.scandir(folder):  # permission bits alone do not tell
            (folder / ".").stat()
        return folder
    except OSError as error:
        why = error.strerror
    except (ValueError, RuntimeError) as error:  # a NUL in the name, a link to itself, "~someone" who has no home
        why = str(error)
    problems.append(f"{label} cannot be used: {why}; name a folder that exists and can be read")
    return None


def _check_script(values: dict[str, Any], problems: list[str]) -> None:
    """Make the script's path absolute, from the current folder."""
    script = values.get("script")
    if script is None:
        return
    path = Path(script).expanduser()
    if path.is_file():
        values["script"] = Path(os.path.abspath(path))
    else:
        problems.append(f"MINI_AGENT_SCRIPT is {shown(script)}; there is no such file")


def _check_written_paths(values: dict[str, Any], workspace: Path, problems: list[str]) -> None:
    """Make the paths that are written absolute, from the workspace."""
    for path_field in ("trace_log_path", "session_record_path"):
        path = os.path.expanduser(values.get(path_field) or getattr(Settings, path_field))
        values[path_field] = Path(os.path.abspath(workspace / path))
        if values[path_field].is_dir():
            name = f"MINI_AGENT_{path_field.upper()}"
            problems.append(f"{name} is {shown(path)}; it must name a file, and this is a folder")
    if values["trace_log_path"] == values["session_record_path"]:
        names = "MINI_AGENT_TRACE_LOG_PATH and MINI_AGENT_SESSION_RECORD_PATH"
        problems.append(f"{names} must name two different files")


def _check_window(values: Mapping[str, Any], problems: list[str]) -> None:
    """Compare what was set of window, reserve and keep-recent; what is left to its default fits itself in later."""
    left, of = values.get("context_window_tokens"), "the window"
    for field_name in ("compaction_reserve_tokens", "compaction_keep_recent_tokens"):
        tokens = values.get(field_name)
        if left is None or tokens is None:
            continue
        if tokens >= left:
            problems.append(f"MINI_AGENT_{field_name.upper()} is {tokens}; it must be smaller than {of}, {left}")
            return
        left, of = left - tokens, "the window minus reserve"


def _demo_hint() -> str:
    """Return how to see it work without a model, by the name that this program was started with."""
    program = "mini-agent" if Path(sys.argv[0]).stem == "mini-agent" else "python3 -m mini_agent"
    return f"To see it work with no key and no server: {program} --demo"


def _missing(values: Mapping[str, Any], wrong: set[str], sources: _Sources) -> list[str]:
    """Say what is needed to ask a server and is not set; what is set wrongly is told already."""
    if "script" in values.keys() | wrong:
        return []
    place = " or in ".join(["in the environment", *(origin for origin, _ in sources[1:2])])
    lines = []
    needs_key = "base_url" not in wrong and not _host_is(values.get("base_url", ""), "is_loopback")
    if needs_key and "api_key" not in values.keys() | wrong:
        lines.append(
            f"OPENAI_API_KEY is not set; set it {place}, or point OPENAI_BASE_URL to a server on this machine, "
            "which needs none"
        )
    if "model" not in values.keys() | wrong:
        lines.append(f"OPENAI_MODEL is not set; set it {place}, or say --model NAME")
    return lines


def _unknown_names(sources: _Sources) -> list[str]:
    """Warn of names that look like ours and are not: a setting with a slip in its name would silently do nothing."""
    known = {variable.name for variable in VARIABLES}
    return [
        f"{shown(name)} (from {origin}) is no variable of this program and does nothing; --help lists them"
        for origin, values in sources
        for name in values
        if name.startswith("MINI_AGENT_") and name not in known
    ]


# ------------------------------------------------------------------------------------------------------- the server


def _plain_http(base_url: str, environment: Mapping[str, str]) -> list[str]:
    """Warn of a server to which key and code would travel unencrypted through other people's networks or a proxy."""
    if not base_url.startswith("http://") or _host_is(base_url, "is_loopback"):
        return []
    proxy = environment.get("http_proxy") or environment.get("HTTP_PROXY")
    if _host_is(base_url, "is_private") and not proxy:
        return []
    way = "unencrypted, and through the proxy of HTTP_PROXY" if proxy else "unencrypted"
    return [f"OPENAI_BASE_URL is {shown(base_url)}: key and code are sent {way}; use https:// if it can"]


def _host_is(base_url: str, kind: str) -> bool:
    """Tell whether a checked URL's host `is_loopback` or `is_private`, as `ipaddress` calls it, or has such a name."""
    from ipaddress import ip_address  # both lazy: most runs go to a name, and the demo to none
    from urllib.parse import urlsplit

    host = (urlsplit(base_url).hostname or "").rstrip(".")
    try:
        address: Any = ip_address(host)
        address = getattr(address, "ipv4_mapped", None) or address
        return bool(getattr(address, kind))
    except ValueError:
        if host == "localhost" or host.endswith(".localhost"):
            return True
        is_local = "." not in host or host.endswith((".local", ".lan", ".internal", ".home.arpa"))
        return is_local and kind == "is_private"


# ---------------------------------------------------------------------------------------------------- the .env files


def default_env_files() -> tuple[Path, ...]:
    """Return where `.env` is looked for: the checkout that this package runs from, then the user's own folder."""
    checkout = Path(__file__).resolve().parent.parent
    places = [checkout / ".env"] if (checkout / "pyproject.toml").is_file() else []
    user = Path(os.path.expanduser("~/.config/mini_agent/.env"))
    return (*places, user) if user.is_absolute() else tuple(places)


def _read_env_files(
    named: object, env_files: Sequence[Path] | None, problems: list[str]
) -> list[tuple[str, dict[str, str]]]:
    """Return each file's path and values, the one that goes first in front; of a file with a fault nothing is taken."""
    if named is None:
        files, label = default_env_files() if env_files is None else env_files, ""
    else:
        files, label = [Path(os.path.expanduser(str(named)))], "--env-file "
    read = []
    for path in files:
        try:
            text = _read_text(path) if named is not None or os.path.exists(path) else ""
        except (OSError, ValueError) as error:
            problems.append(f"{label}{shown(str(path))} cannot be read: {getattr(error, 'strerror', None) or error}")
            continue
        values, faults = parse_env_text(text)
        problems.extend(f"{shown(str(path))}, line {number}: {fault}" for number, fault in faults)
        read.append((str(path), {} if faults else values))
    return read


def _read_text(path: Path) -> str:
    """Return a file's text; raise OSError or ValueError, with the reason as its text."""
    if path.exists() and not path.is_file():  # reading a pipe could wait forever
        raise ValueError("it is no regular file")
    try:
        return path.read_text(encoding="utf-8-sig", errors="strict")
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8 text") from error


def parse_env_text(text: str) -> tuple[dict[str, str], list[tuple[int, str]]]:
    """Read the text of a `.env` file; return its values, and the faults: 1-based line and what is wrong there.

    A line is empty, a comment (`# …`), `NAME=VALUE` or `export NAME=VALUE`. In single quotes a value stands as it is,
    in double quotes \\n \\t \\" \\\\ are read; without quotes it ends before ` #`. No fault quotes the line: it may
    hold a key.
    """
    values: dict[str, str] = {}
    faults: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()  # takes the \r of a Windows line end along
        if not line or line.startswith("#"):
            continue
        match = re.fullmatch(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)", line, re.DOTALL)
        if not match:
            faults.append((number, "it must be NAME=VALUE, with a name of letters, digits and _; or a comment after #"))
            continue
        try:
            values[match[1]] = _read_value(match[2])
        except ValueError as error:
            faults.append((number, f"the value of {match[1]} {error}"))
    return values, faults


def _read_value(text: str) -> str:
    """Return the value that stands behind the `=`; raise ValueError that completes "the value of NAME …"."""
    stripped = text.lstrip()
    if stripped[:1] not in ("'", '"'):
        return re.split(r"\s#", text, maxsplit=1)[0].strip()
    quote = stripped[0]
    quoted = re.match(r"'([^']*)'" if quote == "'" else r'"((?:[^"\\]|\\.)*)"', stripped)
    if not quoted:
        raise ValueError(f"has no closing {quote} on its line")
    if not re.fullmatch(r"\s*|\s+#.*", stripped[quoted.end() :]):
        raise ValueError(f"goes on after its closing {quote}; only a comment after a blank and # may follow")
    return quoted[1] if quote == "'" else re.sub(r"\\(.)", _unescape, quoted[1])


def _unescape(match: re.Match[str]) -> str:
    if match[1] not in _ESCAPES:
        raise ValueError(f'has \\{match[1]} in double quotes; there are \\n \\t \\" \\\\, or use single quotes')
    return _ESCAPES[match[1]]
