import unittest

from fares.rules import single_fare
from fares.transfer import notice, trip_fares


class FaresTest(unittest.TestCase):
    def test_起步价(self):
        self.assertEqual(single_fare(8, "成人", False), 200)

    def test_里程(self):
        self.assertEqual(single_fare(16, "学生", False), 150)

    def test_换乘(self):
        self.assertEqual(trip_fares([(480, 5, "成人", True), (510, 5, "成人", True)]), [200, 100])
        self.assertEqual(notice(510, 480), "换乘优惠")
