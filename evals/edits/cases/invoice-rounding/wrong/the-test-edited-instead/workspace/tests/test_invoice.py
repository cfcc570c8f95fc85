import unittest

from billing.invoice import Invoice, Line


class InvoiceTest(unittest.TestCase):
    def test_a_repair(self):
        invoice = Invoice("2024-17", [Line("Labour, hours", 1.5, "48.00"), Line("Brake cable", 2, "3.90")])
        self.assertEqual(f"{invoice.net():.2f}", "79.80")
        self.assertEqual(f"{invoice.tax():.2f}", "15.16")
        self.assertIn("94.96", invoice.as_text())

    def test_books_are_taxed_less(self):
        self.assertEqual(f"{Line('Repair manual', 1, '20.00', 'reduced').tax():.2f}", "1.40")

    def test_small_parts(self):
        self.assertEqual(f"{Line('Washer', 1, '1.005').net():.2f}", "1.01")
