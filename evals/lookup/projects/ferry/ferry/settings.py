"""How the booking service runs."""

LISTEN_PORT = 7431
ADMIN_PORT = 7440
BOOKING_HOLD_MINUTES = 25  # a place that is not paid by then goes back
DATABASE_PATH = "/var/lib/ferry/places.db"
SESSION_COOKIE = "ferry_seat"
LOG_LEVEL = "warning"
