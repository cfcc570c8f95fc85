"""What to order."""

from warehouse import stock
from warehouse.stock import get_qty_limit


def to_order(sku):
    """Return how many pieces fill the shelf again, once it is less than half full."""
    limit = get_qty_limit(sku)
    missing = limit - stock.quantity_on_hand(sku)
    return missing if missing > limit / 2 else 0
