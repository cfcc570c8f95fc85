import unittest

from rooms.clock import at
from rooms.diary import Diary, Refused


def diary_with_chess():
    diary = Diary()
    diary.book("Oak", at(10), at(11), "Chess club")
    return diary


class Borders(unittest.TestCase):
    def test_a_booking_may_begin_when_another_ends(self):
        diary_with_chess().book("Oak", at(11), at(12), "Choir")

    def test_a_booking_may_end_when_another_begins(self):
        diary_with_chess().book("Oak", at(9), at(10), "Choir")

    def test_one_fits_exactly_between_two(self):
        diary = diary_with_chess()
        diary.book("Oak", at(12), at(13), "Band")
        diary.book("Oak", at(11), at(12), "Choir")
        self.assertEqual(diary.free("Oak"), [(at(8), at(10)), (at(13), at(20))])

    def test_a_minute_in_common_is_too_much(self):
        for start, end in ((at(9), at(10, 1)), (at(10, 59), at(12)), (at(10, 15), at(10, 30)), (at(9), at(12)), (at(10), at(11))):
            with self.subTest(start=start, end=end), self.assertRaises(Refused):
                diary_with_chess().book("Oak", start, end, "Choir")

    def test_no_free_slot_is_empty(self):
        diary = Diary()
        diary.book("Oak", at(8), at(9), "Yoga")
        diary.book("Oak", at(18), at(20), "Band")
        self.assertEqual(diary.free("Oak"), [(at(9), at(18))])
        diary.book("Oak", at(9), at(18), "Flea market")
        self.assertEqual(diary.free("Oak"), [])

    def test_what_was_refused_before_still_is(self):
        for start, end in ((at(7), at(9)), (at(19), at(20, 1)), (at(10), at(10)), (at(12), at(11))):
            with self.subTest(start=start, end=end), self.assertRaises(Refused):
                Diary().book("Oak", start, end, "Choir")
