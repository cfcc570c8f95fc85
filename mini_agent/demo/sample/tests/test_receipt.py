import unittest

from parcel.receipt import format_cents, receipt


class ReceiptTest(unittest.TestCase):
    def test_cents_have_two_digits(self) -> None:
        self.assertEqual(format_cents(1205), "12.05")

    def test_a_receipt_names_zone_weight_and_price(self) -> None:
        text = receipt(1, 120)
        self.assertIn("120 g, zone 1", text)
        self.assertIn("Postage: 3.95", text)


if __name__ == "__main__":
    unittest.main()
