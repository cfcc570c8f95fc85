import unittest

from rooms.clock import at
from rooms.diary import Diary, Refused


class DiaryTest(unittest.TestCase):
    def test_two_clubs_do_not_meet_in_one_room(self):
        diary = Diary()
        diary.book("Oak", at(9), at(11), "Chess club")
        with self.assertRaises(Refused):
            diary.book("Oak", at(10), at(12), "Choir")
        diary.book("Elm", at(10), at(12), "Choir")

    def test_what_is_left(self):
        diary = Diary()
        diary.book("Oak", at(9), at(11), "Chess club")
        self.assertEqual(diary.free("Oak"), [(at(8), at(9)), (at(11), at(20))])

    def test_the_doors_are_closed_at_night(self):
        with self.assertRaises(Refused):
            Diary().book("Oak", at(19), at(21), "Band")
