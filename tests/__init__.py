"""The tests: `python -m unittest discover -s tests` runs them all, `python -m tests.long` at length."""

import atexit
import os
import signal
import tempfile

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so a shell starts what runs in its background
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What one process of Python has compiled, for all the others: compiling takes longer than running.
_compiled = tempfile.TemporaryDirectory()
atexit.register(_compiled.cleanup)
COMPILED = {"PYTHONPYCACHEPREFIX": _compiled.name, "PYTHONDONTWRITEBYTECODE": ""}
os.environ.update(COMPILED)
