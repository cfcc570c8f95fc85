"""`.gitignore`: which names a project itself keeps out of sight.

Understood are blank lines, comments, `!` (negation), a trailing `/` (folders only), a `/` elsewhere (anchored to the
folder of the file), `*`, `?`, `[…]`, `**` between slashes, and `\\` before a special character. As in git, the last
rule that matches decides, a file further down goes before one further up, and nothing below an ignored folder can be
had back: whoever walks does not enter it.

No rule can be slow, whoever wrote it: a path is matched name by name, and neither `fnmatch`'s expressions nor the
loop over `**` ever go back further than the last star.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Callable, Optional

NameMatcher = Optional[Callable[[str], object]]  # a test of one name; None is `**`: any number of names
_ANY_NAME = re.compile("").match
_NO_NAME = re.compile(r"(?!)").match


@dataclass(frozen=True)
class Rule:
    """One line of a `.gitignore`."""

    depth: int  # how many folders below the root its file lies, 0 for in the root itself
    names: tuple[NameMatcher, ...]
    is_negated: bool
    is_for_folders: bool


def read_rules(text: str, depth: int) -> list[Rule]:
    """Return the rules of a `.gitignore` that lies `depth` folders below the root."""
    lines = (re.sub(r"(?<!\\) +$", "", line.rstrip("\r")) for line in text.lstrip("\ufeff").split("\n"))
    return [_read_rule(line, depth) for line in lines if line and not line.startswith("#")]


def is_ignored(rules: Sequence[Rule], parts: Sequence[str], is_folder: bool) -> bool:
    """Tell whether a path (its names, from the root) is ignored by the rules in force there, the root's first."""
    for rule in reversed(rules):
        if (is_folder or not rule.is_for_folders) and _matches(rule.names, parts[rule.depth :]):
            return not rule.is_negated
    return False


def _read_rule(line: str, depth: int) -> Rule:
    is_negated = line.startswith("!")
    pattern = line[is_negated:]
    is_for_folders = pattern.endswith("/")
    pattern = pattern.rstrip("/")
    names = [None if name == "**" else _name_matcher(name) for name in pattern.lstrip("/").split("/")]
    if "/" not in pattern:
        names.insert(0, None)  # without a slash a rule holds at every depth
    if names[-1] is None:
        names.insert(-1, _ANY_NAME)  # `folder/**` is all that is in the folder, and not the folder
    return Rule(depth, tuple(names), is_negated, is_for_folders)


def _name_matcher(pattern: str) -> Callable[[str], object]:
    if not re.search(r"[*?\[\\]", pattern):
        return pattern.__eq__
    # fnmatch knows no backslash, and writes [^a] as [!a]
    in_its_words = re.sub(r"\\(.)", lambda escape: f"[{escape[1]}]" if escape[1] in "*?[" else escape[1], pattern)
    try:
        return re.compile(fnmatch.translate(in_its_words.replace("[^", "[!"))).match
    except re.error:  # a range such as [z-a], on Python 3.9 and 3.10
        return _NO_NAME


def _matches(pattern: Sequence[NameMatcher], parts: Sequence[str]) -> bool:
    """Match names one by one; where one fails, let the last `**` take one name more."""
    at = part = 0
    last_stars, taken = -1, 0
    while part < len(parts):
        matcher = pattern[at] if at < len(pattern) else _NO_NAME
        if matcher is None:
            last_stars, taken, at = at, part, at + 1
        elif matcher(parts[part]):
            at, part = at + 1, part + 1
        elif last_stars >= 0:
            taken += 1
            at, part = last_stars + 1, taken
        else:
            return False
    return all(matcher is None for matcher in pattern[at:])
