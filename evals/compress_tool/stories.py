"""The four natures of a case: evidence in three stages, and what holds in the end.

    incident   two services are suspected, a review finds the real cause and counts again
    prices     a list in two parts, then an erratum
    config     deploys that set values; one is rolled back, and what it had set is as before
    rooms      a plan, changes, and the end of one of the changes

The first stage and the second mislead about some of the values, and are right about the others; the third corrects.
"""

from __future__ import annotations

from dataclasses import dataclass

from evals.harness.drawn import SENTENCE, Draw
from evals.harness.pairs import Pair


@dataclass(frozen=True)
class Story:
    """What a case is about, without its noise."""

    folder: str  # of the files
    stages: tuple[tuple[str, ...], ...]  # the lines of evidence that stand in one file
    pairs: tuple[Pair, ...]
    wanted: str  # what is asked for in the end, and told at the beginning
    pattern: str = SENTENCE  # of a line of noise


def incident(draw: Draw) -> Story:
    """Return the case of a failure with a suspect and a cause."""
    suspect, cause = draw.name(), draw.name()
    wrong_change, change = draw.code(), draw.code()
    wrong_count, count, begin = draw.digits(), draw.digits(), draw.time()
    return Story(
        folder="incident",
        stages=(
            (f"alert: requests fail, the first one at {begin}", f"alert: suspected cause is the service {suspect}"),
            (f"on call: change {wrong_change} did it, as it seems", f"on call: {wrong_count} requests failed"),
            (
                f"review: {suspect} only suffered; the cause is the service {cause}",
                f"review: it came with change {change}, the one named before is innocent",
                f"review: some were counted twice; {count} requests failed",
            ),
        ),
        pairs=(
            Pair("cause", cause, suspect),
            Pair("change", change, wrong_change),
            Pair("begin", begin),
            Pair("count", count, wrong_count),
        ),
        wanted="cause (the service that caused the failure), change (the id of the change that brought it), begin (the "
        "time of the first failed request) and count (how many requests failed)",
        pattern="{time} info: " + SENTENCE,
    )


def prices(draw: Draw) -> Story:
    """Return the case of a price list with an erratum."""
    names = [draw.name() for _ in range(5)]
    pairs = [Pair(name, draw.price(), draw.price() if place in (0, 3) else "") for place, name in enumerate(names)]
    listed = [f"{pair.label}; {pair.outdated or pair.value}; each" for pair in pairs]
    corrections = (f"Erratum: {pair.label}; {pair.value}; each" for pair in pairs if pair.outdated)
    return Story(
        folder="prices",
        stages=(tuple(listed[:3]), tuple(listed[3:]), (*corrections, "An erratum goes over the list.")),
        pairs=tuple(draw.random.sample(pairs, 5)),
        wanted=f"the price of each of the articles {', '.join(names)}",
        pattern="{adjective} {noun} of the {place}; {number}.{cents}; each, as packed for the {place2}",
    )


def config(draw: Draw) -> Story:
    """Return the case of a configuration with a rollback."""
    keys = draw.random.sample(["pool_size", "cache_lifetime", "queue_depth", "retry_pause", "page_limit"], 4)
    first, second = [draw.digits() for _ in keys], [draw.digits() for _ in range(3)]
    bad, good = draw.code(), draw.code()
    return Story(
        folder="deploys",
        stages=(
            tuple(f"deploy {draw.code()}: set {key} = {value}" for key, value in zip(keys, first)),
            tuple(f"deploy {bad}: set {key} = {value}" for key, value in zip(keys[:2], second)),
            (
                f"deploy {bad} was rolled back: each key that it set has the value it had before that deploy",
                f"deploy {good}: set {keys[2]} = {second[2]}",
            ),
        ),
        pairs=(
            Pair(keys[0], first[0], second[0]),
            Pair(keys[1], first[1], second[1]),
            Pair(keys[2], second[2], first[2]),
            Pair(keys[3], first[3]),
        ),
        wanted=f"the value of each of the keys {', '.join(keys)}",
        pattern="{time} checked {place}_{noun} of {place2}_{noun2}, nothing to be set, {end}",
    )


def rooms(draw: Draw) -> Story:
    """Return the case of talks that move."""
    talks, planned, moved = ([make() for _ in range(4)] for make in (draw.name, draw.code, draw.code))
    return Story(
        folder="plan",
        stages=(
            tuple(f"The talk {talk} is in room {room}." for talk, room in zip(talks, planned)),
            tuple(f"Change: the talk {talk} moves to room {room}." for talk, room in zip(talks[:2], moved)),
            (
                f"Change: the move of {talks[0]} is called off, it is where the plan had it at first.",
                f"Change: the talk {talks[2]} moves to room {moved[2]}.",
            ),
        ),
        pairs=(
            Pair(talks[0], planned[0], moved[0]),
            Pair(talks[1], moved[1], planned[1]),
            Pair(talks[2], moved[2], planned[2]),
            Pair(talks[3], planned[3]),
        ),
        wanted=f"the room of each of the talks {', '.join(talks)}",
        pattern="{time} the {adjective} {noun} group meets at the {place}, row {number}, {end}",
    )


NATURES = {"incident": incident, "prices": prices, "config": config, "rooms": rooms}
