"""Asking a suite's grader: in a child process, with a time limit, and never so that it ends more than itself.

The child gets the names of suite and case, and the folders to be graded; it makes the case again from them. Nothing of
the run reaches it: no log, no flag of an arm, no setting.
"""

from __future__ import annotations

import faulthandler
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from evals.harness.catalog import find_case, find_suite
from evals.harness.processes import REPOSITORY, run_limited
from evals.harness.suite import STATE_FOLDER, Case, Grade, Options, Outcome, Suite, outside_changes, workspace_of

_KEPT_BACK = ("OPENAI_", "MINI_AGENT_")  # a grader runs code that a model wrote: it gets no key
_START_SECONDS = 60  # for Python to start and the suite to make its cases


@dataclass(frozen=True)
class Task:
    """One outcome to be graded."""

    case_id: str
    folder: Path  # a cell's: the workspace in it, what is around it beside it
    answers: tuple[str, ...]


class GraderFailed(Exception):
    """The grader itself broke or took too long; the text says how."""


def grade_all(suite: Suite, options: Options, tasks: Sequence[Task], scratch: Path) -> list[Grade | GraderFailed]:
    """Grade outcomes, in one child process as long as that lives; where an outcome ends it, the rest goes on.

    scratch: an empty folder for what the child reads and prints.
    """
    grades: list[Grade | GraderFailed] = []
    while len(grades) < len(tasks):
        folder = scratch / f"from-{len(grades)}"
        folder.mkdir()
        grades += _grade_in_child(suite, options, tasks[len(grades) :], folder)
    return grades


def _grade_in_child(suite: Suite, options: Options, tasks: Sequence[Task], folder: Path) -> list[Grade | GraderFailed]:
    """Grade from the first outcome on, as far as one child comes: at least to the end of the first."""
    request = {
        "suite": suite.name,
        "options": dict(options),
        "seconds": suite.grading_seconds,
        "tasks": [{**asdict(task), "folder": str(task.folder)} for task in tasks],
    }
    (folder / "tasks.json").write_text(json.dumps(request), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_KEPT_BACK)}
    ended = run_limited(
        [sys.executable, "-m", "evals.harness.grading", str(folder)],
        cwd=REPOSITORY,
        environment=environment,
        folder=folder,
        timeout_seconds=_START_SECONDS + suite.grading_seconds * len(tasks),
    )
    path = folder / "grades.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    grades = [_grade_from_json(line) for line in lines]
    if len(grades) < len(tasks):
        told = (folder / "stderr.txt").read_text(encoding="utf-8", errors="replace").splitlines()
        if ended.timed_out or (told and told[0].startswith("Timeout")):  # faulthandler's word
            why = f"took over {suite.grading_seconds:g} s"
        else:
            why = f"broke: {told[-1] if told else f'it ended with {ended.exit_code}'}"
        grades.append(GraderFailed(f"the grader {why}"))
    return grades


def graded_copy(case: Case, folder: Path, target: Path, is_ours: bool = True) -> None:
    """Copy a cell's folder for the grader, without an agent's own state.

    That of ours has a name. Another agent's is whatever hidden folder has appeared at the top of the workspace.
    """
    given = {name.split("/")[0] for name in case.files}

    def left_out(place: str, names: list[str]) -> Iterator[str]:
        for name in names:
            path = Path(place, name)
            is_new = name not in given and Path(place) == workspace_of(folder)
            is_state = path.is_dir() and (name == STATE_FOLDER or (name.startswith(".") and not is_ours))
            is_special = path.exists() and not path.is_dir() and not path.is_file()  # a pipe would be waited for
            if is_special or (is_new and is_state):
                yield name

    shutil.copytree(folder, target, symlinks=True, ignore=lambda *seen: set(left_out(*seen)), dirs_exist_ok=True)


def _grade_from_json(line: str) -> Grade | GraderFailed:
    data = json.loads(line)
    if "broke" in data:
        return GraderFailed(f"the grader broke: {data['broke']}")
    return Grade(data["passed"], data["score"], tuple(data["missing"]), tuple(data["forbidden"]))


# ------------------------------------------------------------------------------------------------------- in the child


def main(folder: Path) -> None:
    """Grade what tasks.json in the folder asks for; append a line for each outcome to grades.jsonl.

    A grader that takes too long ends the process, whatever it waits for.
    """
    request = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    suite = find_suite(request["suite"])
    cases = {case.id: case for case in suite.cases(request["options"])}
    with open(folder / "grades.jsonl", "w", encoding="utf-8") as grades:
        for task in request["tasks"]:
            case, place = cases[task["case_id"]], Path(task["folder"])
            outcome = Outcome(workspace_of(place), tuple(task["answers"]), outside_changes(case, place))
            faulthandler.dump_traceback_later(request["seconds"], exit=True)
            try:
                told = asdict(suite.grade(case, outcome))
            except Exception as error:  # what a model left behind may break a grader in any way
                told = {"broke": f"{type(error).__name__}: {error}"}
            faulthandler.cancel_dump_traceback_later()
            grades.write(json.dumps(told) + "\n")
            grades.flush()


def grade_by_hand(suite_name: str, case_id: str, folder: Path, scratch: Path) -> Grade | GraderFailed:
    """Grade a folder that `make` laid out and somebody worked in; `answer.txt` beside its workspace is the answer."""
    suite = find_suite(suite_name)
    case, options = find_case(suite, case_id)
    graded_copy(case, folder, scratch / "copy", is_ours=False)
    answer_file = scratch / "copy" / "answer.txt"
    answer = answer_file.read_text(encoding="utf-8", errors="replace") if answer_file.exists() else ""
    answer_file.unlink(missing_ok=True)
    return grade_all(suite, options, [Task(case.id, scratch / "copy", (answer,))], scratch)[0]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
