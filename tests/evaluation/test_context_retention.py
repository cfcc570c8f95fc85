from __future__ import annotations

import dataclasses
import os
import tempfile
import unittest
import unittest.mock
from pathlib import Path

from evals.context_retention.suite import ARMS, SIZES, SUITE, cases, raw_tokens, window_tokens
from evals.harness.cell import Cell, as_lines, run_cell
from evals.harness.measures import read_session
from evals.harness.suite import BACKSLASH, Case, Grade, Outcome, Proof, write_files
from mini_agent.conversation.events import (
    AssistantMessageAdded,
    HistorySummarized,
    InstructionsSet,
    TurnEnded,
    UserMessageAdded,
)
from mini_agent.conversation.messages import AssistantMessage, Summary, Usage, UserMessage
from mini_agent.session.event_log import LogEntry, now
from tests.evaluation.harness_case import HarnessTestCase, environment

LONG = bool(os.environ.get("MINI_AGENT_LONG_TESTS"))
SMALL = {"size": "8k", "window": "half", "seed": "1"}


def entries(*events: object) -> list[LogEntry]:
    return [LogEntry(number, now(), event) for number, event in enumerate(events, 1)]  # type: ignore[arg-type]


class Cases(unittest.TestCase):
    def test_of_every_seed_they_hold_their_values_once_and_reach_the_size(self) -> None:
        for seed in range(50 if LONG else 2):
            for case in cases({**SMALL, "seed": str(seed)}):
                with self.subTest(case=case.id, seed=seed):
                    self.assertEqual(SUITE.check(case), [])

    def test_of_every_seed_their_proofs_are_judged_as_they_say(self) -> None:
        for seed in range(50 if LONG else 2):
            for case in cases({**SMALL, "seed": str(seed)}):
                for proof in case.proofs:
                    with self.subTest(case=case.id, seed=seed, proof=proof.name):
                        grade = self.grade(case, proof)
                        self.assertEqual(grade.passed, proof.passes)
                        self.assertTrue(grade.forbidden or "outdated" not in proof.name)

    def grade(self, case: Case, proof: Proof) -> Grade:
        with tempfile.TemporaryDirectory() as name:
            write_files(Path(name), proof.files)
            return SUITE.grade(case, Outcome(Path(name), (proof.answer,)))

    def test_a_value_told_twice_and_a_session_too_short_are_found(self) -> None:
        case = cases(SMALL)[1]
        value = case.facts[0]
        again = dataclasses.replace(case, turns=(*case.turns[:-1], f"{case.turns[-1]} It is {value}."))
        self.assertEqual(SUITE.check(again), [f"repeated: {value}"])
        short = dataclasses.replace(case, turns=(*case.turns[:2], *case.turns[10:]))
        self.assertIn("not to 8192", " ".join(SUITE.check(short)))

    def test_the_first_turn_which_stays_in_every_compression_tells_no_value(self) -> None:
        for case in cases(SMALL):
            self.assertEqual([value for value in case.facts if value in case.turns[0]], [])
            self.assertNotIn("\\n", as_lines(case.turns, BACKSLASH))

    def test_the_window_is_half_the_size_unless_it_is_chosen(self) -> None:
        self.assertEqual([window_tokens({**SMALL, "size": size}) // 1024 for size in ("8k", "64k", "1m")], [4, 32, 128])
        self.assertEqual(window_tokens({**SMALL, "window": "16k"}), 16384)
        self.assertEqual(SIZES["1m"], 1024 * 1024)


class RawHistory(unittest.TestCase):
    def setUp(self) -> None:
        self.case = dataclasses.replace(cases(SMALL)[0], environment={"MINI_AGENT_CONTEXT_WINDOW": "4096"})

    def said(self, tokens: int, usage: Usage | None = None) -> tuple[object, ...]:
        reply = AssistantMessageAdded(AssistantMessage("ok"), usage, "m", "")
        return UserMessageAdded("abc " * tokens), reply

    def test_it_is_what_the_server_counted_and_after_a_compression_goes_on_growing(self) -> None:
        told = [InstructionsSet("i" * 400, (), "h"), *self.said(1000, Usage(3000, 10, 0))]
        self.assertEqual(raw_tokens(entries(*told)), 3010)
        smaller = HistorySummarized((UserMessage("a"), Summary("s")), 3, 3010, 200, "why", None)
        told += [smaller, *self.said(2000, Usage(2200, 10, 0))]
        self.assertEqual(raw_tokens(entries(*told)), 3010 + 2000 + 5)

    def test_without_counts_it_is_estimated_and_new_instructions_take_the_place_of_old_ones(self) -> None:
        told = [InstructionsSet("i" * 400, (), "h"), *self.said(1000), InstructionsSet("i" * 800, (), "g")]
        self.assertEqual(raw_tokens(entries(*told)), 200 + 1000 + 5)

    def test_whether_the_window_was_exceeded_is_told_by_the_arms_own_window(self) -> None:
        log = entries(InstructionsSet("", (), "h"), *self.said(5000))
        for flags, exceeded in (((), True), (("--context-window=8192",), False)):
            facts = SUITE.inspect(dataclasses.replace(self.case, flags=flags), log).facts
            self.assertEqual(facts["exceeded_window"], exceeded)

    def test_a_server_that_refuses_it_as_too_large_has_a_smaller_window(self) -> None:
        log = entries(*self.said(10), TurnEnded("failed", "context_overflow", "too large"))
        self.assertTrue(SUITE.inspect(self.case, log).facts["exceeded_window"])


class AScriptedRun(HarnessTestCase):
    def test_it_is_compressed_and_the_good_one_passes(self) -> None:
        case = cases(SMALL)[0]
        with unittest.mock.patch.dict(os.environ, environment(self.folder), clear=True):
            record = run_cell(
                Cell(SUITE, SMALL, case, ARMS[0], 0, 1, 60, "good"), self.folder / "out", self.folder / "scratch"
            )
        self.assertEqual((record["why"], record["problem"]), ("", ""))
        self.assertGreater(record["used"]["successes"], 0)
        self.assertTrue(record["facts"]["exceeded_window"])
        (log,) = record["sessions"]
        said = [entry.event for entry in read_session((self.folder / "out" / log).parent)]
        requests = [event.text for event in said if isinstance(event, UserMessageAdded)]
        self.assertEqual(tuple(requests), case.turns)  # with real line breaks
