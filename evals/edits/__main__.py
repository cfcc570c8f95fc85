"""Run the suite: `python -m evals.edits --output DIR`."""

from evals.edits.suite import SUITE
from evals.harness.run import main

if __name__ == "__main__":
    raise SystemExit(main(SUITE))
