from __future__ import annotations

import argparse
import dataclasses
import io
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.dom.minidom
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from evals.harness import run
from evals.harness.arms import read_agent, read_arm
from evals.harness.catalog import UsageError
from evals.harness.cell import _KINDS, Cell, _why, as_lines, run_cell
from evals.harness.processes import Ended, run_limited
from evals.harness.suite import BACKSLASH, ESCAPED, PROCESS, Arm, Case, Grade, Inspection
from evals.lookup.suite import SUITE
from mini_agent.conversation.events import Event, TurnEnded
from mini_agent.model.chat_model import ModelError
from mini_agent.prompt_loop import RequestReader
from tests.evaluation.harness_case import REPOSITORY, HarnessTestCase, environment, records, run_here
from tests.evaluation.test_measures import log, result

CASE = ["--case", "ferry-port", "--repeats", "1"]


def main(arguments: list[str]) -> int:
    return run.main(SUITE, arguments)


def agent(code: str, *more: str) -> str:
    """Return the command line of another agent, which gets the workspace as its first argument."""
    return shlex.join([sys.executable, "-S", "-c", code, "{workspace}", *more])


class AScriptedRun(unittest.TestCase):
    """One run of one case, good against careless, that all tests look at."""

    folder: ClassVar[Path]
    ran: ClassVar[tuple[int, str, str]]

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name).resolve()
        arguments = ["--output", cls.folder / "out", *CASE]
        arguments += ["--scripted", "native=good", "--scripted", "text=careless"]
        cls.ran = run_here(cls.folder, main, *arguments)
        cls.arguments = arguments

    def test_each_cell_is_a_line_with_all_that_it_came_to(self) -> None:
        self.assertEqual(self.ran[0], 0, self.ran)
        lines = {(line["case"], line["arm"]): line for line in records(self.folder / "out")}
        self.assertEqual(len(lines), 2)
        good, careless = lines["ferry-port", "native"], lines["ferry-port", "text"]
        self.assertEqual((good["passed"], good["why"], good["answer"]), (True, "", "7431"))
        self.assertEqual((careless["passed"], careless["why"], careless["answer"]), (False, "not read", "7431"))
        self.assertEqual(good["calls"], {"list_files": 1, "read_file": 1})
        self.assertEqual(good["tokens"]["in"], 3000)
        self.assertEqual((good["model"], good["seed"], good["setting"]["scripted"]), ("scripted", "1", "good"))
        self.assertIn("python", good["versions"])

    def test_the_sessions_stay(self) -> None:
        for line in records(self.folder / "out"):
            (session,) = line["sessions"]
            self.assertTrue((self.folder / "out" / session).is_file())

    def test_the_summary_says_that_no_model_answered(self) -> None:
        summary = (self.folder / "out" / "summary.md").read_text(encoding="utf-8")
        self.assertIn("no model answered", summary)
        self.assertIn("1 helped, 0 regressed", summary)
        self.assertIn(summary, self.ran[1])

    def test_the_chart_shows_each_pair(self) -> None:
        chart = xml.dom.minidom.parse(str(self.folder / "out" / "lookup-native-against-text.svg"))
        self.assertEqual(len(chart.getElementsByTagName("circle")), 1)

    def test_results_are_neither_overwritten_nor_mixed(self) -> None:
        for more in ([], ["--continue", "--seed", "2"], ["--continue", "--scripted", "text=good"]):
            code, _, err = run_here(self.folder, main, *self.arguments, *more)
            with self.subTest(more):
                self.assertEqual(code, 2)
                self.assertIn("holds results", err)
        dear = ["--output", self.folder / "out", "--force", "--repeats", "9"]
        self.assertIn("--yes allows it", run_here(self.folder, main, *dear)[2])
        self.assertEqual(len(records(self.folder / "out")), 2)

    def test_a_broken_run_goes_on_where_it_broke(self) -> None:
        again = self.folder / "again"
        shutil.copytree(self.folder / "out", again)
        text = (again / "results.jsonl").read_text(encoding="utf-8")
        (again / "results.jsonl").write_text(text[:-40], encoding="utf-8")  # killed while it wrote the last line
        arguments = ["--output", again, *self.arguments[2:], "--continue"]
        code, out, err = run_here(self.folder, main, *arguments)
        self.assertEqual((code, out.splitlines()[0][:13], err.count("\n")), (0, "1 cells to ru", 1))
        keys = [[(line["case"], line["arm"]) for line in records(self.folder / name)] for name in ("out", "again")]
        self.assertEqual(*map(sorted, keys))


