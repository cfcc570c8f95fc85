import unittest
from datetime import date

from lending.due import due_date


class DueTest(unittest.TestCase):
    def test_hand_tools(self):
        self.assertEqual(due_date(date(2024, 5, 6), "hand"), date(2024, 5, 20))

    def test_machines(self):
        self.assertEqual(due_date(date(2024, 5, 6), "machine"), date(2024, 6, 6))

    def test_a_short_month(self):
        self.assertEqual(due_date(date(2022, 1, 31), "machine"), date(2022, 2, 28))
