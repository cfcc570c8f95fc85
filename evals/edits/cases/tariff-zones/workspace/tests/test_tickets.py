import unittest

from network.stations import STATIONS, zone_of
from network.tickets import price


class TicketsTest(unittest.TestCase):
    def test_within_one_zone(self):
        self.assertEqual(price("KRS-1471", "KRS-1471"), 190)

    def test_every_station_has_a_zone(self):
        self.assertEqual({zone_of(code) for code in STATIONS}, set("ABCDE"))
