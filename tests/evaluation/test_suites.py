"""The suites that are there, and one that is added as the README says."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

from evals.harness import commands
from evals.harness.catalog import find_suite, suite_names
from evals.harness.grading import graded_copy
from evals.harness.suite import Case
from tests.evaluation.harness_case import REPOSITORY, HarnessTestCase, environment, records

LONG = bool(os.environ.get("MINI_AGENT_LONG_TESTS"))

FAULTY = """
import os, time
from evals.harness.suite import Arm, Case, Grade, Proof, Suite

PROOFS = (Proof("r1", True, answer="r1"), Proof("r2", True, answer="r2"), Proof("w1", False, answer="w1"))
PROOFS += (Proof("w2", False, answer="w2"), Proof("w3", False, answer="w3"))

def grade(case, outcome):
    if case.id == "hangs" and outcome.answer == "w1":
        time.sleep(60)
    if case.id == "raises" and outcome.answer == "w1":
        raise ZeroDivisionError("of its own")
    if case.id == "exits" and outcome.answer == "w1":
        os._exit(3)
    return Grade(outcome.answer in ("r1", "r2") or case.id == "lenient", 1.0)

def cases(options):
    found = [Case(id, {"a": b"1"}, ("Do it.",), PROOFS) for id in ("hangs", "raises", "exits", "lenient", "sound")]
    found.append(Case("few", {"a": b"1"}, ("/Do it.",), PROOFS[:2] + PROOFS[2:4] + PROOFS[2:3], facts=("2",)))
    return found

