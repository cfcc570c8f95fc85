import contextlib
import io
import unittest

from dashboard.config import BadSetting, port
from dashboard.start import main


class Port(unittest.TestCase):
    def test_the_message_names_variable_value_and_what_is_allowed(self):
        for value in ("abc", "80.5", "8O80"):
            with self.subTest(value), self.assertRaises(BadSetting) as caught:
                port({"DASHBOARD_PORT": value})
            for part in ("DASHBOARD_PORT", value, "65535"):
                self.assertIn(part, str(caught.exception))

    def test_numbers_that_are_no_port_are_refused_alike(self):
        for value in ("0", "-1", "65536", "99999999"):
            with self.subTest(value), self.assertRaises(BadSetting) as caught:
                port({"DASHBOARD_PORT": value})
            for part in ("DASHBOARD_PORT", value, "65535"):
                self.assertIn(part, str(caught.exception))

    def test_ports_are_ports(self):
        self.assertEqual([port({"DASHBOARD_PORT": value}) for value in ("1", "8090", "65535")], [1, 8090, 65535])
        self.assertEqual([port({}), port({"DASHBOARD_PORT": ""})], [8080, 8080])

    def test_it_is_said_at_start(self):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(main({"DASHBOARD_PORT": "70000"}), 2)
        self.assertIn("DASHBOARD_PORT", errors.getvalue())
