"""read_file: the text of a file as it is, or the part of it that was asked for.

Lines end at LF and nowhere else: a form feed or U+2028 inside a line is text, so that line numbers agree with grep, git
and every editor. CRLF is shown as it is. A file of any size is read in bounded memory.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO, Callable, TextIO

from mini_agent.conversation.safe_text import readable_size
from mini_agent.tools.list_files import list_files
from mini_agent.tools.tool import RESULT_LIMIT_BYTES, Parameter, Tool, ToolError, ToolOutcome
from mini_agent.tools.workspace import Workspace

MOST_LINES = 2000
LONGEST_LINE = 2000  # characters; longer ones are data or minified code
COUNTED_SIZE_BYTES = 8_000_000  # of a larger file the lines are not counted just to say how many there are
_SEARCHED_FOR_NUL_BYTES = 8192
_NOTES_BYTES = 500  # room that is left for the notes below the text

_KINDS = (  # by their first bytes
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x7fELF", "an ELF program or library"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\xff\xfe", "text in UTF-16"),
    (b"\xfe\xff", "text in UTF-16"),
)


def read_file(
    path: str,
    workspace: Workspace,
    offset: int = 1,
    limit: int = MOST_LINES,
    limit_bytes: int = RESULT_LIMIT_BYTES,
) -> str:
    """Return lines of a file as they are; where it is not the whole file, a last line says which lines these were.

    offset: 1-based line to begin with; a negative one counts from the end, -1 being the last line.
    limit: number of lines, at most.
    limit_bytes: length of the result in UTF-8, at most.
    A folder is answered with its list. Raises ToolError: bad_arguments, bad_offset, not_text, and as
    `Workspace.resolve` and `Workspace.open_file` do.
    """
    if limit < 1:
        raise ToolError("bad_arguments", f"limit must be 1 or more, not {limit}.")
    resolved = workspace.resolve(path)
    label = workspace.relative(resolved)
    if os.path.isdir(resolved):
        return f"{label} is a folder. In it are:\n{list_files(workspace, path, depth=1)}"
    with workspace.open_file(resolved) as file:
        try:
            part = _read_part(file, label, offset, limit, limit_bytes)
        except UnicodeDecodeError as error:
            raise _not_text(file, label, f"not UTF-8 text (byte 0x{error.object[error.start]:02X})") from error
        except OSError as error:
            raise ToolError("unreadable", f"{label} cannot be read: {error.strerror or error}.") from error
    return "".join(part.lines) + _notes(part, path, limit)


@dataclass(frozen=True)
class _Part:
    """Some lines of a file."""

    lines: Sequence[str]  # with their line ends
    first: int  # 1-based
    total: int | None  # lines of the whole file; None where they were not counted
    more_follows: bool
    has_bom: bool


def _read_part(file: BinaryIO, label: str, offset: int, limit: int, limit_bytes: int) -> _Part:
    size_bytes = os.fstat(file.fileno()).st_size
    if b"\0" in file.read(_SEARCHED_FOR_NUL_BYTES):
        raise _not_text(file, label, "binary data")
    file.seek(0)
    if size_bytes <= COUNTED_SIZE_BYTES:
        content = file.read()
        content.decode("utf-8")  # a small file is text as a whole, or it is not
        file = io.BytesIO(content)
    total = _count_lines(file) if size_bytes <= COUNTED_SIZE_BYTES or offset < 0 else None
    first = max(1, offset if offset >= 0 else (total or 0) + 1 + offset)
    text = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
    try:
        lines, more_follows = _page(islice(_lines(text), min(first - 1, sys.maxsize), None), limit, limit_bytes)
    finally:
        text.detach()  # else it would close the file
    if not lines and first > 1:
        there_are = "it ends before that" if total is None else f"it has {total} lines"
        raise ToolError(
            "bad_offset", f"{label} has no line {first}: {there_are}. A negative offset counts from its end."
        )
    has_bom = first == 1 and bool(lines) and lines[0].startswith("\ufeff")
    if has_bom:
        lines[0] = lines[0][1:]
    return _Part(lines, first, total, more_follows, has_bom)


def _page(lines: Iterator[str], limit: int, limit_bytes: int) -> tuple[list[str], bool]:
    """Return as many lines as a result takes, `limit` at most, and whether there are more."""
    page: list[str] = []
    left_bytes = limit_bytes - _NOTES_BYTES
    for line in lines:
        left_bytes -= len(line.encode("utf-8"))
        if len(page) == limit or (left_bytes < 0 and page):
            return page, True
        page.append(line)
    return page, False


def _count_lines(file: BinaryIO) -> int:
    """Return the number of lines, one without a line end at the end included; leave the file at its start."""
    count, last = 0, b"\n"
    while block := file.read(1 << 20):
        count += block.count(b"\n")
        last = block[-1:]
    file.seek(0)
    return count + (last != b"\n")


def _lines(stream: TextIO) -> Iterator[str]:
    """Yield the lines with their ends, long ones cut; of a line of any length only a little is held at a time."""
    while line := stream.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE and not line.endswith("\n"):
            rest, end = 1, ""
            while not end and (piece := stream.readline(1 << 16)):
                end = "\n" if piece.endswith("\n") else ""
                rest += len(piece) - len(end)
            note = f"… [{rest:,} more characters in this line; grep shows those around a match]"
            line = line[:LONGEST_LINE] + note + end
        yield line


def _notes(part: _Part, path: str, limit: int) -> str:
    """Return what is to be said below the text, "" where the text is the whole file and nothing but text."""
    if not part.lines:
        return "[the file is empty]"
    notes = []
    if part.has_bom:
        notes.append("[the file begins with a byte order mark, not shown here; patches keep it]")
    last = part.first + len(part.lines) - 1
    total = "" if part.total is None else f" of {part.total}"
    if part.more_follows:
        exact_path = json.dumps(path, ensure_ascii=not path.isprintable())
        same_limit = "" if limit == MOST_LINES else f", limit={limit}"
        follows = "" if total else ", more follows"
        call = f"read_file(path={exact_path}, offset={last + 1}{same_limit})"
        notes.append(f"[lines {part.first}-{last}{total}{follows}; go on with {call}]")
    elif part.first > 1:
        notes.append(f"[lines {part.first}-{last}{total}, the end]")
    separator = "" if not notes or part.lines[-1].endswith("\n") else "\n"
    return separator + "\n".join(notes)


def _not_text(file: BinaryIO, label: str, kind: str) -> ToolError:
    file.seek(0)
    head = file.read(16)
    kind = next((known for start, known in _KINDS if head.startswith(start)), kind)
    size = readable_size(os.fstat(file.fileno()).st_size)
    return ToolError(
        "not_text", f"{label} is {kind}, {size}: it is not shown. (grep finds text in files that are not quite UTF-8.)"
    )


class ReadFileTool(Tool):
    """The tool around `read_file`; it tells which file the model has seen."""

    name = "read_file"
    description = (
        f"Read a text file, at most {MOST_LINES} lines or {RESULT_LIMIT_BYTES // 1000} KB at a time. "
        "Where more follows, the last line says how to go on."
    )
    parameters: Sequence[Parameter] = (
        Parameter("path", "string", "File, relative to the workspace.", required=True),
        Parameter("offset", "integer", "First line, from 1; a negative one counts from the end.", default=1),
        Parameter("limit", "integer", "Most lines to return.", default=MOST_LINES),
    )
    narrowing = "Ask for fewer lines with offset and limit."
    only_reads = True

    def __init__(self, workspace: Workspace, limit_bytes: Callable[[], int] = lambda: RESULT_LIMIT_BYTES) -> None:
        """Take the workspace; limit_bytes: tells how long a result may be now, so that a page ends where it says."""
        self._workspace = workspace
        self._limit_bytes = limit_bytes

    def run(self, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Read."""
        limit_bytes = min(self._limit_bytes(), RESULT_LIMIT_BYTES)
        text = read_file(arguments["path"], self._workspace, arguments["offset"], arguments["limit"], limit_bytes)
        path = self._workspace.resolve(arguments["path"])
        return ToolOutcome(text, read_paths=() if os.path.isdir(path) else (path,))
