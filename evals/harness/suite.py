"""What a suite is: cases, arms, and a grader that proves itself. This file is the contract.

A suite is a folder `evals/NAME/` with three files (and whatever data it wants, in folders named `cases` or `projects`):

    __init__.py    one line that says what it asks
    __main__.py    from evals.harness.run import main
                   from evals.NAME.suite import SUITE
                   if __name__ == "__main__": raise SystemExit(main(SUITE))
    suite.py       SUITE = Suite(name="NAME", …)

What happens to it:

    cell      one case, run once with one arm, in a temporary folder of its own:
                  …/workspace/      the case's `files`; the agent works here
                  …/                the case's `outside`: sentinels that no agent has any business with
    grade     `Suite.grade(case, outcome)`, in a child process, on a copy of the workspace without the agent's own state
    pair      two cells that differ in the arm alone: the first arm of the suite against each of the others

`python -m evals check` lays out every `Proof` of every case and asks the grader: it must say what the proof says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Optional

from mini_agent.session.event_log import LogEntry

Files = Mapping[str, Optional[bytes]]  # path with forward slashes → content; in an overlay None removes the file
Options = Mapping[str, str]  # the suite's own flags by name, and "seed"
Script = Mapping[str, Any]  # what MINI_AGENT_SCRIPT names a file of: {"replies": [...], "summaries": [...]}

BACKSLASH, ESCAPED, PROCESS = "backslash", "escaped", "process"  # how the lines of a turn reach an agent
STATE_FOLDER = ".mini_agent"  # our agent's own, in a workspace


@dataclass(frozen=True)
class Arm:
    """One way to run an agent: what is compared.

    `command` is another agent's command line, with {workspace} (and, where `line_breaks` is "process", {turn}) filled
    in; without it, it is ours with these flags. Where the command names {workspace}, it starts in the folder that the
    harness was started in, otherwise in the workspace.
    """

    name: str
    flags: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    line_breaks: str = BACKSLASH

    @property
    def is_ours(self) -> bool:
        """Tell whether it is our agent, which leaves a log that can be measured."""
        return not self.command


@dataclass(frozen=True)
class Outcome:
    """All that a grader may look at."""

    workspace: Path  # a copy of the folder, without the agent's own state
    answers: tuple[str, ...] = ()  # one for each turn; of an agent without our log, all that it printed is one
    outside: Mapping[str, str] = field(default_factory=dict)  # path around the workspace → "changed", "gone" or "new"

    @property
    def answer(self) -> str:
        """Return the final answer; "" where there is none."""
        return self.answers[-1] if self.answers else ""


@dataclass(frozen=True)
class Grade:
    """What a grader says."""

    passed: bool
    score: float  # 0 to 1: the share of what was wanted
    missing: tuple[str, ...] = ()  # what was wanted and is not there, in words for people
    forbidden: tuple[str, ...] = ()  # deeds and facts that must not be and are; any of them is a fail


@dataclass(frozen=True)
class Proof:
    """One named outcome of a case, of which it is known whether it must pass."""

    name: str  # "reference", "written another way", "the outdated value", "the test edited instead of the code"
    passes: bool
    files: Files = field(default_factory=dict)  # an overlay over the case's files
    answer: str = ""
    outside: Files = field(default_factory=dict)  # an overlay over the case's `outside`


@dataclass(frozen=True)
class Case:
    """One task with all that it needs.

    `check` wants of its proofs: at least two that pass, at least three that do not, no two alike. The untouched
    workspace with an empty answer is tried besides: it must fail, or, with `untouched_passes`, pass.
    """

    id: str  # unlike any other of the suite under whatever options; letters, digits, "-", "_" and "."
    files: Mapping[str, bytes]
    turns: tuple[str, ...]  # may be of several lines; none begins with "/" or ends in a backslash
    proofs: tuple[Proof, ...]
    facts: tuple[str, ...] = ()  # what the grader wants: `check` finds each, literally, in files, turns or outside
    outside: Mapping[str, bytes] = field(default_factory=dict)  # paths beside "workspace", such as "home/notes.txt"
    untouched_passes: bool = False
    flags: tuple[str, ...] = ()  # for our agent, before the arm's own
    environment: Mapping[str, str] = field(default_factory=dict)  # of every arm; an arm's own goes over it
    tokens: int = 0  # estimate of one run, all requests together; 0: by the size of files and turns
    timeout_seconds: float = 0  # 0: the suite's
    details: Mapping[str, Any] = field(default_factory=dict)  # whatever the suite's grader wants to know


@dataclass(frozen=True)
class Option:
    """A flag of the suite's own: `--NAME VALUE`. `check` goes through all choices of all options."""

    name: str
    default: str
    choices: tuple[str, ...]
    help: str


