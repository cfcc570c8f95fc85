"""One cell: a case, run once with one arm, in a folder of its own, measured and graded. It always comes to a record.

Our agent gets its turns on standard input and leaves its session in the output folder, outside the workspace. Of
another agent all that is known is what it printed, what it changed, how long it took and how it ended.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import mini_agent
from evals.harness import measures
from evals.harness.grading import GraderFailed, Task, grade_all, graded_copy
from evals.harness.processes import REPOSITORY, Ended, Stopped, run_limited
from evals.harness.scripts import script_for
from evals.harness.suite import (
    BACKSLASH,
    PROCESS,
    Arm,
    Case,
    Grade,
    Inspection,
    Options,
    Suite,
    lay_out,
    workspace_of,
)
from mini_agent import BAD_USAGE
from mini_agent.session.event_log import LogEntry, format_time, now

RECORD_VERSION = 1
NO_PROGRAM = 127  # as a shell has it
_SECRET = re.compile("(KEY|TOKEN|SECRET|PASSWORD)$")
# Why a cell failed that says nothing about an arm: such a cell is in no pair, and --continue runs it again.
NO_FAULT_OF_THE_ARM = ("refused", "server", "not started", "grader", "harness")
_KINDS = {  # of an ended turn → why the cell failed
    "context_overflow": "overflow",
    "refused": "refused",
    "rate_limited": "server",
    "server_failed": "server",
    "connection_failed": "server",
    "bad_request": "bad request",
    "bad_reply": "no answer",
    "empty_reply": "no answer",
    "repeated_call": "repeated call",
    "token_limit": "token limit",
}


@dataclass(frozen=True)
class Cell:
    """What is to be run."""

    suite: Suite
    options: Options
    case: Case
    arm: Arm
    arm_number: int  # 0: the arm that is compared with each of the others
    repeat: int  # 1, 2, 3 …
    timeout_seconds: float
    scripted: str = ""  # good, bad or careless; "": a real model

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Return what no other cell has."""
        return self.suite.name, self.case.id, self.arm.name, self.repeat

    @property
    def setting(self) -> dict[str, Any]:
        """Return all that the cell depends on, for a later run to compare; values that may be secrets are masked."""
        shown = {name: "***" if _SECRET.search(name) else value for name, value in self._set.items()}
        command = [*self.arm.command] or [*self.case.flags, *self.arm.flags]
        return {"options": dict(self.options), "command": command, "environment": shown, "scripted": self.scripted}

    @property
    def case_as_run(self) -> Case:
        """Return the case with the arm's flags and environment laid over its own."""
        return replace(self.case, flags=(*self.case.flags, *self.arm.flags), environment=self._set)

    @property
    def _set(self) -> dict[str, str]:
        return {**self.case.environment, **self.arm.environment}

    def environment(self, kept: Path, script: Path | None) -> dict[str, str]:
        """Return the environment of the agent's process, whose session goes into the folder `kept`."""
        own = {
            "MINI_AGENT_SESSION_RECORD_PATH": str(kept / "session.md"),
            "MINI_AGENT_TRACE_LOG_PATH": str(kept / "log.log"),
            **({"MINI_AGENT_SCRIPT": str(script)} if script else {}),
        }
        return {**os.environ, **own, **self._set}


def run_cell(cell: Cell, output: Path, scratch: Path) -> dict[str, Any]:
    """Run a cell and return its line of results.jsonl; its session stays in the folder `output`.

    scratch: the folder to run it in, made for it and removed. It should be the same from one cell to the next: the
    workspace's path stands in the instructions, and a server's prompt cache reaches as far as they are the same.
    Whatever breaks becomes a record, too. Raises processes.Stopped where the whole run is being stopped.
    """
    try:
        return _run(cell, output, scratch)
    except Stopped:
        raise
    except Exception as error:  # a suite, or what an agent left behind that cannot be copied: the other cells go on
        return _record(cell, Grade(False, 0.0), why="harness", problem=f"{type(error).__name__}: {error}")


