"""A small coding agent in plain Python, written to be read: start with `conversation/`, then `agent/runner.py`."""

__version__ = "0.1.0"
