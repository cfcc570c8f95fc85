"""Arms as the command line has them: ours by flags and variables, another agent by its command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from evals.harness.catalog import UsageError
from evals.harness.scripts import KINDS
from evals.harness.suite import BACKSLASH, ESCAPED, PROCESS, Arm, Suite
from mini_agent.cli import build_parser

_OURS = ("workspace", "prompt", "output", "resume", "list_sessions", "demo")  # flags that the harness itself sets
_VARIABLE = r"[A-Z_][A-Z0-9_]*=.*"


def told(arm: Arm) -> str:
    """Return an arm in one line, for people."""
    words = [*arm.command, *arm.flags, *(f"{name}={value}" for name, value in arm.environment.items())]
    return " ".join(words) or "as it is"


def read_arm(text: str) -> Arm:
    """Return the arm that `--arm` describes; raise UsageError for flags that our agent does not have."""
    name, is_there, rest = text.partition("=")
    if not is_there or not re.fullmatch(r"[\w.-]+", name):
        raise UsageError(f"--arm {text!r} is not of the form NAME='--flag …; VAR=value'")
    flags: list[str] = []
    environment: dict[str, str] = {}
    for part in rest.split(";"):
        words = _words(part)
        while words and re.fullmatch(_VARIABLE, words[0], re.DOTALL):
            variable, _, value = words.pop(0).partition("=")
            environment[variable] = value
        flags += words
    try:
        given = vars(build_parser().parse_args(flags))
    except SystemExit as error:
        raise UsageError(f"--arm {name}: these are no flags of our agent: {shlex.join(flags)}") from error
    taken = [flag for flag in _OURS if given[flag] != build_parser().get_default(flag)]
    if taken:
        raise UsageError(f"--arm {name}: --{taken[0].replace('_', '-')} is set by the harness")
    return Arm(name, tuple(flags), environment)


def read_agent(text: str) -> Arm:
    """Return the arm that `--agent` describes."""
    match = re.fullmatch(rf"([\w.-]+)(?::({BACKSLASH}|{ESCAPED}|{PROCESS}))?=(.*)", text, re.DOTALL)
    command = tuple(_words(match[3])) if match else ()
    if not match or not command:
        raise UsageError(f"--agent {text!r} is not of the form NAME[:STYLE]='COMMAND {{workspace}}'")
    if any("{turn}" in word for word in command) and match[2] != PROCESS:
        raise UsageError(f"--agent {match[1]}: {{turn}} goes with {match[1]}:{PROCESS}=…")
    return Arm(match[1], command=command, line_breaks=match[2] or BACKSLASH)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}") from error


def choose_arms(suite: Suite, own: Sequence[str], others: Sequence[str]) -> list[Arm]:
    """Return the arms of a run: those of `--arm`, or else the suite's own; besides, those of `--agent`."""
    arms = [read_arm(text) for text in own] or list(suite.arms)
    arms += [read_agent(text) for text in others]
    names = [arm.name for arm in arms]
    if len(set(names)) < len(names):
        raise UsageError(f"two arms have the same name: {', '.join(names)}")
    return arms


def read_scripted(texts: Sequence[str], arms: Sequence[Arm]) -> dict[str, str]:
    """Return the kind of script of each arm that has one."""
    kinds: dict[str, str] = {}
    for text in texts:
        name, _, kind = text.rpartition("=")
        if kind not in KINDS or name not in ("", *(arm.name for arm in arms)):
            raise UsageError(f"--scripted {text}: it is KIND or ARM=KIND, with KIND one of {', '.join(KINDS)}")
        kinds.update({arm.name: kind for arm in arms if arm.is_ours and name in ("", arm.name)})
    return kinds
