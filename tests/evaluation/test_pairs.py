from __future__ import annotations

import unittest

from evals.harness.drawn import MOST_DIFFERENT_LINES, Draw
from evals.harness.pairs import Pair, grade_pairs, proofs_of

PAIRS = (Pair("begin", "14:37:22"), Pair("pool_size", "5412", "6891"), Pair("change", "K-4821", "M-7033"))

RIGHT = (
    "begin: 14:37:22\npool_size: 5412\nchange: K-4821",
    "- **Begin**: 14:37:22\n- **Pool size**: `5,412`.\n- **Change**: k-4821",
    "begin: the first change of state was at 14:37:22\npool-size = 5 412\nchange → K-4821, as the review has it",
    '{"begin": "14:37:22", "pool_size": 5412, "change": "K-4821"}',
    "1. begin\n   14:37:22\n2. pool_size\n   5412\n3. change\n   K-4821",
    "| change | K-4821 |\n|---|---|\n| pool_size | 5,412 |\n| begin | 14:37:22 |",
    "The begin was 14:37:22, pool_size is 5412 and the change is K-4821.",
    "Here are begin, pool_size and change:\nbegin: 14:37:22; pool_size: 5412; change: K-4821",
)
WRONG = {  # what is said → what the grade names
    "": "begin: 14:37:22",
    "begin: 14:37:22\npool_size: 54120\nchange: K-4821": "pool_size: 5412",
    "begin: 14:37:22\npool_size: 15412\nchange: K-4821": "pool_size: 5412",
    "begin: 14:37:22\npool_size: 5412\nchange: AK-4821": "change: K-4821",
    "begin: 14:37:22\nspool_size: 5412\nchange: K-4821": "pool_size: 5412",
    "begin: 14:37:22\npool_size: 5412 (before: 6,891)\nchange: K-4821": "pool_size: 6891 (outdated)",
    "It was 6891 at first.\nbegin: 14:37:22\npool_size: 5412\nchange: K-4821": "pool_size: 6891 (outdated)",
    "begin: 14:37:22\npool_size: 5412 or 14:37:22\nchange: K-4821": "pool_size: 14:37:22",
    "begin: 14:37:22\npool_size: K-4821\nchange: 5412": "change: K-4821",
    "14:37:22, 5412, K-4821": "change: K-4821",
}


class SayingPairs(unittest.TestCase):
    def test_however_it_is_written_down_a_right_answer_passes(self) -> None:
        for text in RIGHT:
            with self.subTest(text):
                self.assertEqual(grade_pairs(text, PAIRS).missing + grade_pairs(text, PAIRS).forbidden, ())
                self.assertTrue(grade_pairs(text, PAIRS).passed)
                self.assertEqual(grade_pairs(text, PAIRS).score, 1)

    def test_what_is_missing_outdated_or_said_of_another_label_is_named(self) -> None:
        for text, named in WRONG.items():
            grade = grade_pairs(text, PAIRS)
            with self.subTest(text):
                self.assertFalse(grade.passed)
                self.assertIn(named, grade.missing + grade.forbidden)

    def test_the_score_is_the_share_of_the_pairs_that_are_right(self) -> None:
        self.assertAlmostEqual(grade_pairs("begin: 14:37:22\nchange: K-4821", PAIRS).score, 2 / 3)
        self.assertAlmostEqual(grade_pairs("begin: 14:37:22\nchange: K-4821, not M-7033", PAIRS).score, 1 / 3)

    def test_a_value_that_went_to_another_label_is_outdated_for_its_first_one_only(self) -> None:
        pairs = (Pair("Molun", "K-4821", "M-7033"), Pair("Vextor", "M-7033", "R-5519"))
        self.assertTrue(grade_pairs("Molun: K-4821\nVextor: M-7033", pairs).passed)
        self.assertEqual(grade_pairs("Molun: M-7033\nVextor: M-7033", pairs).forbidden, ("Molun: M-7033",))

    def test_the_proofs_that_are_made_of_pairs_are_judged_as_they_say(self) -> None:
        for proof in proofs_of(PAIRS, lambda text: {"answer": text}):
            with self.subTest(proof.name):
                self.assertEqual(grade_pairs(proof.answer, PAIRS).passed, proof.passes)


class Drawing(unittest.TestCase):
    def test_the_same_seed_draws_the_same_and_another_one_does_not(self) -> None:
        def drawn(seed: str) -> list[str]:
            draw = Draw(seed)
            return [draw.name(), draw.code(), draw.price(), draw.time(), draw.digits(), *draw.noise(500)]

        self.assertEqual(drawn("a"), drawn("a"))
        self.assertFalse(set(drawn("a")) & set(drawn("b")))

    def test_nothing_is_drawn_twice_and_no_noise_holds_it(self) -> None:
        draw = Draw("seed")
        facts = [make() for _ in range(200) for make in (draw.name, draw.code, draw.price, draw.digits)]
        self.assertEqual(len(set(facts)), len(facts))
        noise = "\n".join(draw.noise(20_000)).lower()
        self.assertGreaterEqual(len(noise), 80_000 - 1)
        self.assertEqual([fact for fact in facts if fact.lower() in noise], [])
        self.assertLessEqual(len(set(noise.splitlines())), MOST_DIFFERENT_LINES)
