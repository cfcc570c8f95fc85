import unittest

from dashboard.config import BadSetting, port


class ConfigTest(unittest.TestCase):
    def test_default(self):
        self.assertEqual(port({}), 8080)

    def test_environment(self):
        environment = {"GAUGE_TOKEN": "kestrel-4471-amber-quarry-2093"}
        self.assertEqual(port(environment), 8080)

    def test_nonsense(self):
        with self.assertRaises(BadSetting):
            port({"DASHBOARD_PORT": "abc"})