SUITE = Suite("faulty", "?", cases, (Arm("x"),), grade, grading_seconds=0.8)
"""


class ACopy(HarnessTestCase):
    """A copy of the harness, to which a suite is added."""

    def setUp(self) -> None:
        super().setUp()
        ours, copy = REPOSITORY / "evals", self.folder / "evals"
        shutil.copytree(ours / "harness", copy / "harness", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("__init__.py", "__main__.py"):
            shutil.copy(ours / name, copy)

    def add_suite(self, name: str, suite: str) -> None:
        folder = self.folder / "evals" / name
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        main = (REPOSITORY / "evals" / "lookup" / "__main__.py").read_text(encoding="utf-8")
        (folder / "__main__.py").write_text(main.replace("evals.lookup", f"evals.{name}"), encoding="utf-8")
        (folder / "suite.py").write_text(suite, encoding="utf-8")

    def python(self, *arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-S", "-m", *arguments]
        variables = {**environment(self.folder), "PYTHONPATH": str(REPOSITORY)}
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
        )
        return done.returncode, done.stdout.decode("utf-8")


class ANewSuite(ACopy):
    def test_it_is_made_by_making_a_folder_with_the_ten_lines_of_the_readme(self) -> None:
        readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
        (suite,) = (block for block in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "SUITE = " in block)
        self.assertLessEqual(len(suite.strip().splitlines()), 10)
        self.add_suite("ports", suite)
        self.assertEqual(self.python("evals", "check"), (0, "1 cases checked, 0 with something wrong\n"))
        arguments = ["--output", "out", "--repeats", "1", "--scripted", "good"]
        code, told = self.python("evals.ports", *arguments)
        self.assertEqual(code, 0, told)
        self.assertEqual([line["passed"] for line in records(self.folder / "out")], [True, True])
        self.assertIn("Are two rounds enough", told)


class Graders(ACopy):
    def test_one_that_hangs_raises_exits_or_misjudges_is_told_and_the_rest_is_checked(self) -> None:
        self.add_suite("faulty", FAULTY)
        code, told = self.python("evals", "check")
        self.assertEqual(code, 1)
        problems = dict.fromkeys(line.removeprefix("faulty ") for line in told.splitlines())
        self.assertEqual(
            list(problems),
            [
                "hangs: w1: the grader took over 0.8 s",
                "raises: w1: the grader broke: ZeroDivisionError: of its own",
                "exits: w1: the grader broke: it ended with 3",
                "lenient: the untouched workspace: must fail and does not",
                *(f"lenient: {name}: must fail and does not" for name in ("w1", "w2", "w3")),
                "few: has two proofs that are alike",
                "few: turn 1 is empty, begins with a slash, ends in a backslash or holds a carriage return",
                "few: the grader wants '2', which nothing tells",
                "6 cases checked, 5 with something wrong",
            ],
        )


class Copies(HarnessTestCase):
    def copied(self, is_ours: bool) -> set[str]:
        target = self.folder / f"copy-{is_ours}"
        graded_copy(Case("x", {".hidden/a": b""}, (), ()), self.folder / "cell", target, is_ours)
        return {path.relative_to(target / "workspace").as_posix() for path in (target / "workspace").iterdir()}

    @unittest.skipUnless(hasattr(os, "mkfifo"), "there are no pipes in folders here")
    def test_an_agents_own_state_and_what_cannot_be_read_is_left_out(self) -> None:
        workspace = self.folder / "cell" / "workspace"
        for name in (".hidden", ".mini_agent", ".other", "seen/.other"):
            (workspace / name).mkdir(parents=True)
        (workspace / ".file").touch()
        (workspace / "link").symlink_to("nowhere")
        os.mkfifo(workspace / "pipe")
        self.assertEqual(self.copied(is_ours=True), {".hidden", ".other", ".file", "seen", "link"})
        self.assertEqual(self.copied(is_ours=False), {".hidden", ".file", "seen", "link"})


class Suites(HarnessTestCase):
    def test_each_case_of_each_suite_proves_its_grader(self) -> None:
        for name in suite_names():
            cases = find_suite(name).cases({**{o.name: o.default for o in find_suite(name).options}, "seed": "1"})
            some = [] if LONG else [word for case in cases[:1] for word in ("--case", case.id)]
            with self.subTest(name):
                code, out, _ = self.run_here(commands.main, "check", name, *some)
                self.assertEqual(code, 0, out)

    def test_lookup_asks_thirty_questions_with_an_answer_in_one_place_each(self) -> None:
        suite = find_suite("lookup")
        cases = suite.cases({"seed": "1"})
        self.assertEqual(len({case.turns for case in cases}), 30)
        self.assertEqual([problem for case in cases for problem in suite.check(case)], [])
        twice = dataclasses.replace(cases[0], files={**cases[0].files, "copy.txt": cases[0].facts[0].encode()})
        self.assertEqual(suite.check(twice), ["the fact stands in 2 places"])

    def test_the_readmes_list_them(self) -> None:
        for name in ("README.md", "README.zh-CN.md"):
            text = (REPOSITORY / name).read_text(encoding="utf-8")
            listed = re.findall(r"^\| `evals\.(\w+)` \|", text, re.MULTILINE)
            with self.subTest(name):
                self.assertEqual(sorted(listed), suite_names())


class ByHand(HarnessTestCase):
    def test_a_case_is_laid_out_and_a_folder_graded(self) -> None:
        place = self.folder / "case"
        code, out, _ = self.run_here(commands.main, "make", "lookup", "ferry-port", place)
        self.assertEqual(code, 0)
        self.assertIn("On which port", out)
        self.assertTrue((place / "workspace" / "ferry" / "settings.py").is_file())
        (place / "answer.txt").write_text("7431\n", encoding="utf-8")
        (place / "workspace" / ".tool").mkdir()
        code, out, _ = self.run_here(commands.main, "grade", "lookup", "ferry-port", place)
        self.assertEqual((code, json.loads(out)["passed"]), (0, True))

    def test_what_cannot_be_done_is_told_in_one_line(self) -> None:
        (self.folder / "full").mkdir()
        (self.folder / "full" / "a").touch()
        for arguments, told in (
            (["make", "nothing", "x", self.folder], "there is no suite"),
            (["make", "lookup", "x", self.folder / "new"], "no case 'x'"),
            (["make", "lookup", "ferry-port", self.folder / "full"], "is not empty"),
            (["grade", "lookup", "ferry-port", self.folder / "nowhere"], "nowhere"),
            (["report", self.folder], "holds no results.jsonl"),
        ):
            with self.subTest(arguments):
                code, _, err = self.run_here(commands.main, *arguments)
                self.assertEqual((code, err.count("\n")), (2, 1))
                self.assertIn(told, err)


if __name__ == "__main__":
    unittest.main()
