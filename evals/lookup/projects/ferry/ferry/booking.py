"""Places on a ferry: held, paid, given back."""

from ferry.settings import BOOKING_HOLD_MINUTES

MOST_PEOPLE = 14  # in one booking; larger groups call the desk


class FerryFull(Exception):
    """There are not enough places left."""


class GroupTooLarge(Exception):
    """More people than one booking takes."""


def hold(ferry, people, now):
    """Hold places until they are paid."""
    if people > MOST_PEOPLE:
        raise GroupTooLarge(people)
    if ferry.free < people:
        raise FerryFull(ferry.name)
    return ferry.take(people, until=now + BOOKING_HOLD_MINUTES * 60)


def give_back_unpaid(ferry, now):
    """Free the places whose time has run out."""
    return [place for place in ferry.places if place.until and place.until < now]


def cancel_paid(ferry, place):
    """Free one place that was paid, for half of its price."""
    ferry.free_one(place)
    return place.price // 2
