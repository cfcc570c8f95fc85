import unittest

from ean.digits import check_digit, is_valid
from ean.labels import printed


class EanTest(unittest.TestCase):
    def test_jar(self):
        self.assertEqual(check_digit("400638133393"), "1")
        self.assertTrue(is_valid("4006381333931"))

    def test_small_jar(self):
        self.assertEqual(check_digit("9638507"), "4")

    def test_label(self):
        self.assertEqual(printed("400638133393"), "4 006381 333931")
        self.assertEqual(printed("9638507"), "9638 5074")
