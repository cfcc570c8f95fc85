import contextlib
import io
import runpy
import unittest
from unittest import mock


def shown(*arguments):
    """Return exit code, printed lines and errors of the command."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with mock.patch("sys.argv", ["recipes", *arguments]), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            runpy.run_module("recipes", run_name="__main__")
        except SystemExit as ended:
            code = ended.code or 0
    return code, out.getvalue().splitlines(), err.getvalue()


class Servings(unittest.TestCase):
    def test_without_the_option_all_is_as_before(self):
        code, rows, _ = shown("show", "pancakes")
        self.assertEqual(code, 0)
        self.assertEqual(rows[:6], ["Pancakes (serves 4)", "", "  250 g flour", "  0.5 l milk", "  3 eggs", "  salt"])

    def test_amounts_are_scaled_and_the_title_says_for_how_many(self):
        code, rows, _ = shown("show", "pancakes", "--servings", "6")
        self.assertEqual(code, 0)
        self.assertEqual(rows[:6], ["Pancakes (serves 6)", "", "  375 g flour", "  0.75 l milk", "  4.5 eggs", "  salt"])

    def test_two_decimals_are_enough_and_zeros_at_the_end_are_none(self):
        _, rows, _ = shown("show", "goulash", "--servings", "4")
        self.assertEqual(rows[2:6], ["  0.8 kg beef", "  0.67 kg onions", "  1.33 bay leaves", "  caraway"])

    def test_large_amounts_are_whole_too(self):
        _, rows, _ = shown("show", "pancakes", "--servings", "20003")
        self.assertEqual(rows[2:5], ["  1250187.5 g flour", "  2500.38 l milk", "  15002.25 eggs"])

    def test_the_steps_stay(self):
        _, rows, _ = shown("show", "pancakes", "--servings", "2")
        self.assertIn("2. Let it rest for 20 minutes.", rows)

    def test_nobody_is_served_is_refused(self):
        for number in ("0", "-2", "2.5", "many"):
            with self.subTest(number):
                code, rows, errors = shown("show", "pancakes", f"--servings={number}")
                self.assertEqual((code, rows), (2, []))
                self.assertTrue(errors.strip())