@unittest.skipUnless(os.environ.get("MINI_AGENT_LONG_TESTS"), "whole runs")
class WholeRuns(HarnessTestCase):
    def verdicts(self, name: str, *scripted: str) -> list[str]:
        arguments = ["--output", self.folder / name, "--repeats", "1"]
        arguments += [word for kind in scripted for word in ("--scripted", kind)]
        code, out, err = self.run_here(main, *arguments)
        self.assertEqual(code, 0, err)
        return [line.split(":** ")[1] if ":** " in line else line for line in out.splitlines() if "assing:" in line]

    def test_identical_arms_come_out_as_no_difference(self) -> None:
        for name in ("good", "bad", "careless"):
            (told,) = self.verdicts(name, name)
            self.assertTrue(told.startswith("no difference seen: none of 30 pairs differs"), told)

    def test_arms_that_differ_are_found(self) -> None:
        self.assertEqual(self.verdicts("more", "native=good", "text=bad"), ["native passes more (p < 0.0001)"])
        self.assertEqual(self.verdicts("less", "native=careless", "text=good"), ["native passes less (p < 0.0001)"])


class OtherAgents(HarnessTestCase):
    def test_each_is_known_by_its_outcome_alone_and_one_that_is_missing_costs_only_its_cell(self) -> None:
        shows = 'import sys, os; os.mkdir(sys.argv[1] + "/.own"); print(sys.argv[2:], sys.stdin.read(), 7431)'
        agents = {
            "lines": agent(shows),
            "each:process": agent(shows, "{turn}"),
            "missing": "no-such-program",
        }
        arguments = ["--output", self.folder / "out", *CASE, "--arm", "ours=; MINI_AGENT_SCRIPT=no"]
        arguments += [word for name, command in agents.items() for word in ("--agent", f"{name}={command}")]
        code, _, err = self.run_here(main, *arguments)
        lines = {line["arm"]: line for line in records(self.folder / "out")}
        whys = {"ours": "not started", "lines": "", "each": "", "missing": "not started"}
        self.assertEqual({arm: line["why"] for arm, line in lines.items()}, whys)
        self.assertEqual({arm for arm, line in lines.items() if line["passed"]}, {"lines", "each"})
        self.assertTrue(lines["lines"]["answer"].startswith("[] On which port"))
        self.assertTrue(lines["each"]["answer"].startswith("['On which port"))
        unknown = ["tokens", "requests", "rounds", "calls", "tool_errors", "compressions", "characters_saved", "used"]
        self.assertEqual([lines["each"][name] for name in unknown], [None] * len(unknown))
        self.assertIn("MINI_AGENT_SCRIPT", lines["ours"]["problem"])
        self.assertEqual((code, err.splitlines()[-1][:24]), (1, "2 cells could not be run"))

    def test_one_that_hangs_is_ended_at_the_limit_of_its_cell(self) -> None:
        hangs = read_agent(f"hangs={agent('import time; print(7431, flush=True); time.sleep(60)')}")
        (case,) = (case for case in SUITE.cases({"seed": "1"}) if case.id == "ferry-port")
        record = run_cell(
            Cell(SUITE, {"seed": "1"}, case, hangs, 0, 1, timeout_seconds=0.3), self.folder, self.folder / "scratch"
        )
        self.assertEqual((record["why"], record["passed"]), ("time", False))

    def test_lines_with_a_backslash_are_read_by_our_agent_as_they_were(self) -> None:
        turns = ("one\ntwo", "with a \\ in it\n\nand a blank line\nC:\\\nlast", "alone")
        stream = io.StringIO(as_lines(turns, BACKSLASH))
        reader = RequestReader(lambda continued: stream.readline()[:-1] if stream else None, blocks=False)
        self.assertEqual(tuple(reader.next() for _ in turns), turns)

    def test_escaped_lines_hold_no_line_break(self) -> None:
        self.assertEqual(as_lines(("one\ntwo", "three"), ESCAPED), "one\\ntwo\nthree\n")


