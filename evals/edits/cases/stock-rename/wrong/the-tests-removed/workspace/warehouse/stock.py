"""What is on the shelves."""

_COUNTED = {"P-100": 40, "P-200": 3, "P-300": 0}
_LIMITS = {"P-100": 50, "P-200": 10, "P-300": 25}


def quantity_on_hand(sku):
    """Return how many pieces of a part are there; 0 for an unknown one."""
    return _COUNTED.get(sku, 0)


def get_qty_limit(sku):
    """Return how many pieces of a part fit on its shelf."""
    return _LIMITS[sku]
