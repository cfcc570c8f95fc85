import unittest

from museum.report import report


class ReportTest(unittest.TestCase):
    def test_a_day(self):
        self.assertIn("total: 2", report([("2024-05-01", 40), ("2024-05-01", 41)]))
