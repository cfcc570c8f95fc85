"""Reports: which there are is written in reports.json."""

import importlib
import json
from pathlib import Path

REPORTS = Path(__file__).with_name("reports.json")


def report(name, skus):
    """Return a report on some parts as text; KeyError for an unknown one."""
    entry = json.loads(REPORTS.read_text(encoding="utf-8"))[name]
    module, function = entry["function"].split(":")
    value_of = getattr(importlib.import_module(module), function)
    return "\n".join([entry["title"], *(f"{sku}: {value_of(sku)}" for sku in skus)])
