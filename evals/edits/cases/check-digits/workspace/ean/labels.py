"""What is printed under the bars."""

from ean.digits import check_digit


def printed(number):
    """Return the digits of a label in groups, such as "4 006381 333931" or "9638 5074"."""
    code = number + check_digit(number)
    return f"{code[:4]} {code[4:]}" if len(code) == 8 else f"{code[0]} {code[1:7]} {code[7:]}"
