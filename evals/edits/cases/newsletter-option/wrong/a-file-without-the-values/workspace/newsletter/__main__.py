"""The command line."""

import argparse
import sys
from pathlib import Path

from newsletter.message import message


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="newsletter")
    parser.add_argument("file", type=Path)
    parser.add_argument("--subject", required=True)
    options = parser.parse_args(arguments)
    text = options.file.read_text(encoding="utf-8")
    print(message(options.subject, text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
