import unittest

from ean.digits import check_digit, is_valid
from ean.labels import printed


class EanTest(unittest.TestCase):
    def test_jar(self):
        self.assertEqual(check_digit("400638133393"), "7")
        self.assertTrue(is_valid("4006381333937"))

    def test_small_jar(self):
        self.assertEqual(check_digit("9638507"), "4")

    def test_label(self):
        self.assertEqual(printed("400638133393"), "4 006381 333937")
        self.assertEqual(printed("9638507"), "9638 5074")
