"""The report of a month."""

import json
from collections import Counter
from pathlib import Path

from museum.audit import record


def visitors(path="data/visitors.csv"):
    """Return (date, age) of every visitor."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    rows = [line.split(",") for line in lines if line and not line.startswith("#")]
    return [(date, int(age)) for date, age in rows]


def report(rows):
    """Return the report: a line for each day, and the sum."""
    days = Counter(date for date, _ in rows)
    children = Counter(date for date, age in rows if age < 18)
    lines = [f"{date}: {_counted(days[date], children[date])}" for date in sorted(days)]
    return "\n".join([*lines, f"total: {_counted(len(rows), sum(children.values()))}"])


def _counted(all, children):
    return f"{all} ({children} children)" if children else str(all)


def export(person, role, path="config/access.json"):
    """Return the report for a person, if the role may have it; PermissionError otherwise."""
    if json.loads(Path(path).read_text(encoding="utf-8")).get(role) != "export":
        raise PermissionError(f"{role} may not export")
    record(person, "report")
    return report(visitors())
