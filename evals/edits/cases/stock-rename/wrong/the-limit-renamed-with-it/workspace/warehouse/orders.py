"""What to order."""

from warehouse import stock
from warehouse.stock import quantity_on_hand_limit


def to_order(sku):
    """Return how many pieces fill the shelf again, once it is less than half full."""
    limit = quantity_on_hand_limit(sku)
    missing = limit - stock.quantity_on_hand(sku)
    return missing if missing > limit / 2 else 0
