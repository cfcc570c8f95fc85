"""Which suites there are: each folder beside the harness that has a `suite.py`."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator
from pathlib import Path

from evals.harness.suite import Case, Options, Suite

_EVALS = Path(__file__).resolve().parents[1]


class UsageError(Exception):
    """What was asked for cannot be done; the text says in one line why, and what can."""


def suite_names() -> list[str]:
    """Return the names of all suites."""
    return sorted(path.parent.name for path in _EVALS.glob("*/suite.py") if path.parent.name != "harness")


def find_suite(name: str) -> Suite:
    """Return the suite of this name; raise UsageError where there is none."""
    if name not in suite_names():
        raise UsageError(f"there is no suite {name!r}; there are {', '.join(suite_names())}")
    suite = importlib.import_module(f"evals.{name}.suite").SUITE
    assert isinstance(suite, Suite)
    return suite


def default_options(suite: Suite) -> dict[str, str]:
    """Return the suite's options as they are where nobody sets them."""
    return {**{option.name: option.default for option in suite.options}, "seed": "1"}


def all_options(suite: Suite) -> Iterator[Options]:
    """Yield the suite's options in every combination of their choices."""
    names = [option.name for option in suite.options]
    for values in itertools.product(*(option.choices for option in suite.options)):
        yield {**dict(zip(names, values)), "seed": "1"}


def find_case(suite: Suite, id: str, options: Options | None = None) -> tuple[Case, Options]:
    """Return a case by its id, and the options that make it; without options, whichever have it."""
    seen: dict[str, None] = {}
    for tried in [options] if options else [default_options(suite), *all_options(suite)]:
        for case in suite.cases(tried):
            if case.id == id:
                return case, tried
            seen[case.id] = None
    raise UsageError(f"{suite.name} has no case {id!r}; it has {', '.join(seen)}")
