import unittest
from pathlib import Path

from labels.label import label
from labels.price import base_price_text, price_text


class Cents(unittest.TestCase):
    def test_under_a_euro_the_price_is_in_cents(self):
        self.assertEqual([price_text(cents) for cents in (85, 99, 5)], ["85 ct", "99 ct", "5 ct"])

    def test_from_a_euro_on_it_is_as_before(self):
        self.assertEqual([price_text(cents) for cents in (100, 101, 249, 12000)], ["1,00 €", "1,01 €", "2,49 €", "120,00 €"])

    def test_the_price_of_a_kilogram_likewise(self):
        self.assertEqual(base_price_text(40, 500), "80 ct/kg")
        self.assertEqual(base_price_text(50, 500), "1,00 €/kg")
        self.assertEqual(base_price_text(249, 250), "9,96 €/kg")
        self.assertEqual(base_price_text(120, 0), "")

    def test_the_label_shows_it(self):
        self.assertEqual(label({"name": "Turnips", "cents": 85, "grams": 1000}), ["Turnips", "85 ct", "85 ct/kg"])

    def test_every_line_still_ends_as_on_windows(self):
        for name in ("price.py", "label.py"):
            with self.subTest(name):
                content = Path("labels", name).read_bytes()
                self.assertGreater(content.count(b"\r\n"), 5)
                self.assertEqual(content.count(b"\r\n"), content.count(b"\n"))
                self.assertEqual(content.count(b"\r\n"), content.count(b"\r"))
