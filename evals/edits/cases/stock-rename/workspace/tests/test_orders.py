import unittest
from unittest import mock

from warehouse.orders import to_order
from warehouse.stock import get_qty


class OrdersTest(unittest.TestCase):
    def test_an_empty_shelf_is_filled(self):
        self.assertEqual(get_qty("P-300"), 0)
        self.assertEqual(to_order("P-300"), 25)

    def test_a_shelf_half_full_waits(self):
        with mock.patch("warehouse.stock.get_qty", return_value=5):
            self.assertEqual(to_order("P-200"), 0)
