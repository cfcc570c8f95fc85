"""The command line: flags in, exit code out, and no traceback whatever happens.

Only argparse is imported until it is known that there is work to do, so that `--help` is as quick as Python itself.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap

from mini_agent import ANSWERED, BAD_USAGE, FAILED, INTERRUPTED, __version__
from mini_agent.variables import HONOURED, VARIABLES


def main(arguments: list[str] | None = None) -> int:
    """Run the program with these arguments (default: those of the process); return its exit code.

    0: answered; 1: the turn failed, or its answer could not be written; 2: bad usage or configuration;
    130: interrupted.
    """
    _replace_closed_streams()
    try:
        code = _run(arguments)
    except SystemExit as leaving:  # argparse's way to end after --help, --version and bad usage
        code = int(leaving.code or ANSWERED)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:  # the edge: what nobody foresaw is told in one line, and the log has kept the session
        code = FAILED
        _tell(f"mini-agent had to stop: {type(error).__name__}: {error}")
    return code if _flush() else code or FAILED


def _run(arguments: list[str] | None) -> int:
    parser = build_parser()
    options = parser.parse_args(arguments)
    if options.output != "text" and options.prompt is None:
        parser.error(f"--output {options.output} goes with --prompt")
    if options.demo and vars(options) != {**vars(parser.parse_args([])), "demo": True}:
        parser.error("--demo stands alone: it shows one session that is always the same")
    from mini_agent.prompt_loop import run  # lazy: nothing that the work needs is imported for --help

    return run(options)


# --------------------------------------------------------------------------------------------------------- the flags


class _Parser(argparse.ArgumentParser):
    # `typing.NoReturn` is meant: importing typing would take longer than all that the help needs of ours
    def error(self, message: str) -> None:  # type: ignore[override]
        """Tell bad usage in one line: what is wrong, and not the whole usage again."""
        _tell(f"{message}; --help lists the flags")
        self.exit(BAD_USAGE)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of every flag; `dest` is the name under which `settings.py` knows the value."""
    parser = _Parser(
        prog="mini-agent",
        description="A small coding agent: it lists, reads, searches and edits the files of one folder.",
        epilog=_variables(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("-w", "--workspace", metavar="PATH", help="the folder that file tools may touch (default: the current one)")
    either = parser.add_mutually_exclusive_group().add_argument
    either("-p", "--prompt", metavar="TEXT", help="run one turn, print the answer, exit; - reads the text from stdin")
    add(
        "--output",
        choices=["text", "json", "events"],
        default="text",
        help="with --prompt: the answer as text, one JSON object, or each event as a JSON line as it happens",
    )
    add(
        "--resume",
        metavar="SESSION",
        nargs="?",
        const="",
        help="go on with this workspace's last session, or with the one of this path, stamp or beginning of a stamp",
    )
    either("--list-sessions", action="store_true", help="list this workspace's sessions and exit")
    add("--ask-writes", action="store_true", help="show each patch as a diff and ask before it is written")
    add("--demo", action="store_true", help="no key, no network: a scripted model mends a small sample project")
    add("--model", metavar="NAME", help="override OPENAI_MODEL")
    add("--base-url", metavar="URL", help="override OPENAI_BASE_URL")
    add("--context-window", metavar="N", help="override MINI_AGENT_CONTEXT_WINDOW (tokens)")
    add("--max-rounds", metavar="N", help="override MINI_AGENT_MAX_TOOL_ROUNDS")
    add("--env-file", metavar="PATH", help="read this .env file instead of the usual ones")
    add("--disable-compress-tool", action="store_true", help="do not offer compress_tool to the model")
    add("--no-project-instructions", action="store_true", help="do not read AGENTS.md or CLAUDE.md")
    add("--version", action="version", version=f"mini-agent {__version__}")
    return parser


def _variables() -> str:
    """Return what the help says of variables, from the one table of them."""
    lines = [f"  {variable.name}\n{_indented(f'{variable.why} [{variable.default}]')}" for variable in VARIABLES]
    honoured = _indented("; ".join(f"{name}: {why}" for name, why in HONOURED))
    return "\n".join(
        [
            "variables, from the environment, else from a .env file (that of the checkout, then",
            "~/.config/mini_agent/.env; never the workspace's); in brackets, what holds where they are not set:",
            *lines,
            "  from the environment only",
            honoured,
            "",
            "exit codes: 0 answered, 1 the turn failed, 2 bad usage or configuration, 130 interrupted",
            "To see it work without a key: mini-agent --demo",
        ]
    )


def _indented(text: str) -> str:
    return textwrap.fill(text, 100, initial_indent=" " * 6, subsequent_indent=" " * 6)


# ------------------------------------------------------------------------------------------------------- the streams


def _replace_closed_streams() -> None:
    """Put an empty file where the program was started with a stream closed: Python leaves None there.

    In this order: each takes the lowest number that is free, and no other file comes to be called 0, 1 or 2.
    """
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115 - they stay open to the end
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8", errors="replace")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8", errors="replace")  # noqa: SIM115


def _tell(problem: str) -> None:
    from mini_agent.terminal.console import Console  # lazy: most runs have no problem

    Console(sys.stdout, sys.stderr).trace("error", problem)


def _flush() -> bool:
    """Write out what is still buffered; tell whether it could be. Python itself would complain with a traceback."""
    try:
        sys.stdout.flush()
        return True
    except OSError:  # a full disk, a pipe whose reader has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
