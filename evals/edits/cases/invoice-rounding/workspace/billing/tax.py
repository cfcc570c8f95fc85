"""VAT rates, and the rounding that goes with them."""

RATES = {"standard": 0.19, "reduced": 0.07, "none": 0.0}


def rate_of(tax_class):
    """Return the rate of a tax class; raise KeyError for an unknown one."""
    return RATES[tax_class]


def rounded(amount):
    """Round an amount in euros to the cent."""
    return round(amount, 2)
