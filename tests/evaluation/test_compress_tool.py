from __future__ import annotations

import dataclasses
import os
import unittest
import unittest.mock
from pathlib import Path

from evals.compress_tool.suite import ARMS, HINT, PRESSURES, SUITE, cases
from evals.harness.arms import read_agent, read_arm
from evals.harness.cell import Cell, run_cell
from evals.harness.suite import Outcome
from tests.evaluation.harness_case import HarnessTestCase, environment

LONG = bool(os.environ.get("MINI_AGENT_LONG_TESTS"))
ON, OFF = ARMS
SMOKE = {"pressure": "smoke", "wording": "all", "seed": "1"}


class Cases(unittest.TestCase):
    def test_of_every_seed_each_value_stands_in_its_evidence_alone_and_each_proof_is_judged_as_it_says(self) -> None:
        for seed in range(50 if LONG else 2):
            for case in cases({**SMOKE, "seed": str(seed)}):
                with self.subTest(case=case.id, seed=seed):
                    self.assertEqual(SUITE.check(case), [])
                    for proof in case.proofs:
                        grade = SUITE.grade(case, Outcome(Path(), (proof.answer,)))
                        self.assertEqual(grade.passed, proof.passes, proof.name)

    def test_a_value_in_a_second_place_or_in_a_turn_is_found(self) -> None:
        case = cases(SMOKE)[0]
        value = case.facts[0]
        self.assertTrue(SUITE.check(dataclasses.replace(case, files={**case.files, "more.txt": value.encode()})))
        self.assertTrue(SUITE.check(dataclasses.replace(case, turns=(*case.turns, f"Is it {value}?"))))

    def test_the_evidence_comes_in_order_and_noise_after_its_last_stage(self) -> None:
        for level, pressure in list(PRESSURES.items())[: None if LONG else 2]:
            for case in cases({**SMOKE, "pressure": level}):
                with self.subTest(case.id):
                    told = [number for number, lines in enumerate(case.details["evidence"].values()) if lines]
                    self.assertEqual(told, [0, pressure.files // 4, pressure.files // 2])
                    self.assertEqual(len(case.turns), pressure.files + 1)

    def test_both_wordings_have_the_same_files_and_only_the_hint_parts_them(self) -> None:
        neutral, guided = cases(SMOKE)[:2]
        self.assertEqual(neutral.files, guided.files)
        self.assertEqual(SUITE.turns(neutral, ON), neutral.turns)
        self.assertEqual([turn.replace(f"\n{HINT}", "") for turn in SUITE.turns(guided, ON)], list(neutral.turns))

    def test_the_hint_stands_only_where_the_tool_exists(self) -> None:
        guided = cases(SMOKE)[1]
        without = (OFF, read_arm("x=--disable-compress-tool --max-rounds 9"), read_agent("other=other {workspace}"))
        for arm in without:
            self.assertEqual(SUITE.turns(guided, arm), guided.turns)
        for arm in (ON, read_arm("x=--max-rounds 9")):
            self.assertEqual(["compress_tool" in turn for turn in SUITE.turns(guided, arm)], [True] * 4 + [False])


class ScriptedRuns(HarnessTestCase):
    def test_the_good_one_uses_the_tool_and_the_careless_one_reads_again(self) -> None:
        case = cases(SMOKE)[1]
        with unittest.mock.patch.dict(os.environ, environment(self.folder), clear=True):
            good, careless = (
                run_cell(Cell(SUITE, SMOKE, case, arm, 0, 1, 60, kind), self.folder / "out", self.folder / "scratch")
                for arm, kind in ((ON, "good"), (OFF, "careless"))
            )
        self.assertEqual((good["why"], good["used"]["successes"]), ("", 4))
        self.assertEqual(good["facts"], {"read_again": False, "evidence_seen": True})
        self.assertEqual((careless["why"], careless["score"], careless["used"]["calls"]), ("read again", 1, 0))
