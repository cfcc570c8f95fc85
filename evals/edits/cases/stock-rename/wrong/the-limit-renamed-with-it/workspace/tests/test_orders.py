import unittest
from unittest import mock

from warehouse.orders import to_order
from warehouse.stock import quantity_on_hand


class OrdersTest(unittest.TestCase):
    def test_an_empty_shelf_is_filled(self):
        self.assertEqual(quantity_on_hand("P-300"), 0)
        self.assertEqual(to_order("P-300"), 25)

    def test_a_shelf_half_full_waits(self):
        with mock.patch("warehouse.stock.quantity_on_hand", return_value=5):
            self.assertEqual(to_order("P-200"), 0)
