"""The recipes on disk: one JSON file each."""

import json
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

DATA = Path(__file__).parent / "data"


def names():
    return sorted(path.stem for path in DATA.glob("*.json"))


def recipe(name):
    """Return a recipe: title, serves, ingredients (name, amount or null, unit), steps. KeyError if there is none."""
    if name not in names():
        raise KeyError(name)
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def scaled(recipe, serves):
    """Return the recipe for another number of people."""

    def for_them(amount):
        if amount is None:
            return None
        exact = Decimal(str(amount)) * serves / recipe["serves"]
        return exact.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP).normalize()

    ingredients = [{**given, "amount": for_them(given["amount"])} for given in recipe["ingredients"]]
    return {**recipe, "serves": serves, "ingredients": ingredients}