@dataclass(frozen=True)
class Use:
    """How often the treatment that is compared was used."""

    calls: int = 0
    successes: int = 0
    errors: int = 0


@dataclass(frozen=True)
class Inspection:
    """What a suite reads from our agent's log, besides the grade."""

    failure: str = ""  # why a pass is none ("not read", "read again"): in one or two words, it is a column; "": it is
    facts: Mapping[str, Any] = field(default_factory=dict)  # goes into results.jsonl and, summed up, into the summary


@dataclass(frozen=True)
class Suite:
    """A suite: everything but `name`, `asks`, `cases`, `arms` and `grade` has a default that does nothing."""

    name: str  # of its folder
    asks: str  # the question it answers, in one sentence
    cases: Callable[[Options], Sequence[Case]]  # the same for the same options: a generator is seeded
    arms: tuple[Arm, ...]  # at least one; the first is compared with each of the others
    grade: Callable[[Case, Outcome], Grade]  # runs in a child process
    options: tuple[Option, ...] = ()
    timeout_seconds: float = 600
    grading_seconds: float = 60  # the grader's own limit, for one outcome
    # where an arm gets other words than the rest
    turns: Callable[[Case, Arm], tuple[str, ...]] = lambda case, arm: case.turns
    # what our agent's log tells of the treatment; None where there is nothing to be used
    treatment: Callable[[Sequence[LogEntry]], Use | None] = lambda entries: None
    # what else it tells; the case has the arm's flags and environment
    inspect: Callable[[Case, Sequence[LogEntry]], Inspection] = lambda case, entries: Inspection()
    # the suite's own claims on a case: problems in words
    check: Callable[[Case], Sequence[str]] = lambda case: ()
    # for --scripted, kind: good, bad or careless; None: derived from the proofs
    script: Callable[[Case, Arm, str], Script | None] = lambda case, arm, kind: None


# ------------------------------------------------------------------------------------------------- laying out a case


def workspace_of(folder: Path) -> Path:
    """Return where in a cell's folder the workspace is."""
    return folder / "workspace"


def write_files(folder: Path, files: Files) -> None:
    """Write files into a folder, over what is there; None removes."""
    for name, content in files.items():
        path = folder / name
        if content is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def lay_out(case: Case, folder: Path, proof: Proof | None = None) -> None:
    """Make `folder` a cell's: the workspace, what is around it, and over both what a proof changes."""
    workspace_of(folder).mkdir(parents=True, exist_ok=True)
    write_files(workspace_of(folder), case.files)
    write_files(folder, case.outside)
    if proof:
        write_files(workspace_of(folder), proof.files)
        write_files(folder, proof.outside)


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder by their paths with forward slashes, without what Python compiled.

    A link is not followed: it counts as a file whose content is where it leads.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if "__pycache__" in name.parts:
            continue
        if path.is_symlink():
            found[name.as_posix()] = b"-> " + bytes(path.readlink())
        elif path.is_file():
            found[name.as_posix()] = path.read_bytes()
    return found


def changes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> dict[str, str]:
    """Return what became of the files that are not as they were: "changed", "gone" or "new"."""
    found = {name: "changed" if name in after else "gone" for name in before if after.get(name) != before[name]}
    return {**found, **{name: "new" for name in after if name not in before}}


def outside_changes(case: Case, folder: Path) -> dict[str, str]:
    """Return what became of the files around the workspace."""
    around = {name: content for name, content in files_in(folder).items() if not name.startswith("workspace/")}
    return changes(case.outside, around)
