"""The diary for the website."""

from sightings.exporters.comma_separated import HEADER


def markdown(rows):
    lines = [HEADER, ("---",) * len(HEADER)]
    lines += [(row.date, row.species, str(row.count), row.note) for row in rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text):
    return " ".join(text.replace("|", "\\|").splitlines())
