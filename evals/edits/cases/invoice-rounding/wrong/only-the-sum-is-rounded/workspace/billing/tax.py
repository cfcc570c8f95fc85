"""VAT rates, and the rounding that goes with them."""

from decimal import ROUND_HALF_UP, Decimal

RATES = {"standard": Decimal("0.19"), "reduced": Decimal("0.07"), "none": Decimal(0)}


def rate_of(tax_class):
    """Return the rate of a tax class; raise KeyError for an unknown one."""
    return RATES[tax_class]


def rounded(amount):
    """Round an amount in euros to the cent."""
    return amount.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)
