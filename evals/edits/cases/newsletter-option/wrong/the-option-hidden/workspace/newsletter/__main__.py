"""The command line."""

import argparse
import sys
from pathlib import Path

from newsletter.message import message


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="newsletter")
    parser.add_argument("file", type=Path)
    parser.add_argument("--subject", required=True)
    parser.add_argument("--legacy-html", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    text = options.file.read_text(encoding="utf-8")
    print(message(options.subject, text, legacy_html=options.legacy_html))
    return 0


if __name__ == "__main__":
    sys.exit(main())
