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
    year = day.year + day.month // 12
    month = day.month % 12 + 1
    last = calendar.monthrange(year, month)[1]
    return date(year, month, min(day.day, last))
