"""The commands that concern all suites: check, make, grade, report."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from evals.harness.catalog import UsageError, find_case, find_suite, suite_names
from evals.harness.checking import check_cases, every_case
from evals.harness.grading import GraderFailed, grade_by_hand
from evals.harness.processes import stop_all
from evals.harness.report import write_report
from evals.harness.suite import lay_out, workspace_of
from mini_agent import BAD_USAGE, INTERRUPTED


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return 0, 1 where something is wrong, 2 where it cannot be done, or 130 for Ctrl-C."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        return code
    except KeyboardInterrupt:
        stop_all()
        return INTERRUPTED
    except (UsageError, OSError) as error:
        print(f"evals: {error}", file=sys.stderr)
        return BAD_USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evals", epilog=f"The suites, each with --help: {', '.join(f'evals.{n}' for n in suite_names())}"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    check = commands.add_parser("check", help="let every grader prove itself on right and wrong outcomes")
    check.add_argument("suites", nargs="*", metavar="SUITE", help="default: all")
    check.add_argument("--case", action="append", metavar="ID", help="only this one; may be repeated")
    check.set_defaults(run=_check)
    for name, help in (("make", "lay a case out for any tool"), ("grade", "grade such a folder by hand")):
        command = commands.add_parser(name, help=help)
        command.add_argument("suite", metavar="SUITE")
        command.add_argument("case", metavar="CASE")
        command.add_argument("folder", metavar="DIR", type=Path)
        command.set_defaults(run=_make if name == "make" else _grade)
    report = commands.add_parser("report", help="sum up what several --output folders hold")
    report.add_argument("folders", nargs="+", metavar="DIR", type=Path)
    report.add_argument(
        "--output", metavar="DIR", type=Path, help="where summary and charts go (default: the only DIR)"
    )
    report.set_defaults(run=_report)
    return parser


def _check(options: argparse.Namespace) -> int:
    """Check each case; print a line for each with something wrong, and at last how many there are."""
    checked = wrong = 0
    wanted = set(options.case or ())
    for suite in map(find_suite, options.suites or suite_names()):
        for suite_options, cases in every_case(suite):
            chosen = [case for case in cases if not options.case or case.id in options.case]
            found = check_cases(suite, suite_options, chosen)
            checked, wrong = checked + len(found), wrong + sum(map(bool, found.values()))
            for id, problems in found.items():
                for problem in problems:
                    print(f"{suite.name} {id}: {problem}")
            wanted -= found.keys()
            if options.case and not wanted:  # the largest cases, which take long to make, need not be
                break
    print(f"{checked} cases checked, {wrong} with something wrong")
    return 1 if wrong or not checked else 0


def _make(options: argparse.Namespace) -> int:
    case, _ = find_case(find_suite(options.suite), options.case)
    if options.folder.exists() and any(options.folder.iterdir()):
        raise UsageError(f"{options.folder} is not empty")
    lay_out(case, options.folder)
    print(f"Let your tool work in {workspace_of(options.folder)} on this:\n")
    print("\n\n".join(case.turns))
    print(f"\nPut its final answer into {options.folder / 'answer.txt'}; then: python -m evals grade", end=" ")
    print(options.suite, options.case, options.folder)
    return 0


def _grade(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="mini_agent_evals_") as scratch:
        grade = grade_by_hand(options.suite, options.case, options.folder, Path(scratch).resolve())
    if isinstance(grade, GraderFailed):
        raise UsageError(str(grade))
    print(json.dumps(asdict(grade), indent=2))
    return 0 if grade.passed else 1


def _report(options: argparse.Namespace) -> int:
    only = options.folders[0] if len(options.folders) == 1 else None
    print(write_report(options.folders, options.output or only))
    return 0