class Processes(HarnessTestCase):
    def limited(self, code: str, seconds: float) -> Any:
        command = [sys.executable, "-S", "-c", code]
        where = {"cwd": self.folder, "folder": self.folder, "environment": environment(self.folder)}
        return run_limited(command, timeout_seconds=seconds, **where)

    def assert_dies(self, path: Path) -> None:
        """See that the process that keeps writing into a file is gone."""
        for _ in range(100):
            size = path.stat().st_size
            time.sleep(0.05)
            if path.stat().st_size == size:
                return
        self.fail("it still writes")

    GRANDCHILD = (
        "import subprocess, sys, time\n"
        'writes = \'import time\\nwhile 1: open("out", "a").write("x"); time.sleep(0.01)\'\n'
        "subprocess.Popen([sys.executable, '-S', '-c', writes])\n"
        "while not __import__('os').path.exists('out'): time.sleep(0.01)\n"
    )

    def test_at_its_limit_a_child_goes_with_all_that_it_started(self) -> None:
        deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        for seconds in (0.5, 5, 50):  # on a slow machine it may not have started anything by then
            ended = self.limited(deaf + self.GRANDCHILD + "time.sleep(60)", seconds)
            self.assertTrue(ended.timed_out)
            if (self.folder / "out").exists():
                break
        self.assert_dies(self.folder / "out")

    def test_what_a_child_left_running_goes_with_it(self) -> None:
        ended = self.limited(self.GRANDCHILD, 30)
        self.assertEqual((ended.exit_code, ended.timed_out), (0, False))
        self.assert_dies(self.folder / "out")

    def test_ctrl_c_ends_the_children_and_leaves_what_is_done(self) -> None:
        hangs = agent("import time; time.sleep(60)")
        quick = agent("print(7431)")
        command = [
            sys.executable,
            "-S",
            "-m",
            "evals.lookup",
            "--output",
            str(self.folder / "out"),
            "--case",
            "ferry-port",
        ]
        command += ["--repeats", "1", "--jobs", "2", "--agent", f"quick={quick}", "--agent", f"hangs={hangs}"]
        command += ["--arm", "x=; MINI_AGENT_SCRIPT=no", "--yes"]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, cwd=REPOSITORY, env=environment(self.folder), stdout=pipe, stderr=pipe)
        results = self.folder / "out" / "results.jsonl"
        for _ in range(600):
            if results.exists() and results.read_text(encoding="utf-8").count("\n") == 2:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn(b"--continue", err)
        self.assertEqual({line["arm"] for line in records(self.folder / "out")}, {"quick", "x"})


class Plans(unittest.TestCase):
    CASES = tuple(Case(f"case-{number}", {}, ("Do it.",), ()) for number in range(6))
    ARMS = (Arm("new"), Arm("old"), Arm("other", command=("other",)))

    def plan(self, **flags: Any) -> list[Cell]:
        all_flags = {"seed": 1, "repeats": 2, "shard": (1, 1), "timeout": None, "scripted": None, **flags}
        return run.make_plan(SUITE, self.CASES, self.ARMS, argparse.Namespace(**all_flags))

    def test_the_arms_of_a_case_stand_together_in_random_order(self) -> None:
        plan = self.plan()
        blocks = [plan[at : at + 3] for at in range(0, len(plan), 3)]
        self.assertEqual([len({(cell.case.id, cell.repeat) for cell in block}) for block in blocks], [1] * 12)
        self.assertGreater(len({tuple(cell.arm.name for cell in block) for block in blocks}), 2)
        self.assertEqual([cell.case.id for cell in plan[:18]], [cell.case.id for cell in plan[18:]])

    def test_the_order_is_the_seeds(self) -> None:
        keys = [[cell.key for cell in self.plan(seed=seed)] for seed in (1, 1, 2)]
        self.assertEqual(keys[0], keys[1])
        self.assertNotEqual(keys[0], keys[2])

    def test_shards_together_are_the_whole_and_none_parts_a_pair(self) -> None:
        shards = [self.plan(shard=(part, 5)) for part in range(1, 6)]
        self.assertEqual(
            sorted(cell.key for shard in shards for cell in shard), sorted(cell.key for cell in self.plan())
        )
        blocks = [{(cell.case.id, cell.repeat) for cell in shard} for shard in shards]
        self.assertEqual(sum(map(len, blocks)), 12)


