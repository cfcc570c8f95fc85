import unittest

from catalogue.paging import page, page_count


class PagingTest(unittest.TestCase):
    def test_two_full_pages(self):
        self.assertEqual(page_count(list(range(40)), 20), 2)
        self.assertEqual(page(list(range(40)), 2), list(range(20, 40)))

    def test_there_is_no_page_zero(self):
        with self.assertRaises(ValueError):
            page([], 0)
