"""Where `python -m mini_agent` and the `mini-agent` script begin.

First of all the current folder leaves the places that Python imports from: it is often a project that somebody else
wrote, and its `json.py` must not run in our place. (`python -m` itself looks for `mini_agent` there before our first
line; the `mini-agent` script does not.)
"""

import os
import sys

from mini_agent import INTERRUPTED


def main() -> int:
    """Run the program with the arguments of this process and return its exit code; see `cli.main`."""
    try:
        leave_current_folder()
        from mini_agent.cli import main as run  # lazy: what is imported from here on must not come from that folder

        return run()
    except KeyboardInterrupt:  # so early, or so late, that nothing is there to be kept
        return INTERRUPTED


def leave_current_folder() -> None:
    """Take the current folder from `sys.path`, under all of its names. What of ours is there is found all the same."""
    library = os.path.dirname(os.path.realpath(os.__file__))
    try:
        current = os.path.realpath(os.getcwd())
    except OSError:  # it was removed: nothing can come from it
        current = ""
    if not (current + os.sep).startswith(library + os.sep):  # in there are Python's own modules
        sys.path[:] = [place for place in sys.path if os.path.isabs(place) and os.path.realpath(place) != current]


if __name__ == "__main__":
    sys.exit(main())
