import contextlib
import io
import os
import re
import runpy
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from newsletter.message import message


def run(*options):
    """Return exit code, output and errors of the command, run on an issue of two paragraphs."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with tempfile.TemporaryDirectory() as folder:
        issue = Path(folder, "issue.md")
        issue.write_text("We sing.\n\nCome.", encoding="utf-8")
        with mock.patch("sys.argv", ["newsletter", str(issue), *options]), contextlib.redirect_stdout(out):
            with contextlib.redirect_stderr(err):
                try:
                    runpy.run_module("newsletter", run_name="__main__")
                except SystemExit as ended:
                    code = ended.code or 0
    return code, out.getvalue(), err.getvalue()


class Option(unittest.TestCase):
    def test_the_option_is_unknown(self):
        code, _, errors = run("--subject", "May", "--legacy-html")
        self.assertEqual(code, 2)
        self.assertIn("unrecognized arguments", errors)

    def test_mails_are_as_before(self):
        wanted = "From: choir@example.org\nSubject: May\nContent-Type: text/html; charset=utf-8\n\n<p>We sing.</p>\n<p>Come.</p>"
        self.assertEqual(message("May", "We sing.\n\nCome."), wanted)
        self.assertEqual(run("--subject", "May")[1].splitlines(), wanted.splitlines())

    def test_nothing_is_left_of_it(self):
        left = []
        for folder, folders, files in os.walk("."):
            folders[:] = [name for name in folders if not name.startswith(".") and name != "tests"]
            for path in (Path(folder, name) for name in files if name.endswith((".py", ".md"))):
                if re.search("legacy|<table|<font", path.read_text(encoding="utf-8"), re.IGNORECASE):
                    left.append(path.as_posix())
        self.assertEqual(left, [])

    def test_the_projects_own_tests_are_there_and_pass(self):
        command = [sys.executable, "-B", "-m", "unittest", "discover", "-s", "tests"]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=10, check=False)
        told = ended.stderr.decode("utf-8", "replace")
        self.assertEqual(ended.returncode, 0, told)
        self.assertGreaterEqual(int(re.search(r"Ran (\d+) test", told).group(1)), 1)
