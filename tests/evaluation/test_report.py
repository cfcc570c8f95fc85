from __future__ import annotations

import unittest
import xml.dom.minidom

from evals.harness.catalog import UsageError
from evals.harness.chart import draw_pairs
from evals.harness.report import write_report
from evals.harness.results import read_results
from evals.harness.statistics import pair_up
from tests.evaluation.harness_case import HarnessTestCase
from tests.evaluation.recorded import failed, record, write


def table(text: str, title: str) -> dict[str, list[str]]:
    """Return the rows of the table under a heading, by their first cell."""
    part = text.split(f"\n## {title}")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")]
    return {row[0]: row[1:] for row in rows}


class Reports(HarnessTestCase):
    def test_shards_are_joined_and_a_folder_named_twice_counts_once(self) -> None:
        one = write(self.folder / "1", [record("a", "new", 1), failed("a", "old", 1)])
        two = write(self.folder / "2", [record("b", "new", 1), failed("b", "old", 1)])
        text = write_report([one, two, one / ".." / "1"], None)
        rows = table(text, "Cases")
        self.assertEqual([rows[name] for name in "ab"], [["1 of 1", "0 of 1 (1 wrong)"]] * 2)

    def test_the_same_cells_of_two_runs_are_repeats(self) -> None:
        cells = [record("a", "new", 1), record("a", "new", 2), record("a", "old", 1), record("a", "old", 2)]
        folders = [write(self.folder / name, cells) for name in "12"]
        self.assertEqual(table(write_report(folders, None), "Cases")["a"], ["4 of 4", "4 of 4"])
        self.assertIn("4 both passed", write_report(folders, None))

    def test_what_an_arm_does_not_tell_stays_empty(self) -> None:
        unknown = dict.fromkeys(["tokens", "requests", "rounds", "tool_errors", "compressions", "characters_saved"])
        text = write_report([write(self.folder, [record("a", "new", 1), record("a", "old", 1, **unknown)])], None)
        self.assertEqual(table(text, "Arms")["old"], ["1", "1", "1.00", *[""] * 9, "5.00"])
        self.assertIn("nothing to compare", text)

    def test_why_cells_failed_and_which_errors_tools_told(self) -> None:
        cells = [failed("a", "new", 1, "patch form", tool_errors={"no_match": 2}), failed("a", "old", 1, "server")]
        text = write_report([write(self.folder, cells)], None)
        self.assertEqual(table(text, "Why cells failed")["patch form"], ["1", "0"])
        self.assertEqual(table(text, "Errors of tools")["no_match"], ["2", "0"])
        self.assertIn("There is no pair to compare", text)
        self.assertIn("1 cells are in no pair", text)

    def test_what_suites_read_from_logs_is_summed_up(self) -> None:
        cells = [record("a", "new", at, facts={"over": at == 1, "size": at * 10, "word": "x"}) for at in (1, 2)]
        text = write_report([write(self.folder, cells)], None)
        rows = table(text, "What the logs tell")
        self.assertEqual((rows["over"], rows["size"], rows["word"]), (["1 of 2"], ["15.00"], ["x: 2"]))

    def test_a_torn_last_line_is_left_out_and_damage_before_it_is_told(self) -> None:
        self.assertEqual(len(read_results(write(self.folder / "1", [record("a", "new", 1)], torn='{"v": 1'))), 1)
        write(self.folder / "2", [record("a", "new", 1)], torn='{"v": 1\n{}\n')
        with self.assertRaisesRegex(UsageError, "line 2"):
            read_results(self.folder / "2")

    def test_of_a_cell_that_was_run_again_the_last_line_counts(self) -> None:
        cells = [failed("a", "new", 1, "server"), record("a", "new", 1)]
        self.assertEqual([cell["passed"] for cell in read_results(write(self.folder, cells)).values()], [True])


class Charts(unittest.TestCase):
    def test_each_pair_is_a_circle_and_a_square_and_a_line_where_both_are_known(self) -> None:
        cells = [
            record("<a>", "new", 1),
            record("<a>", "old", 1),
            record("b", "new", 1),
            record("b", "old", 1, tokens=None),
        ]
        pairs, _ = pair_up(cells, "new", "old")
        chart = xml.dom.minidom.parseString(draw_pairs(pairs, "new & old", "old").encode())
        groups = chart.getElementsByTagName("g")
        found = [[len(group.getElementsByTagName(name)) for name in ("circle", "rect", "line")] for group in groups]
        self.assertEqual(found, [[1, 1, 1], [1, 1, 0]])
