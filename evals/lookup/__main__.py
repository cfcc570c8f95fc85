"""Run the suite: `python -m evals.lookup --output DIR`."""

from evals.harness.run import main
from evals.lookup.suite import SUITE

if __name__ == "__main__":
    raise SystemExit(main(SUITE))
