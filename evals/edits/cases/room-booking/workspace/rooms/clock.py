"""Times of a day, as minutes since midnight."""

OPENS, CLOSES = 8 * 60, 20 * 60


def at(hour, minute=0):
    return hour * 60 + minute


def shown(minutes):
    return f"{minutes // 60}:{minutes % 60:02d}"
