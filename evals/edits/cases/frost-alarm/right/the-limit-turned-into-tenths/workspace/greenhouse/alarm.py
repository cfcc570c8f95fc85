"""When to ring."""

import json
from pathlib import Path

from greenhouse.reading import Reading


def load_settings(path="settings.json"):
    return json.loads(Path(path).read_text(encoding="utf-8"))


def is_frost(reading, settings):
    # a thermometer sends tenths of a degree, the limit is in degrees
    return reading.raw < settings["frost_below"] * 10


def alarms(lines, settings):
    """Return a message for each reading at which the alarm rings."""
    readings = [Reading(line) for line in lines]
    return [f"{r.time} {r.thermometer}: {r.celsius:.1f} °C" for r in readings if is_frost(r, settings)]
