import unittest

from billing.invoice import Invoice, Line


def money(amount):
    return f"{amount:.2f}"


class Rounding(unittest.TestCase):
    def test_half_a_cent_of_a_price_goes_up(self):
        for price, wanted in (("1.005", "1.01"), ("2.675", "2.68"), ("0.125", "0.13"), ("1.004", "1.00")):
            with self.subTest(price):
                self.assertEqual(money(Line("part", 1, price).net()), wanted)

    def test_half_a_cent_of_a_product_goes_up(self):
        self.assertEqual(money(Line("oil, litres", 1.1, "1.15").net()), "1.27")

    def test_half_a_cent_of_tax_goes_up(self):
        for price, wanted in (("0.50", "0.10"), ("2.50", "0.48"), ("8.50", "1.62")):
            with self.subTest(price):
                self.assertEqual(money(Line("part", 1, price).tax()), wanted)

    def test_a_credit_note_mirrors_the_invoice(self):
        self.assertEqual(money(Line("part", -1, "1.005").net()), "-1.01")
        self.assertEqual(money(Line("part", -1, "2.50").tax()), "-0.48")

    def test_each_line_is_rounded_before_the_sum(self):
        invoice = Invoice("1", [Line("washer", 1, "1.005"), Line("washer", 1, "1.005"), Line("nut", 1, "0.114")])
        self.assertEqual(money(invoice.net()), "2.13")
        self.assertEqual(money(invoice.tax()), "0.40")
        self.assertEqual(money(invoice.gross()), "2.53")

    def test_the_printed_invoice_shows_it(self):
        text = Invoice("7", [Line("washer", 1, "1.005", "none")]).as_text()
        self.assertIn("1.01", text.splitlines()[1])
        self.assertIn("1.01", text.splitlines()[-1])
