"""Run hidden tests on a workspace, where nothing in the workspace can stand in for them.

Started by the grader as `python -I -S -B run_hidden.py HIDDEN WORKSPACE RESULTS`: without site-packages, the user's
settings and the current folder on the path. The workspace comes last on it, so that a `unittest.py` in there shadows
nothing; the test modules are loaded by their place and not by their name. Of tests that pass, and of no others, the
names go to RESULTS, at the very end: a process that ends early has passed nothing.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import unittest
from pathlib import Path


class Passed(unittest.TestResult):
    """Collects the names of the tests that pass, all of their sub-tests included."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.names.append(test.id().rsplit(".", 1)[-1])


def main(hidden: str, workspace: str, results: str) -> None:
    """Run all tests of a folder; a module that cannot be loaded passes none."""
    sys.path.append(workspace)
    os.chdir(workspace)
    passed = Passed()
    for path in sorted(Path(hidden).glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(f"hidden_{path.stem}", path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as error:  # whatever the workspace's code does when it is imported
            print(f"{path.name} could not be loaded: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        unittest.defaultTestLoader.loadTestsFromModule(module).run(passed)
    Path(results).write_text(json.dumps(passed.names), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
