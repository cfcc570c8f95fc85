import unittest

from parcel.postage import CannotBeSent, postage_cents


class PostageTest(unittest.TestCase):
    def test_a_light_parcel_costs_what_the_first_band_says(self) -> None:
        self.assertEqual(postage_cents(1, 120), 395)

    def test_a_parcel_of_exactly_2000_grams_belongs_to_the_band_up_to_2000(self) -> None:
        self.assertEqual(postage_cents(1, 2000), 595)

    def test_one_gram_more_is_the_next_band(self) -> None:
        self.assertEqual(postage_cents(1, 2001), 640)

    def test_the_heaviest_parcel_on_the_list_is_taken(self) -> None:
        self.assertEqual(postage_cents(3, 31500), 3295)

    def test_a_heavier_one_is_refused(self) -> None:
        with self.assertRaises(CannotBeSent):
            postage_cents(3, 31501)

    def test_an_unknown_zone_is_refused(self) -> None:
        with self.assertRaises(CannotBeSent):
            postage_cents(99, 500)


if __name__ == "__main__":
    unittest.main()
