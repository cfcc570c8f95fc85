"""Text from models, files and servers, made fit to be looked at: shown, never obeyed. Pure functions.

A terminal takes orders from the text it prints: to recolour, to overwrite what stands above, to set the clipboard, to
turn the direction of reading. All that could do so is written out instead (`\\x1b`, `\\u202e`). It stands on the lowest
floor because the terminal, the record and the trace show the same text.
"""

from __future__ import annotations

import re

# Control characters but tab and line feed; marks that reorder or hide text; line separators; halves of surrogate pairs.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def safe_text(text: str) -> str:
    """Return `text` with everything written out that a terminal could obey; line feeds and tabs stay."""
    return _UNSAFE.sub(_written_out, text.replace("\r\n", "\n"))


def safe_line(text: str) -> str:
    """Return `text` as one line: as `safe_text` does, with line feeds and tabs written out too."""
    return safe_text(text).replace("\n", "\\n").replace("\t", "\\t")


def fence_around(text: str, shortest: int = 3) -> str:
    """Return the backticks between which nothing in `text` can close its block of Markdown."""
    return "`" * max(shortest, 1 + max(map(len, re.findall("`+", text)), default=0))


def readable_size(size_bytes: int) -> str:
    """Return a number of bytes in few characters: 512 B, 3.1 KB, 8.0 MB."""
    size, unit = float(size_bytes), "B"
    for larger in ("KB", "MB", "GB"):
        if size >= 999.95:
            size, unit = size / 1000, larger
    return f"{size_bytes} B" if unit == "B" else f"{size:.1f} {unit}"


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return _ESCAPES.get(match[0], f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
