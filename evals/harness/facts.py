"""Does a text state a fact? For graders that want values in an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evals.harness.suite import Grade


def plain(text: str) -> str:
    """Return a text in the form in which facts are compared: lower case, single blanks, 12,000 as 12000, no markup."""
    text = re.sub(r"(?<=\d)[,_  ](?=\d{3}(?!\d))", "", text)
    return " ".join(re.sub(r"[`*\"“”]", "", text).lower().split())


def states(text: str, fact: str) -> bool:
    """Tell whether a text states a fact: literally, but for case, blanks, markup and thousands separators.

    It must stand by itself: 45 is stated neither by 450 nor by 4.45 (but by 45s and 45%), and `port` not by `ports`.
    """
    return times_stated(text, fact) > 0


def times_stated(text: str, fact: str) -> int:
    """Return how often a text states a fact; see `states`."""
    wanted = plain(fact)
    ends = r"(?!\d|\.\d)" if wanted[-1:].isdigit() else r"(?![\w-]|\.\w)"
    return len(re.findall(rf"(?<![\w.-]){re.escape(wanted)}{ends}", plain(text), re.ASCII))


def grade_facts(text: str, wanted: Sequence[str], forbidden: Sequence[str] = ()) -> Grade:
    """Grade a text by the facts that it must state and those that it must not."""
    missing = tuple(fact for fact in wanted if not states(text, fact))
    found = tuple(fact for fact in forbidden if states(text, fact))
    score = 1 - len(missing) / len(wanted) if wanted else 1.0
    return Grade(not missing and not found, 0.0 if found else score, missing, found)
