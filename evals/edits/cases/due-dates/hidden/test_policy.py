import unittest
from datetime import date

from lending.due import due_date


class Policy(unittest.TestCase):
    def test_the_last_day_of_a_short_month(self):
        self.assertEqual(due_date(date(2022, 1, 31), "machine"), date(2022, 2, 28))
        self.assertEqual(due_date(date(2024, 1, 30), "machine"), date(2024, 2, 29))

    def test_over_the_end_of_the_year(self):
        self.assertEqual(due_date(date(2024, 12, 31), "machine"), date(2025, 1, 31))

    def test_a_sunday_moves_to_monday(self):
        self.assertEqual(due_date(date(2024, 5, 5), "hand"), date(2024, 5, 20))

    def test_two_weeks_for_hand_tools(self):
        self.assertEqual(due_date(date(2024, 1, 31), "hand"), date(2024, 2, 14))
