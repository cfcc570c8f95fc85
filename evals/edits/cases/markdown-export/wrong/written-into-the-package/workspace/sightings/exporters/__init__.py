"""The diary in other formats. Each has a module with one function, entered here."""

from sightings.exporters.comma_separated import HEADER, comma_separated

_EXPORTERS = {"csv": comma_separated}


def markdown(rows):
    lines = [HEADER, ("---",) * len(HEADER)]
    lines += [(row.date, row.species, str(row.count), row.note) for row in rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text):
    return " ".join(text.replace("|", "\\|").splitlines())


_EXPORTERS["markdown"] = markdown


def formats():
    """Return the names of all formats."""
    return sorted(_EXPORTERS)


def export(rows, name):
    """Return sightings in a format; raise KeyError for an unknown one."""
    return _EXPORTERS[name](rows)
