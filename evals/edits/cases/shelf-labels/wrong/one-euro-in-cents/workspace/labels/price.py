"""Prices as people read them."""


def price_text(cents):
    """Return a price, such as "2,49 €"."""
    if cents <= 100:
        return f"{cents} ct"
    return f"{cents // 100},{cents % 100:02d} €"


def base_price_text(cents, grams):
    """Return what a kilogram costs, such as "9,96 €/kg", or "" for goods that are not weighed."""
    if not grams:
        return ""
    per_kilogram = (cents * 1000 + grams // 2) // grams
    return f"{price_text(per_kilogram)}/kg"
