import unittest

from catalogue.paging import page, page_count
from catalogue.site import listing


def books(number):
    return [f"book {index}" for index in range(1, number + 1)]


class Pages(unittest.TestCase):
    def test_a_page_begun_is_a_page(self):
        self.assertEqual([page_count(books(number), 20) for number in (1, 19, 20, 21, 41, 60)], [1, 1, 1, 2, 3, 3])

    def test_an_empty_catalogue_is_one_empty_page(self):
        self.assertEqual(page_count([], 20), 1)
        self.assertEqual(page([], 1), [])
        self.assertEqual(listing([], 1), "page 1 of 1")

    def test_the_last_book_is_shown(self):
        self.assertEqual(listing(books(41), 3), "page 3 of 3\nbook 41")

    def test_every_book_is_on_one_page(self):
        for number in (1, 20, 40, 41):
            shown = [book for index in range(1, page_count(books(number), 20) + 1) for book in page(books(number), index)]
            self.assertEqual(shown, books(number))

    def test_there_is_no_page_before_the_first_nor_after_the_last(self):
        for number in (-1, 0, 4, 100):
            with self.subTest(number), self.assertRaises(ValueError):
                page(books(41), number)
        with self.assertRaises(ValueError):
            page(books(40), 3)
