"""Every station: code, name, tariff zone, kilometres from the centre."""

# Stations as of the old tariff. Tickets sold before January are still checked against it: never change a line here.
OLD_TARIFF = {
@@STATIONS 1380-1416@@
    "KRS-1417": ("Altmark Werft", "B", 17.4),
@@STATIONS 1418-1440@@
}

STATIONS = {
@@STATIONS 1-1416@@
    "KRS-1417": ("Altmark Werft", "B", 17.4),
@@STATIONS 1418-1470@@
    "KRS-1471": ("Altmark Werft Süd", "D", 18.1),
@@STATIONS 1472-2640@@
}


def zone_of(code):
    """Return the tariff zone of a station; raise KeyError for an unknown code."""
    return STATIONS[code.strip().upper()][1]


def old_zone_of(code):
    """Return the zone that a station had in the old tariff; today's zone where the old tariff does not list it."""
    return OLD_TARIFF.get(code, STATIONS[code])[1]
