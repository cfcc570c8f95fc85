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


@dataclass(frozen=True)
class _Rule:
    names: tuple[NameMatcher, ...]
    is_negated: bool
    is_for_folders: bool


class IgnoreFile:
    """The rules of one `.gitignore`."""

    def __init__(self, text: str, depth: int) -> None:
        """Read the rules; depth: how many folders below the root the file lies, 0 for in the root itself."""
        self._depth = depth
        rules = (_read_rule(line) for line in text.lstrip("\ufeff").split("\n"))
        self._rules = [rule for rule in rules if rule is not None]
        self._rules.reverse()  # the last one that matches decides

    def verdict(self, parts: Sequence[str], is_folder: bool) -> bool | None:
        """Tell whether the path (its names, from the root) is ignored; None where no rule says anything."""
        below = parts[self._depth :]
        for rule in self._rules:
            if (is_folder or not rule.is_for_folders) and _matches(rule.names, below):
                return not rule.is_negated
        return None


def is_ignored(files: Sequence[IgnoreFile], parts: Sequence[str], is_folder: bool) -> bool:
    """Tell whether a path is ignored by the files in force there, given from the root downwards."""
    for file in reversed(files):
        verdict = file.verdict(parts, is_folder)
        if verdict is not None:
            return verdict
    return False


def _read_rule(line: str) -> _Rule | None:
    line = re.sub(r"(?<!\\) +$", "", line.rstrip("\r"))
    if not line or line.startswith("#"):
        return None
    is_negated = line.startswith("!")
    pattern = line[is_negated:]
    is_for_folders = pattern.endswith("/")
    pattern = pattern.rstrip("/")
    names = [None if name == "**" else _name_matcher(name) for name in pattern.lstrip("/").split("/")]
    if "/" not in pattern:
        names.insert(0, None)  # without a slash a rule holds at every depth
    if names[-1] is None:
        names.insert(-1, _any_name)  # `folder/**` is all that is in the folder, and not the folder
    return _Rule(tuple(names), is_negated, is_for_folders)


def _any_name(name: str) -> bool:
    return True


def _name_matcher(pattern: str) -> Callable[[str], object]:
    if not re.search(r"[*?\[\\]", pattern):
        return pattern.__eq__
    # fnmatch knows no backslash, and writes [^a] as [!a]
    in_its_words = re.sub(r"\\(.)", lambda escape: f"[{escape[1]}]" if escape[1] in "*?[" else escape[1], pattern)
    try:
        return re.compile(fnmatch.translate(in_its_words.replace("[^", "[!"))).match
    except re.error:  # a range such as [z-a], on Python 3.9 and 3.10
        return lambda name: False


def _matches(pattern: Sequence[NameMatcher], parts: Sequence[str]) -> bool:
    """Match names one by one; where one fails, let the last `**` take one name more."""
    at = part = 0
    last_stars, taken = -1, 0
    while part < len(parts):
        matcher = pattern[at] if at < len(pattern) else _no_name
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


def _no_name(name: str) -> bool:
    return False
