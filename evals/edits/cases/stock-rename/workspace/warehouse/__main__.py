"""The command line: a report on some parts."""

import sys

from warehouse.reports import report


def main(arguments):
    name, *skus = arguments
    print(report(name, skus))


if __name__ == "__main__":
    main(sys.argv[1:])
