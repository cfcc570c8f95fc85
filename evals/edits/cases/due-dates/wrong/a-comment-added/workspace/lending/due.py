"""When a tool has to be back."""

import calendar
from datetime import date, timedelta

SUNDAY = 6


def due_date(lent, kind):
    """Return when a tool lent on a day is due; kind is "hand" or "machine"."""
    due = lent + timedelta(days=14) if kind == "hand" else _a_month_later(lent)
    if due.weekday() == SUNDAY:
        due += timedelta(days=1)
    return due


def _a_month_later(day):
    year, month = (day.year + 1, 1) if day.month == 12 else (day.year, day.month + 1)
    last = calendar.monthrange(year, month)[1]
    # the policy: the last day of a short month
    return date(year, month, min(day.day, last))
