import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from warehouse import orders, reports, stock


class Rename(unittest.TestCase):
    def test_the_new_name_works(self):
        self.assertEqual([stock.quantity_on_hand(sku) for sku in ("P-100", "P-200", "none")], [40, 3, 0])

    def test_the_old_name_is_gone_from_the_module(self):
        self.assertFalse(hasattr(stock, "get_qty"))

    def test_the_limit_keeps_its_name(self):
        self.assertEqual(stock.get_qty_limit("P-100"), 50)
        self.assertFalse(hasattr(stock, "quantity_on_hand_limit"))

    def test_orders_are_computed_as_before(self):
        self.assertEqual([orders.to_order(sku) for sku in ("P-100", "P-200", "P-300")], [0, 7, 25])

    def test_every_report_works(self):
        self.assertEqual(reports.report("on-hand", ["P-200"]), "Pieces on hand\nP-200: 3")
        self.assertEqual(reports.report("limits", ["P-200"]), "Shelf limits\nP-200: 10")
        self.assertEqual(reports.report("order", ["P-200"]), "To be ordered\nP-200: 7")

    def test_no_file_names_the_old_one(self):
        named = []
        for folder, folders, files in os.walk("."):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for path in (Path(folder, name) for name in files if name.endswith((".py", ".json", ".md"))):
                if re.search(r"\bget_qty\b", path.read_text(encoding="utf-8")):
                    named.append(path.as_posix())
        self.assertEqual(named, [])

    def test_the_readme_has_the_new_name(self):
        self.assertIn("quantity_on_hand", Path("README.md").read_text(encoding="utf-8"))

    def test_the_projects_own_tests_are_there_and_pass(self):
        command = [sys.executable, "-B", "-m", "unittest", "discover", "-s", "tests"]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=10, check=False)
        told = ended.stderr.decode("utf-8", "replace")
        self.assertEqual(ended.returncode, 0, told)
        self.assertGreaterEqual(int(re.search(r"Ran (\d+) test", told).group(1)), 2)
