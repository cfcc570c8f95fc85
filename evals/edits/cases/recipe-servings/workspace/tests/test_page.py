import unittest

from recipes.book import recipe
from recipes.page import page


class PageTest(unittest.TestCase):
    def test_pancakes(self):
        rows = page(recipe("pancakes")).splitlines()
        self.assertEqual(rows[0], "Pancakes (serves 4)")
        self.assertEqual(rows[2:6], ["  250 g flour", "  0.5 l milk", "  3 eggs", "  salt"])
