"""Run every test in random order, with the full counts of generated input: `python -m tests.long`.

--seed N   the order, and the generated input, of an earlier run
--sample   the counts of the usual run: only the order is random
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path


def every_test(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from every_test(test)
        else:
            yield test


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.long", description="Run every test in random order.")
    parser.add_argument("--seed", type=int, help="the seed of an earlier run (default: a new one)")
    parser.add_argument("--sample", action="store_true", help="without the long counts")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(100_000) if options.seed is None else options.seed
    os.environ.pop("MINI_AGENT_LONG_TESTS", None)
    if not options.sample:
        os.environ["MINI_AGENT_LONG_TESTS"] = "1"  # before any test is loaded
        os.environ["MINI_AGENT_TEST_SEED"] = str(seed)
    root = Path(__file__).resolve().parent.parent
    tests = list(every_test(unittest.defaultTestLoader.discover(str(root / "tests"), top_level_dir=str(root))))
    random.Random(seed).shuffle(tests)
    again = f"python -m tests.long --seed {seed}{' --sample' if options.sample else ''}"
    print(f"{len(tests)} tests, seed {seed}; the same again: {again}", file=sys.stderr)
    outcome = unittest.TextTestRunner().run(unittest.TestSuite(tests))
    if not outcome.wasSuccessful():
        print(f"the same again: {again}", file=sys.stderr)
    return 0 if outcome.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
