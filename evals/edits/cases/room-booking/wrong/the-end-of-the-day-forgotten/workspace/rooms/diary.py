"""The bookings of one day."""

from rooms.clock import CLOSES, OPENS, shown


class Refused(Exception):
    """A booking that cannot be; the text says why."""


class Diary:
    """All rooms of the house on one day."""

    def __init__(self):
        self._bookings = {}  # room -> list of (start, end, who), sorted

    def book(self, room, start, end, who):
        """Enter a booking, or raise Refused."""
        if end <= start:
            raise Refused("a booking must end after it starts")
        if start < OPENS or end > CLOSES:
            raise Refused(f"we are open from {shown(OPENS)} to {shown(CLOSES)}")
        taken = self._bookings.setdefault(room, [])
        for other_start, other_end, other in taken:
            if start < other_end and end > other_start:
                raise Refused(f"{room} is taken by {other} from {shown(other_start)} to {shown(other_end)}")
        taken.append((start, end, who))
        taken.sort()

    def free(self, room):
        """Return what is left of the day in a room, as a list of (start, end)."""
        slots = []
        begin = OPENS
        for start, end, _ in self._bookings.get(room, []):
            if begin < start:
                slots.append((begin, start))
            begin = end
        slots.append((begin, CLOSES))
        return slots
