"""An invoice: its lines and what they come to."""

from decimal import Decimal

from billing.tax import rate_of, rounded


class Line:
    """One line: so many hours or pieces of something at a price."""

    def __init__(self, text, quantity, unit_price, tax_class="standard"):
        self.text = text
        self.quantity = quantity  # a number; negative on a credit note
        self.unit_price = unit_price  # euros as typed, such as "12.50" or, for small parts, "1.005"
        self.tax_class = tax_class

    def net(self):
        return Decimal(str(self.quantity)) * Decimal(self.unit_price)

    def tax(self):
        return self.net() * rate_of(self.tax_class)


class Invoice:
    """What a customer gets."""

    def __init__(self, number, lines):
        self.number = number
        self.lines = list(lines)

    def net(self):
        return rounded(sum(line.net() for line in self.lines))

    def tax(self):
        return rounded(sum(line.tax() for line in self.lines))

    def gross(self):
        return self.net() + self.tax()

    def as_text(self):
        rows = [f"Invoice {self.number}"]
        rows += [f"{line.text:<24}{line.net():>10.2f}" for line in self.lines]
        rows.append(f"{'VAT':<24}{self.tax():>10.2f}")
        rows.append(f"{'Total':<24}{self.gross():>10.2f}")
        return "\n".join(rows)
