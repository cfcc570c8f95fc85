import unittest

from museum import audit
from museum.report import export, report, visitors

MAY = "2024-05-01: 2 (1 children)\n2024-05-03: 3 (1 children)\ntotal: 5 (2 children)"


class Report(unittest.TestCase):
    def test_days_are_in_order_with_the_children(self):
        self.assertEqual(report(visitors()), MAY)

    def test_eighteen_is_grown_up(self):
        rows = [("2024-06-02", 18), ("2024-06-02", 17), ("2024-06-02", 0)]
        self.assertEqual(report(rows), "2024-06-02: 3 (2 children)\ntotal: 3 (2 children)")

    def test_a_day_without_children_says_nothing_of_them(self):
        rows = [("2024-06-03", 30), ("2024-06-02", 9)]
        self.assertEqual(report(rows), "2024-06-02: 1 (1 children)\n2024-06-03: 1\ntotal: 2 (1 children)")

    def test_nobody_came(self):
        self.assertEqual(report([]), "total: 0")

    def test_the_director_gets_it_and_a_guest_does_not(self):
        self.assertEqual(export("Ms Ott", "director"), MAY)
        self.assertIn(("Ms Ott", "report"), audit.LOG)
        for role in ("guest", "desk"):
            with self.subTest(role), self.assertRaises(PermissionError):
                export("somebody", role)
