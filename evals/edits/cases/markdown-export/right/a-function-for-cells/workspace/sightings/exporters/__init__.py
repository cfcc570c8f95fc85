"""The diary in other formats. Each has a module with one function, entered here."""

from sightings.exporters.comma_separated import comma_separated
from sightings.exporters.markdown import markdown

_EXPORTERS = {"csv": comma_separated, "markdown": markdown}


def formats():
    """Return the names of all formats."""
    return sorted(_EXPORTERS)


def export(rows, name):
    """Return sightings in a format; raise KeyError for an unknown one."""
    return _EXPORTERS[name](rows)
