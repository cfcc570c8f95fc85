"""The recipes on disk: one JSON file each."""

import json
from pathlib import Path

DATA = Path(__file__).parent / "data"


def names():
    return sorted(path.stem for path in DATA.glob("*.json"))


def recipe(name):
    """Return a recipe: title, serves, ingredients (name, amount or null, unit), steps. KeyError if there is none."""
    if name not in names():
        raise KeyError(name)
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
