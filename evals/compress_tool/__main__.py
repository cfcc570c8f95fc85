"""Run the suite: `python -m evals.compress_tool --output DIR`."""

from evals.compress_tool.suite import SUITE
from evals.harness.run import main

if __name__ == "__main__":
    raise SystemExit(main(SUITE))
