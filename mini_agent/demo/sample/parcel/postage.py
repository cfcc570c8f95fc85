"""From zone and weight to a price."""

from __future__ import annotations

from parcel.rates import Band, load_bands


class CannotBeSent(Exception):
    """The carrier does not take this parcel."""


def find_band(zone: int, weight_grams: int) -> Band:
    """Return the band of the price list that a parcel belongs to."""
    bands = [band for band in load_bands() if band.zone == zone]
    if not bands:
        raise CannotBeSent(f"there is no zone {zone}")
    for band in bands:
        if weight_grams < band.up_to_grams:
            return band
    raise CannotBeSent(f"{weight_grams} g is too heavy for zone {zone}")


def postage_cents(zone: int, weight_grams: int) -> int:
    """Return what the parcel costs, in cents."""
    return find_band(zone, weight_grams).cents
