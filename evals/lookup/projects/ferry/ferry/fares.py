"""What a crossing costs, in cents."""

BASE_FARE = 640
BICYCLE = 310
DOG = 150
CHILD_UNTIL_AGE = 11
CHILD_PERCENT = 40  # of the base fare
NIGHT_SURCHARGE = 275  # for departures after 21:30


class FareError(Exception):
    """A fare that cannot be told."""


def fare(age: int, bicycles: int = 0, dogs: int = 0) -> int:
    """Return the fare of one person."""
    if age < 0:
        raise FareError("nobody is younger than nothing")
    person = BASE_FARE * CHILD_PERCENT // 100 if age <= CHILD_UNTIL_AGE else BASE_FARE
    return person + bicycles * BICYCLE + dogs * DOG
