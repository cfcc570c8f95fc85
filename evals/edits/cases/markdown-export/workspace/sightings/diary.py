"""What was seen."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sighting:
    """Some birds of one species, on one day."""

    date: str  # 2024-05-01
    species: str
    count: int
    note: str = ""
