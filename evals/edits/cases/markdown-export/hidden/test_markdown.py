import re
import unittest
from pathlib import Path

from sightings.diary import Sighting
from sightings.exporters import export, formats

ROWS = [
    Sighting("2024-05-01", "Osprey", 2, "over the lake"),
    Sighting("2024-05-02", "Bluethroat", 1, "ring red|white|green"),
    Sighting("2024-05-02", "Crane", 40, "in the field\nand in the air"),
]


def table(text):
    """Return the cells of a Markdown table, row by row, as they are written but for blanks around."""
    rows = [line.strip() for line in text.strip().splitlines()]
    inner = [re.sub(r"^\||(?<!\\)\|$", "", row) for row in rows]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)] for row in inner]


class Markdown(unittest.TestCase):
    def test_it_is_a_table_with_the_header_of_the_csv(self):
        header, line, first = table(export(ROWS[:1], "markdown"))
        self.assertEqual(header, ["Date", "Species", "Count", "Note"])
        self.assertTrue(all(re.fullmatch(r":?-{3,}:?", cell) for cell in line), line)
        self.assertEqual(len(line), 4)
        self.assertEqual(first, ["2024-05-01", "Osprey", "2", "over the lake"])

    def test_a_bar_in_a_note_splits_no_cell(self):
        self.assertEqual(table(export(ROWS, "markdown"))[3], ["2024-05-02", "Bluethroat", "1", r"ring red\|white\|green"])

    def test_a_line_break_in_a_note_is_a_blank(self):
        self.assertEqual(table(export(ROWS, "markdown"))[4], ["2024-05-02", "Crane", "40", "in the field and in the air"])

    def test_an_empty_diary_is_a_header(self):
        self.assertEqual(len(table(export([], "markdown"))), 2)

    def test_it_is_among_the_formats(self):
        self.assertEqual(formats(), ["csv", "markdown"])

    def test_it_has_a_file_of_its_own(self):
        self.assertTrue(Path("sightings/exporters/markdown.py").is_file())

    def test_csv_stays_as_it_is(self):
        self.assertEqual(export(ROWS[:1], "csv"), "Date,Species,Count,Note\n2024-05-01,Osprey,2,over the lake\n")

    def test_an_unknown_format_is_a_key_error(self):
        with self.assertRaises(KeyError):
            export(ROWS, "xml")
