"""A label: three rows of at most 24 characters."""

from labels.price import base_price_text, price_text

WIDTH = 24


def label(item):
    """Return the rows for an item: a dict with name, cents and grams (0 for goods that are not weighed)."""
    rows = [item["name"], price_text(item["cents"]), base_price_text(item["cents"], item["grams"])]
    return [row[:WIDTH] for row in rows]
