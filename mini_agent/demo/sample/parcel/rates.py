"""The carrier's price list."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

RATES_FILE = Path(__file__).resolve().parent.parent / "rates.csv"


@dataclass(frozen=True)
class Band:
    """One line of the price list: what parcels up to some weight cost in one zone."""

    zone: int
    up_to_grams: int
    cents: int
    days: int


def load_bands(path: Path = RATES_FILE) -> list[Band]:
    """Return the lines of the price list, in its order: by zone, then from light to heavy."""
    bands = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(("#", "zone")):
            zone, up_to_grams, cents, days, _service = line.split(",")
            bands.append(Band(int(zone), int(up_to_grams), int(cents), int(days)))
    return bands
