"""What concerns all suites: `python -m evals report|check|make|grade`."""

from evals.harness.commands import main

if __name__ == "__main__":
    raise SystemExit(main())
