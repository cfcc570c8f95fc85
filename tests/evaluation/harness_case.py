"""The harness for tests: in this process or as one of its own, with settings of nobody's but the test's."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable
from unittest import mock

from tests import COMPILED

REPOSITORY = Path(__file__).resolve().parents[2]


def environment(home: Path) -> dict[str, str]:
    """Return the whole environment of a run, and so of its agents."""
    return {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONNOUSERSITE": "1", **COMPILED}


class HarnessTestCase(unittest.TestCase):
    folder: Path

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()

    def run_here(self, main: Callable[[list[str]], int], *arguments: object) -> tuple[int, str, str]:
        """Run a main function with arguments; return its code, and what it wrote on both outputs."""
        return run_here(self.folder, main, *arguments)


def run_here(home: Path, main: Callable[[list[str]], int], *arguments: object) -> tuple[int, str, str]:
    """Run a main function with arguments; return its code, and what it wrote on both outputs."""
    out, err = io.StringIO(), io.StringIO()
    nobody = mock.patch.object(sys, "stdin", io.StringIO())
    variables = mock.patch.dict(os.environ, environment(home), clear=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), nobody, variables:
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as leaving:
            code = int(leaving.code or 0)
    return code, out.getvalue(), err.getvalue()


def records(output: Path) -> list[dict[str, Any]]:
    """Return the lines of a run's results."""
    return [json.loads(line) for line in (output / "results.jsonl").read_text(encoding="utf-8").splitlines()]
