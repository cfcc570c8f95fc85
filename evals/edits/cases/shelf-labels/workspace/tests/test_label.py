import unittest

from labels.label import label


class LabelTest(unittest.TestCase):
    def test_cheese(self):
        self.assertEqual(label({"name": "Mountain cheese", "cents": 249, "grams": 250}), ["Mountain cheese", "2,49 €", "9,96 €/kg"])

    def test_a_postcard_is_not_weighed(self):
        self.assertEqual(label({"name": "Postcard", "cents": 120, "grams": 0})[2], "")
