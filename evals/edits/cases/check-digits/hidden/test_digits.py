import re
import subprocess
import sys
import unittest

from ean.digits import check_digit, is_valid
from ean.labels import printed


class Digits(unittest.TestCase):
    def test_thirteen_digits(self):
        codes = ("4006381333931", "5901234123457", "9780306406157", "4012345678901", "7350053850019")
        self.assertEqual([check_digit(code[:-1]) for code in codes], [code[-1] for code in codes])

    def test_eight_digits(self):
        codes = ("96385074", "73513537", "55123457")
        self.assertEqual([check_digit(code[:-1]) for code in codes], [code[-1] for code in codes])

    def test_valid_and_not(self):
        told = [is_valid(code) for code in ("4006381333931", "4006381333937", "96385074", "96385071")]
        self.assertEqual(told, [True, False, True, False])

    def test_labels(self):
        self.assertEqual([printed("400638133393"), printed("9638507")], ["4 006381 333931", "9638 5074"])

    def test_other_lengths_are_still_refused(self):
        for number in ("123", "12345678", "12345678901x"):
            with self.subTest(number), self.assertRaises(ValueError):
                check_digit(number)

    def test_the_projects_own_tests_are_there_and_pass(self):
        command = [sys.executable, "-B", "-m", "unittest", "discover", "-s", "tests"]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=10, check=False)
        told = ended.stderr.decode("utf-8", "replace")
        self.assertEqual(ended.returncode, 0, told)
        self.assertGreaterEqual(int(re.search(r"Ran (\d+) test", told).group(1)), 3)
