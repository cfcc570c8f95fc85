import unittest

from greenhouse.alarm import alarms
from greenhouse.reading import Reading


class AlarmTest(unittest.TestCase):
    def test_deep_frost_rings(self):
        self.assertEqual(alarms(["03:50,north,-12"], {"frost_below": 2.0}), ["03:50 north: -0.1 °C"])

    def test_a_mild_night_is_quiet(self):
        self.assertEqual(alarms(["04:00,south,48"], {"frost_below": 2.0}), [])

    def test_degrees(self):
        self.assertEqual(Reading("03:10,north,31").celsius, 0.31)