def _record(
    cell: Cell,
    grade: Grade,
    why: str,
    problem: str,
    entries: Sequence[LogEntry] = (),
    ended: Ended | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return the line of results.jsonl. A cell has passed where nothing tells why not."""
    return {
        "v": RECORD_VERSION,
        **dict(zip(("suite", "case", "arm", "repeat"), cell.key)),
        "arm_number": cell.arm_number,
        **asdict(grade),
        "passed": not why,
        "why": why,
        "problem": problem,
        **measures.measure(entries),
        "seconds": round(ended.seconds, 3) if ended else 0.0,
        "exit_code": ended.exit_code if ended else None,
        **{"used": None, "facts": {}, "answer": "", "sessions": [], "started": format_time(now()), **more},
        "seed": cell.options["seed"],
        "versions": {"mini_agent": mini_agent.__version__, "python": platform.python_version()},
        "setting": cell.setting,
    }


def _run(cell: Cell, output: Path, scratch: Path) -> dict[str, Any]:
    started = format_time(now())
    kept = _new_folder(output / "sessions", "-".join([cell.case.id, cell.arm.name, str(cell.repeat)]))
    scratch.mkdir()
    try:
        lay_out(cell.case, scratch / "cell")
        ended, printed, problem = _run_agent(cell, scratch / "cell", kept)
        entries = measures.read_session(kept) if cell.arm.is_ours else []
        answers = measures.answers(entries) if cell.arm.is_ours else printed
        is_started = bool(entries) or ended.exit_code != (BAD_USAGE if cell.arm.is_ours else NO_PROGRAM)
        grade = _grade(cell, scratch, answers) if is_started else Grade(False, 0.0)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    inspection = cell.suite.inspect(cell.case_as_run, entries) if entries else Inspection()
    if isinstance(grade, GraderFailed):
        why, problem, grade = "grader", str(grade), Grade(False, 0.0)
    else:
        why = _why(ended, entries, grade, inspection) if is_started else "not started"
    used = cell.suite.treatment(entries) if entries else None
    return _record(
        cell,
        grade,
        why,
        problem,
        entries,
        ended,
        used=asdict(used) if used else None,
        facts=dict(inspection.facts),
        answer=answers[-1][:2000] if answers else "",
        sessions=[path.relative_to(output).as_posix() for path in sorted(kept.glob("*.jsonl"))],
        started=started,
    )


def _grade(cell: Cell, scratch: Path, answers: tuple[str, ...]) -> Grade | GraderFailed:
    graded_copy(cell.case, scratch / "cell", scratch / "copy", cell.arm.is_ours)
    return grade_all(cell.suite, cell.options, [Task(cell.case.id, scratch / "copy", answers)], scratch)[0]


def _new_folder(parent: Path, name: str) -> Path:
    """Make a folder of this name; where an earlier try has left one, of this name and a number."""
    for number in itertools.count(1):
        path = parent / (name if number == 1 else f"{name}-again{number}")
        try:
            path.mkdir(parents=True)
            break
        except FileExistsError:
            continue
    return path.resolve()


def _run_agent(cell: Cell, folder: Path, kept: Path) -> tuple[Ended, tuple[str, ...], str]:
    """Run the agent over all turns: return how it ended, what it printed, and, where it did not start, why."""
    arm, turns = cell.arm, cell.suite.turns(cell.case, cell.arm)
    script = kept / "script.json" if cell.scripted else None
    if script:
        script.write_text(json.dumps(script_for(cell.suite, cell.case, arm, cell.scripted)), encoding="utf-8")
    printed: list[str] = []
    ended = Ended(0, False, 0.0)
    for given in turns if arm.line_breaks == PROCESS else [as_lines(turns, arm.line_breaks)]:
        already = (kept / "stdout.txt").stat().st_size if printed else 0
        command, cwd = _command(cell, workspace_of(folder), given)
        has_turn = any("{turn}" in word for word in arm.command)
        try:
            once = run_limited(
                command,
                cwd=cwd,
                environment=cell.environment(kept, script),
                folder=kept,
                timeout_seconds=max(cell.timeout_seconds - ended.seconds, 0.01),
                stdin=b"" if has_turn else given.encode("utf-8"),
            )
        except OSError as error:
            return Ended(NO_PROGRAM, False, ended.seconds), tuple(printed), f"it could not be started: {error}"
        ended = Ended(once.exit_code, once.timed_out, ended.seconds + once.seconds)
        printed.append((kept / "stdout.txt").read_bytes()[already:].decode("utf-8", errors="replace").strip())
        if ended.timed_out:
            break
    problem = "" if ended.exit_code == 0 else _last_words(kept / "stderr.txt")
    return ended, tuple(printed), problem


def as_lines(turns: Sequence[str], line_breaks: str) -> str:
    """Return turns as standard input has them: each on a line, its own line breaks told as the agent knows them."""
    within = "\\\n" if line_breaks == BACKSLASH else "\\n"
    return "".join(turn.replace("\n", within) + "\n" for turn in turns)


def _command(cell: Cell, workspace: Path, turn: str) -> tuple[list[str], Path]:
    """Return the command line, and the folder it starts in."""
    if cell.arm.is_ours:
        flags = [*cell.case.flags, *cell.arm.flags]
        return [sys.executable, "-m", "mini_agent", "--workspace", str(workspace), *flags], REPOSITORY
    names_workspace = any("{workspace}" in word for word in cell.arm.command)
    filled = [word.replace("{workspace}", str(workspace)).replace("{turn}", turn) for word in cell.arm.command]
    return filled, Path.cwd() if names_workspace else workspace


def _last_words(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines() if path.exists() else []
    return " | ".join(lines[-3:])[:600]  # of a traceback the last line tells it, of wrong settings the first


def _why(ended: Ended, entries: Sequence[LogEntry], grade: Grade, inspection: Inspection) -> str:
    """Return why a cell that was started failed, in one or two words; "" where it passed."""
    if ended.timed_out:
        return "time"
    if grade.passed:
        return inspection.failure
    ends = measures.turn_ends(entries)
    kinds = [_KINDS[end.kind] for end in ends if end.kind in _KINDS]
    if kinds:  # of whichever turn: those after it lack what it was to do
        return kinds[0]
    if grade.forbidden:
        return "forbidden"
    if measures.last_patch_was_refused(entries):
        return "patch form"
    if any(end.status == "round_limit" for end in ends):
        return "rounds"
    return "crashed" if ended.exit_code < 0 or ended.exit_code > 1 else "wrong"
