"""Thirty questions, each with its answer in exactly one place of a small project: for small, local models.

The question says what to look for, and in which file: models of 1.5 billion parameters find none by themselves. A run
passes when the final answer is the right fact and none of the wrong ones beside it, and, with our agent, when a tool's
result really held that fact: a guess is no look-up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from evals.harness.facts import grade_facts, states, times_stated
from evals.harness.suite import Arm, Case, Grade, Inspection, Options, Outcome, Proof, Suite, files_in
from mini_agent.conversation.events import ToolResultAdded
from mini_agent.session.event_log import LogEntry

_LINE_NUMBER = re.compile(r"^[^\n:]+:\d+:", re.MULTILINE)  # of what grep finds: it is no fact of the file
PROJECTS = Path(__file__).parent / "projects"
ARMS = (
    Arm("native", environment={"MINI_AGENT_TOOL_PROTOCOL": "native"}),
    Arm("text", environment={"MINI_AGENT_TOOL_PROTOCOL": "text"}),
)


def cases(options: Options) -> list[Case]:
    """Return a case for each question of each project; its questions stand in the JSON file beside its folder."""
    found = []
    for path in sorted(PROJECTS.glob("*.json")):
        files = files_in(PROJECTS / path.stem)
        found += [_case(path.stem, files, question) for question in json.loads(path.read_text(encoding="utf-8"))]
    return found


def _case(project: str, files: dict[str, bytes], question: dict[str, str]) -> Case:
    """Return the case of one question.

    question: its `id`, what is asked, the `fact`, and three values `wrong` that lie near: of another time or thing.
    """
    fact, wrong = question["fact"], question["wrong"]
    [place] = [name for name, content in files.items() if states(content.decode("utf-8"), fact)]
    return Case(
        id=f"{project}-{question['id']}",
        files=files,
        turns=(f"{question['ask']} It stands in {place}. Use the tools.",),
        proofs=(
            Proof("the value alone", True, answer=fact),
            Proof("the value in a sentence", True, answer=f"It is **{fact}**, as the project says."),
            *(Proof(f"the near value {value}", False, answer=value) for value in wrong),
            Proof("both values", False, answer=f"Either {fact} or {wrong[0]}."),
            Proof("where it stands, and not what", False, answer="I have found it; see the project's files."),
        ),
        facts=(fact,),
        details={"wrong": wrong},
    )


def grade(case: Case, outcome: Outcome) -> Grade:
    """Look for the fact, and for the values that lie near it, in the answer."""
    return grade_facts(outcome.answer, case.facts, case.details["wrong"])


def inspect(case: Case, entries: Sequence[LogEntry]) -> Inspection:
    """Tell whether a tool's result held the fact."""
    results = [entry.event for entry in entries if isinstance(entry.event, ToolResultAdded)]
    texts = [_LINE_NUMBER.sub("", result.text) for result in results if result.tool_name in ("read_file", "grep")]
    was_read = any(states(text, fact) for text in texts for fact in case.facts)
    return Inspection("" if was_read else "not read", {"read": was_read})


def check(case: Case) -> list[str]:
    """Find the fact in one file and once, and each near value somewhere: what is near must be there to be mistaken."""
    texts = {name: content.decode("utf-8") for name, content in case.files.items()}
    places = sum(times_stated(text, fact) for text in texts.values() for fact in case.facts)
    nowhere = [value for value in case.details["wrong"] if not any(states(text, value) for text in texts.values())]
    problems = [] if places == 1 else [f"the fact stands in {places} places"]
    return problems + [f"the near value {value} stands nowhere" for value in nowhere]


SUITE = Suite(
    name="lookup",
    asks="Are tools called natively, or in the text, the better way for this model to look things up?",
    cases=cases,
    arms=ARMS,
    grade=grade,
    timeout_seconds=300,
    inspect=inspect,
    check=check,
)
