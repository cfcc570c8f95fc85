import unittest

from gallery.limits import MEGABYTE, Refused, check


class LimitsTest(unittest.TestCase):
    def test_a_photo(self):
        check("photos", "summit.JPG", 9 * MEGABYTE)

    def test_a_film_is_no_photo(self):
        with self.assertRaises(Refused):
            check("photos", "summit.mp4", 1000)

    def test_an_avatar_is_small(self):
        with self.assertRaises(Refused):
            check("avatars", "me.png", 11 * MEGABYTE)
