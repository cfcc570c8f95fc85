"""The receipt that the customer gets."""

from __future__ import annotations

from parcel.postage import find_band


def format_cents(cents: int) -> str:
    """Return an amount as people write it."""
    return f"{cents // 100}.{cents % 100:02d}"


def receipt(zone: int, weight_grams: int) -> str:
    """Return the receipt for one parcel."""
    band = find_band(zone, weight_grams)
    return "\n".join(
        [
            f"Parcel, {weight_grams} g, zone {zone}",
            f"Band: up to {band.up_to_grams} g",
            f"Postage: {format_cents(band.cents)}",
            f"Days on the way: {band.days}",
        ]
    )
