import unittest

from network.stations import OLD_TARIFF, STATIONS, old_zone_of, zone_of
from network.tickets import price

OTHERS = {
@@STATIONS 1-1416@@
@@STATIONS 1418-1470@@
    "KRS-1471": ("Altmark Werft Süd", "B", 18.1),
@@STATIONS 1472-2640@@
}


class Zones(unittest.TestCase):
    def test_the_shipyard_is_in_zone_d(self):
        self.assertEqual(zone_of("KRS-1417"), "D")
        self.assertEqual(STATIONS["KRS-1417"][::2], ("Altmark Werft", 17.4))

    def test_all_other_stations_are_as_they_were(self):
        self.assertEqual({code: row for code, row in STATIONS.items() if code != "KRS-1417"}, OTHERS)

    def test_the_old_tariff_stays(self):
        self.assertEqual(OLD_TARIFF["KRS-1417"], ("Altmark Werft", "B", 17.4))
        self.assertEqual(len(OLD_TARIFF), 61)
        self.assertEqual(old_zone_of("KRS-1417"), "B")
        self.assertEqual(old_zone_of("KRS-1471"), "B")

    def test_codes_are_found_as_people_type_them(self):
        self.assertEqual([zone_of(code) for code in ("krs-1417", " KRS-1417 ", "Krs-1471\n")], ["D", "D", "B"])

    def test_an_unknown_code_is_still_a_key_error(self):
        for code in ("KRS-9999", ""):
            with self.subTest(code), self.assertRaises(KeyError):
                zone_of(code)

    def test_tickets_cost_what_the_zone_says(self):
        self.assertEqual(price("KRS-1417", "krs-1471"), 340)
