"""Tells passengers what they must know."""

SENDER = "crossings@ferry.example"
REPLY_TO = "desk@ferry.example"
RETRIES = 4
PAUSE_SECONDS = 90  # between two tries


def late_text(minutes):
    """Return what is sent when a ferry is late."""
    return f"Your ferry leaves {minutes} minutes later. Your place is kept."
