"""The start of the program."""

import os
import sys

from dashboard.config import BadSetting, port


def main(environment=os.environ):
    try:
        print(f"listening on {port(environment)}")
    except BadSetting as error:
        print(f"dashboard: {error}", file=sys.stderr)
        return 2
    return 0
