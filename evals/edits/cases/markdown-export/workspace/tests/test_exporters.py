import unittest

from sightings.diary import Sighting
from sightings.exporters import export, formats


class ExportersTest(unittest.TestCase):
    def test_csv(self):
        rows = [Sighting("2024-05-01", "Osprey", 2, "over the lake, hunting")]
        wanted = 'Date,Species,Count,Note\n2024-05-01,Osprey,2,"over the lake, hunting"\n'
        self.assertEqual(export(rows, "csv"), wanted)

    def test_formats(self):
        self.assertIn("csv", formats())
