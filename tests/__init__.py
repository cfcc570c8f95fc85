"""The tests: `python -m unittest discover -s tests` runs them all, `python -m tests.long` at length."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so a shell starts what runs in its background
    signal.signal(signal.SIGINT, signal.default_int_handler)
