"""VAT rates, and the rounding that goes with them."""

RATES = {"standard": 0.19, "reduced": 0.07, "none": 0.0}


def rate_of(tax_class):
    """Return the rate of a tax class; raise KeyError for an unknown one."""
    return RATES[tax_class]


def half_up(cents):
    """Round an exact number of cents to a whole one; halves go away from zero."""
    whole = int(abs(cents) * 2 + 1) // 2
    return whole if cents >= 0 else -whole
