import unittest

from ferry.fares import FareError, fare


class FareTest(unittest.TestCase):
    def test_a_child_pays_less(self):
        self.assertLess(fare(8), fare(30))

    def test_nobody_is_younger_than_nothing(self):
        with self.assertRaises(FareError):
            fare(-1)