class BadUsage(HarnessTestCase):
    def refused(self, *arguments: str) -> str:
        code, _, err = self.run_here(main, "--output", self.folder / "out", *arguments)
        self.assertEqual((code, (self.folder / "out" / "results.jsonl").exists()), (2, False), err)
        return err

    def test_each_mistake_is_told_before_anything_runs(self) -> None:
        mistakes: Sequence[tuple[list[str], str]] = (
            (["--arm", "no name"], "not of the form"),
            (["--arm", "x=--no-such-flag"], "no flags of our agent"),
            (["--arm", "x=--version"], "no flags of our agent"),
            (["--arm", "x=-p hello"], "set by the harness"),
            (["--arm", "x=", "--arm", "x="], "same name"),
            (["--arm", "x='"], "quotation"),
            (["--agent", "x"], "not of the form"),
            (["--agent", "x=tool {turn}"], f"x:{PROCESS}"),
            (["--case", "nowhere"], "no case nowhere"),
            (["--shard", "3/2"], "3/2"),
            (["--repeats", "0"], "0"),
            (["--scripted", "perfect"], "perfect"),
            ([], "--yes allows it"),
        )
        for arguments, told in mistakes:
            with self.subTest(arguments):
                self.assertIn(told, self.refused(*arguments))

    def test_arms_and_agents_are_read_as_they_are_written(self) -> None:
        arm = read_arm("x=--max-rounds 3 --disable-compress-tool; MINI_AGENT_STREAM=off A_B='two words'")
        self.assertEqual(arm.flags, ("--max-rounds", "3", "--disable-compress-tool"))
        self.assertEqual(arm.environment, {"MINI_AGENT_STREAM": "off", "A_B": "two words"})
        other = read_agent("y:escaped=tool --in '{workspace}' -x")
        self.assertEqual((other.command, other.line_breaks), (("tool", "--in", "{workspace}", "-x"), ESCAPED))
        with self.assertRaises(UsageError):
            read_agent("y=")


class ACellThatBreaks(HarnessTestCase):
    def test_it_becomes_a_line_and_the_rest_goes_on(self) -> None:
        def turns(case: Case, arm: Arm) -> tuple[str, ...]:
            raise ZeroDivisionError("of its own")

        suite = dataclasses.replace(SUITE, turns=turns)
        case = Case("case", {}, ("Do it.",), ())
        record = run_cell(Cell(suite, {"seed": "1"}, case, Arm("x"), 0, 1, 10), self.folder, self.folder / "scratch")
        self.assertEqual((record["why"], record["problem"]), ("harness", "ZeroDivisionError: of its own"))

    def test_keys_are_not_shown(self) -> None:
        cell = Cell(
            SUITE, {"seed": "1"}, Case("c", {}, ("?",), ()), Arm("x", (), {"OPENAI_API_KEY": "sk-1", "B": "2"}), 0, 1, 1
        )
        self.assertEqual(cell.setting["environment"], {"OPENAI_API_KEY": "***", "B": "2"})


class Whys(unittest.TestCase):
    def why(self, *events: Event, grade: Grade = Grade(False, 0.0), ended: Ended = Ended(0, False, 1.0)) -> str:  # noqa: B008
        return _why(ended, log(*events), grade, Inspection("not read"))

    def test_a_cell_fails_for_one_reason(self) -> None:
        refused = result("apply_patch", "Error [no_match]: no", is_error=True)
        self.assertEqual(self.why(), "wrong")
        self.assertEqual(self.why(grade=Grade(True, 1.0)), "not read")
        self.assertEqual(self.why(grade=Grade(True, 1.0), ended=Ended(-9, True, 1.0)), "time")
        self.assertEqual(self.why(TurnEnded("failed", "context_overflow"), TurnEnded("completed")), "overflow")
        self.assertEqual(self.why(TurnEnded("failed", "connection_failed")), "server")
        self.assertEqual(self.why(refused, grade=Grade(False, 0.0, (), ("x",))), "forbidden")
        self.assertEqual(self.why(refused, TurnEnded("round_limit")), "patch form")
        self.assertEqual(self.why(TurnEnded("round_limit")), "rounds")
        self.assertEqual(self.why(ended=Ended(-11, False, 1.0)), "crashed")

    def test_every_failure_of_a_model_has_one(self) -> None:
        told = {error.kind for error in ModelError.__subclasses__()}
        self.assertLessEqual(told - {"model_error"}, set(_KINDS))
