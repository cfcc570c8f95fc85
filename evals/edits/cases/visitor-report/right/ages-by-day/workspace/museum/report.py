"""The report of a month."""

import json
from pathlib import Path

from museum.audit import record

GROWN_UP = 18


def visitors(path="data/visitors.csv"):
    """Return (date, age) of every visitor."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    rows = [line.split(",") for line in lines if line and not line.startswith("#")]
    return [(date, int(age)) for date, age in rows]


def report(rows):
    """Return the report: a line for each day, and the sum."""
    ages = {}
    for date, age in sorted(rows):
        ages.setdefault(date, []).append(age)
    ages["total"] = [age for _, age in rows]
    return "\n".join(f"{name}: {_numbers(of_day)}" for name, of_day in ages.items())


def _numbers(ages):
    children = sum(1 for age in ages if age < GROWN_UP)
    return f"{len(ages)} ({children} children)" if children > 0 else f"{len(ages)}"


def export(person, role, path="config/access.json"):
    """Return the report for a person, if the role may have it; PermissionError otherwise."""
    if json.loads(Path(path).read_text(encoding="utf-8")).get(role) != "export":
        raise PermissionError(f"{role} may not export")
    record(person, "report")
    return report(visitors())
