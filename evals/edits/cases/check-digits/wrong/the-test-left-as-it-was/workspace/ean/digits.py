"""Check digits."""


def check_digit(number):
    """Return the check digit, a string of one digit, for a number without it (7 or 12 digits)."""
    if len(number) not in (7, 12) or not number.isdigit():
        raise ValueError(f"7 or 12 digits, please, not {number!r}")
    total = sum(int(digit) * (3 if place % 2 == 0 else 1) for place, digit in enumerate(reversed(number)))
    return str(-total % 10)


def is_valid(code):
    """Tell whether a code of 8 or 13 digits ends in its check digit."""
    return code[-1:] == check_digit(code[:-1])
