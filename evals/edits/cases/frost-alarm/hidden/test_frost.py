import json
import unittest
from pathlib import Path

from greenhouse.alarm import alarms, is_frost, load_settings
from greenhouse.reading import Reading


class Frost(unittest.TestCase):
    def test_it_rings_below_two_degrees(self):
        lines = Path("samples/night.csv").read_text(encoding="utf-8").splitlines()
        told = alarms(lines, load_settings())
        self.assertEqual(told, ["03:30 north: 1.5 °C", "03:40 north: 0.4 °C", "03:50 north: -1.2 °C"])

    def test_at_the_limit_it_is_quiet(self):
        self.assertFalse(is_frost(Reading("1:00,north,20"), {"frost_below": 2.0}))
        self.assertTrue(is_frost(Reading("1:00,north,19"), {"frost_below": 2.0}))

    def test_the_limit_is_in_degrees_whatever_it_is(self):
        self.assertTrue(is_frost(Reading("1:00,north,44"), {"frost_below": 4.5}))
        self.assertFalse(is_frost(Reading("1:00,north,-5"), {"frost_below": -1}))

    def test_a_reading_is_tenths_of_a_degree(self):
        self.assertEqual(Reading("1:00,north,213").celsius, 21.3)

    def test_the_growers_settings_are_theirs(self):
        settings = json.loads(Path("settings.json").read_text(encoding="utf-8"))
        self.assertEqual(settings, {"frost_below": 2.0, "thermometers": ["north", "south"]})
