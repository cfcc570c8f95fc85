"""The command line: list, or show one recipe."""

import argparse
import sys

from recipes.book import names, recipe
from recipes.page import page


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="recipes")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="name all recipes")
    show = commands.add_parser("show", help="print one recipe")
    show.add_argument("name")
    show.add_argument("--servings", type=positive)
    options = parser.parse_args(arguments)
    if options.command == "list":
        print("\n".join(names()))
        return 0
    try:
        found = recipe(options.name)
    except KeyError:
        print(f"recipes: no recipe is named {options.name}", file=sys.stderr)
        return 1
    if options.servings:
        for ingredient in found["ingredients"]:
            if ingredient["amount"] is not None:
                ingredient["amount"] *= options.servings // found["serves"]
        found["serves"] = options.servings
    print(page(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
