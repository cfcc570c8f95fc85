"""The names in a patch's headers: quoted or not, with `a/` and `b/` or without, with a time behind them or none."""

from __future__ import annotations

import re

NOTHING = "/dev/null"
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.S)
_ESCAPE = re.compile(rb'\\([0-7]{1,3}|[abtnvfr"\\])')
_ESCAPED = dict(zip(b'abtnvfr"\\', b'\a\b\t\n\v\f\r"\\'))


def plain_name(written: str) -> str:
    """Return the name that a header gives: without quotes and escapes, or without the time that follows a tab."""
    quoted = _QUOTED.match(written)
    if not quoted:
        return written.partition("\t")[0].rstrip(" \r")
    return _ESCAPE.sub(_unescaped, quoted[1].encode("utf-8")).decode("utf-8", "surrogateescape")


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8) & 255 if code.isdigit() else _ESCAPED[code[0]]])


def without_prefixes(old: str, new: str) -> tuple[str, str]:
    """Take off a/ and b/: where both names have theirs, or where the names are the same without."""
    bare_old, bare_new = old.removeprefix("a/"), new.removeprefix("b/")
    both_have = (old == NOTHING or old != bare_old) and (new == NOTHING or new != bare_new)
    return (bare_old, bare_new) if both_have or bare_old == bare_new else (old, new)


def names_in_git_header(header: str) -> tuple[str, str] | None:
    """Return both names behind `diff --git `; None where they are not the same: then other lines have to tell."""
    header = plain_header(header)
    middle = len(header) // 2  # a name with spaces is not quoted there, but it stands there twice
    old, new = without_prefixes(header[:middle], header[middle + 1 :])
    return (old, new) if old == new else None


def plain_header(header: str) -> str:
    """Return what follows `diff --git `, its names without quotes and escapes."""
    return _QUOTED.sub(lambda quoted: plain_name(quoted[0]), header).rstrip(" \r")


def may_head(header: str, old: str, new: str, stated: tuple[str, str]) -> bool:
    """Tell whether a plain header, which may be empty, agrees with these names, or with both as they were stated."""
    return header in ("", f"a/{old} b/{new}", f"{old} {new}", " ".join(stated))
