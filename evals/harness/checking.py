"""`check`: every grader proves itself on outcomes of which it is known what they are worth."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from evals.harness.catalog import all_options
from evals.harness.grading import GraderFailed, Task, grade_all
from evals.harness.suite import Case, Grade, Options, Proof, Suite, lay_out

LEAST_RIGHT, LEAST_WRONG = 2, 3


def every_case(suite: Suite) -> Iterator[tuple[Options, list[Case]]]:
    """Yield all cases of a suite with the options that make them, each case once."""
    seen: set[str] = set()
    for options in all_options(suite):
        cases = [case for case in suite.cases(options) if case.id not in seen]
        seen.update(case.id for case in cases)
        if cases:
            yield options, cases


def check_cases(suite: Suite, options: Options, cases: Sequence[Case]) -> dict[str, list[str]]:
    """Return, by the cases' ids, what is wrong with each, in words; nothing where all is as it must be."""
    found: dict[str, list[str]] = {}
    tried: list[tuple[Case, Proof]] = []
    for case in cases:
        unfounded = (f"the grader wants {fact!r}, which nothing tells" for fact in _unfounded(case))
        found[case.id] = [*_form(case), *unfounded, *suite.check(case)]
        tried += [(case, Proof("the untouched workspace", case.untouched_passes))]
        tried += [(case, proof) for proof in case.proofs]
    with tempfile.TemporaryDirectory(prefix="mini_agent_evals_") as name:
        scratch = Path(name).resolve()
        tasks = []
        for number, (case, proof) in enumerate(tried):
            lay_out(case, scratch / str(number), proof)
            tasks.append(Task(case.id, scratch / str(number), (proof.answer,)))
        for (case, proof), grade in zip(tried, grade_all(suite, options, tasks, scratch)):
            found[case.id] += _misjudged(proof, grade)
    return found


def _misjudged(proof: Proof, grade: Grade | GraderFailed) -> Iterator[str]:
    if isinstance(grade, GraderFailed):
        yield f"{proof.name}: {grade}"
    elif grade.passed != proof.passes:
        why = "; ".join([*(f"missing {text}" for text in grade.missing), *(f"forbidden {t}" for t in grade.forbidden)])
        yield f"{proof.name}: must {'pass' if proof.passes else 'fail'} and does not{f' ({why})' if why else ''}"
    elif not 0 <= grade.score <= 1 or (grade.passed and (grade.score < 1 or grade.missing or grade.forbidden)):
        yield f"{proof.name}: the grade contradicts itself: {grade}"


def _form(case: Case) -> Iterator[str]:
    right = sum(proof.passes for proof in case.proofs)
    if right < LEAST_RIGHT or len(case.proofs) - right < LEAST_WRONG:
        yield f"has {right} right and {len(case.proofs) - right} wrong proofs: too few"
    names, contents = ({repr(key) for key in keys} for keys in _keys(case.proofs))
    if len(names) < len(case.proofs) or len(contents) < len(case.proofs):
        yield "has two proofs that are alike"
    for number, turn in enumerate(case.turns, 1):
        if not turn.strip() or turn.startswith("/") or turn.endswith("\\") or "\r" in turn:
            yield f"turn {number} is empty, begins with a slash, ends in a backslash or holds a carriage return"


def _keys(proofs: Sequence[Proof]) -> tuple[list[object], list[object]]:
    return (
        [proof.name for proof in proofs],
        [(sorted(proof.files.items()), proof.answer, sorted(proof.outside.items())) for proof in proofs],
    )


def _unfounded(case: Case) -> list[str]:
    """Return the facts that the grader wants and nothing tells."""
    told = [*case.files.values(), *case.outside.values(), *(turn.encode() for turn in case.turns)]
    return [fact for fact in case.facts if not any(fact.encode() in text for text in told)]
