"""Run the suite: `python -m evals.context_retention --output DIR`."""

from evals.context_retention.suite import SUITE
from evals.harness.run import main

if __name__ == "__main__":
    raise SystemExit(main(SUITE))
