"""A small coding agent in plain Python, written to be read: start with `conversation/`, then `agent/runner.py`."""

__version__ = "0.1.0"
ANSWERED, FAILED, BAD_USAGE, INTERRUPTED = 0, 1, 2, 130  # exit codes
