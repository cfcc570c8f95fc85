"""Which names a tool may touch: pure functions of text, the same for list, read, grep and patch.

Protected are names that hold secrets or somebody's machinery. They are compared the way the most forgiving file
system would compare them (HFS+ and APFS ignore case, composition and invisible characters), so that no spelling
gets past the list that the disk would take for the same name.
"""

from __future__ import annotations

import fnmatch
import os
import re
import sys
import unicodedata

_OPEN_NAMES = {".env.example", ".env.sample", ".env.template"}
_PROTECTED_PATTERNS = (
    *(".env", ".env.*", ".envrc"),
    *(".git", ".mini_agent", ".venv", "__pycache__"),
    *(".ssh", ".gnupg", ".aws", ".docker", ".kube", "*.tfstate"),
    *(".netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.kdbx"),
)
_PROTECTED = re.compile("|".join(fnmatch.translate(pattern) for pattern in _PROTECTED_PATTERNS))

_WINDOWS_DEVICES = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\..*)?", re.IGNORECASE)


def is_protected_name(name: str) -> bool:
    """Tell whether a file or folder of this name is kept from the model."""
    name = _as_compared(name)
    return name not in _OPEN_NAMES and _PROTECTED.match(name) is not None


def _as_compared(name: str) -> str:
    """Return a name without what some file system ignores: case, composition, invisible characters."""
    if not name.isascii():
        visible = "".join(character for character in name if unicodedata.category(character) != "Cf")
        name = unicodedata.normalize("NFC", visible)
    return name.casefold()


def problem_of_name(name: str, on_windows: bool) -> str:
    """Return what is wrong with one component of a path, "" for one that can be asked for: the disk knows the rest."""
    if "\0" in name:
        return "it holds a NUL character"
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return f"the system's names are in {sys.getfilesystemencoding()}, which lacks a character of it"
    return _problem_on_windows(name) if on_windows else ""


def _problem_on_windows(name: str) -> str:
    """Windows takes some names for other ones: devices, `.env.` for `.env`, `.env::$DATA` for its content."""
    if _WINDOWS_DEVICES.fullmatch(name):
        return f"{name!r} is the name of a device"
    if name.endswith((".", " ")) and name not in (".", ".."):
        return "a name in it ends in a dot or a space"
    if ":" in name:
        return "it names an alternate stream"
    return ""
