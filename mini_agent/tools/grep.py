"""grep: the lines of a folder that match a regular expression, found within 8 seconds whatever the expression.

A pattern such as `(a+)+$` takes hours on the wrong line, and nothing inside Python stops a match that runs. So this
side walks, reads and reports, and a child process (`grep_worker.py`) matches. Where it takes too long, it is killed:

    first    the files in order, in blocks of whole lines; a block without an answer after half a second is put aside
    at last  the lines that were put aside, one by one and the shortest first, so that the lines that take too long
             cost no match elsewhere; they are named in a note

Most lines are never sent: `\\w+@\\w+` can only match where there is an @, and that is looked for here.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, Callable

from mini_agent.conversation.interrupts import uninterrupted
from mini_agent.conversation.safe_text import safe_line
from mini_agent.tools.grep_worker import required_texts
from mini_agent.tools.tool import Parameter, Tool, ToolError, ToolOutcome
from mini_agent.tools.workspace import Workspace

TIME_LIMIT_SECONDS = 8.0
MATCH_LIMIT = 50
PATIENCE_SECONDS = 0.5  # for one block, or one line; an honest pattern takes milliseconds
LAST_LINES_SECONDS = 2.0  # kept for the lines put aside, where there are any
BLOCK_BYTES = 256 * 1024
FILE_LIMIT_BYTES = 64 * 1024 * 1024  # what is searched of one file
NAMED_AT_MOST = 3  # places in one note

NARROWING = "Narrow the pattern, or give a path or a type."


def grep(
    pattern: str,
    workspace: Workspace,
    path: str = ".",
    file_type: str = "",
    include_protected: bool = False,
) -> str:
    """Return the lines that match `pattern`, as `path:number:text`, and notes on what they leave out.

    pattern: a Python regular expression; it is tried on each line by itself.
    path: a folder or a file of the workspace.
    file_type: an extension, with or without its dot; case counts.
    include_protected: search protected, hidden and ignored files too; the caller has asked the user.
    After 8 seconds what was found until then is returned, with a note on the rest.
    Raises ToolError: those of the workspace for `path`; bad_pattern, no_process.
    """
    deadline = time.monotonic() + TIME_LIMIT_SECONDS
    start = workspace.resolve(path, include_protected)
    extension = file_type.strip().lstrip("*.")
    search = _Search(workspace, start, extension and "." + extension, include_protected, deadline)
    with closing(_Matcher(pattern, deadline)) as matcher:
        matcher.start()
        search.required = [text.encode("utf-8", "surrogatepass") for text in required_texts(pattern)]
        search.run(matcher)
    return search.report(pattern)


class GrepTool(Tool):
    """Offer `grep` to the model."""

    name = "grep"
    description = (
        "Search files for lines that match a Python regular expression. Returns lines path:number:text, sorted, at "
        f"most {MATCH_LIMIT}. Binary files, hidden folders, protected names and what .gitignore ignores are skipped."
    )
    parameters = (
        Parameter("pattern", "string", "A Python regular expression, tried on each line by itself.", required=True),
        Parameter("path", "string", "The folder or file to search.", "."),
        Parameter("type", "string", "Search only files with this extension, such as py.", ""),
        Parameter("include_protected", "boolean", "Search what is skipped too; the user is asked first.", False),
    )
    time_limit_seconds = TIME_LIMIT_SECONDS + 2  # grep keeps its own limit; this one is for a disk that hangs
    narrowing = NARROWING
    only_reads = True

    def __init__(self, workspace: Workspace, ask: Callable[[str], bool]) -> None:
        """Take the workspace; ask: gets a question for the user, returns whether the answer is yes."""
        self._workspace = workspace
        self._ask = ask

    def run(self, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Search; raise ToolError("declined") where the user does not want protected files searched."""
        pattern, path, include_protected = arguments["pattern"], arguments["path"], arguments["include_protected"]
        start = self._workspace.relative(self._workspace.resolve(path, include_protected))
        question = (
            f"The model wants to search {start} for {safe_line(pattern)}, in protected files (such as .env, keys and "
            ".git), hidden folders and ignored files too, and to see the lines that match. Allow it?"
        )
        if include_protected and not self._ask(question):
            raise ToolError("declined", "The user does not want protected files searched. Search without them.")
        return ToolOutcome(grep(pattern, self._workspace, path, arguments["type"], include_protected))


# ------------------------------------------------------------------------------------------------ the child process


class _Matcher:
    """A child process that matches lines: killed where it takes too long, and then started anew."""

    _WORKER = Path(__file__).with_name("grep_worker.py")
    _NEEDED_TO_START = ("SYSTEMROOT", "LD_LIBRARY_PATH")  # the rest of the environment holds the API key

    def __init__(self, pattern: str, deadline: float) -> None:
        self._pattern = pattern
        self._deadline = deadline
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the child and give it the pattern; raise ToolError: bad_pattern, no_process."""
        life_seconds = max(0.0, self._deadline - time.monotonic()) + 1  # should nobody be left to kill it
        command = [sys.executable, "-I", "-S", str(self._WORKER), f"{life_seconds:.1f}"]
        environment = {name: os.environ[name] for name in self._NEEDED_TO_START if name in os.environ}
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        try:
            with uninterrupted():  # a child that nobody knows of could not be stopped
                self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing, env=environment)
        except OSError as error:
            raise ToolError("no_process", f"grep can't start its process: {error.strerror or error}.") from error
        problems = self._exchange(self._pattern.encode("utf-8", "surrogatepass"), self._deadline)
        if problems is None:
            raise ToolError("no_process", "grep's process was not ready in time. Try again, or a shorter pattern.")
        if problems:
            advice = "It is a Python regular expression: put a backslash before each of ()[]{}.*+?^$|\\ that is text."
            raise ToolError("bad_pattern", f"invalid pattern: {problems[0]}. {advice}")

    def matches(self, block: bytes) -> list[tuple[int, str]] | None:
        """Return (index, text) of each line of `block` that matches; None where there was no answer in time."""
        if self._child is None:
            try:
                self.start()
            except ToolError:
                return None
        answer = self._exchange(block, time.monotonic() + PATIENCE_SECONDS)
        parts = (line.partition(":") for line in answer or ())
        return None if answer is None else [(int(index), text) for index, _, text in parts]

    def _exchange(self, block: bytes, give_up_at: float) -> list[str] | None:
        """Send a block and return the lines of the answer; None where there was none, and the child is dead."""
        child = self._child
        if not (child and child.stdin and child.stdout):  # the deadline killed it just when it was ready
            return None
        answer: list[str] | None = None
        patience = threading.Timer(min(give_up_at, self._deadline) - time.monotonic(), _end, (child,))
        patience.daemon = True
        patience.start()
        lines: list[str] = []
        try:
            child.stdin.write(b"%d\n%b" % (len(block), block))
            child.stdin.flush()
            for line in child.stdout:
                if line == b"\n":
                    answer = lines
                    break
                lines.append(line[:-1].decode("utf-8", "replace"))
        except OSError:  # a broken pipe: it is dead
            pass
        finally:
            patience.cancel()
            patience.join()
        if answer is None or child.returncode is not None:
            self.close()
        return answer

    def close(self) -> None:
        """Kill the child, if there is one."""
        with uninterrupted():
            child, self._child = self._child, None
            if child and child.stdin and child.stdout:
                _end(child)
                with suppress(OSError):  # what was not sent yet can't be
                    child.stdin.close()
                child.stdout.close()


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()


# ------------------------------------------------------------------------------------------------------- the search


@dataclass(frozen=True, order=True)
class _Piece:
    """Whole lines of one file, each with its line break."""

    rank: int  # of the file, in the order of the walk
    path: str  # as it is shown
    first_line: int  # 1-based
    content: bytes

    def lines(self) -> Iterator[_Piece]:
        """Yield each line by itself."""
        for number, line in enumerate(self.content.split(b"\n")[:-1], self.first_line):
            yield _Piece(self.rank, self.path, number, line + b"\n")

    def __str__(self) -> str:
        last = self.first_line + self.content.count(b"\n") - 1
        return f"{self.path}:{self.first_line}" + (f"-{last}" if last > self.first_line else "")


@dataclass
class _Search:
    """One search: it walks and reads, lets a child match, and keeps count of what it found and what it left out."""

    workspace: Workspace
    start: Path
    suffix: str  # with its dot; "" for all files
    include_protected: bool
    deadline: float  # on the monotonic clock
    required: Sequence[bytes] = ()  # what is searched for in a piece before it is sent: one of these, if there are any
    found: list[tuple[int, int, str]] = field(default_factory=list)  # rank of the file, line, what is shown
    aside: list[_Piece] = field(default_factory=list)
    too_slow: list[_Piece] = field(default_factory=list)
    unreached: str = ""  # the first place that there was no time for
    searched_count: int = 0
    binary_count: int = 0
    unreadable: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    other_suffixes: Counter[str] = field(default_factory=Counter)

    def run(self, matcher: _Matcher) -> None:
        """Search until everything is searched, the limit is passed, or the time is over."""
        for block in _blocks(self._pieces()):
            if not self._match(matcher, block):
                self.aside += block
            if len(self.found) > MATCH_LIMIT:
                self.too_slow = self.aside
                return
        lines = (line for piece in self.aside for line in piece.lines())
        for line in sorted(lines, key=lambda line: len(line.content)):
            if time.monotonic() > self.deadline or not self._match(matcher, [line]):
                self.too_slow.append(line)

    def _match(self, matcher: _Matcher, pieces: Sequence[_Piece]) -> bool:
        """Match some pieces and keep what is found; return whether there was an answer in time."""
        matches = matcher.matches(b"".join(piece.content for piece in pieces))
        starts = list(accumulate((piece.content.count(b"\n") for piece in pieces), initial=0))
        for index, text in matches or ():
            position = bisect_right(starts, index) - 1
            piece = pieces[position]
            number = piece.first_line + index - starts[position]
            self.found.append((piece.rank, number, f"{piece.path}:{number}:{text}"))
        return matches is not None

    def _pieces(self) -> Iterator[_Piece]:
        """Yield what may match of the files, in order, in pieces of at least a line and about a block."""
        for rank, (path, content) in enumerate(self._contents()):
            start, number = 0, 1
            while start < len(content):
                if self._is_over():
                    self.unreached = f"{path}:{number}" if number > 1 else path
                    return
                end = content.find(b"\n", start + BLOCK_BYTES) + 1 or len(content)
                piece = content[start:end]
                if not self.required or any(text in piece for text in self.required):
                    yield _Piece(rank, path, number, piece)
                number += piece.count(b"\n")
                start = end

    def _contents(self) -> Iterator[tuple[str, bytes]]:
        """Yield path and content of each file that is to be searched, in order, and count those that are not."""
        for entry in self.workspace.walk(self.start, self.include_protected):
            path = self.workspace.relative(entry.path)
            if self._is_over():
                self.unreached = path
                return
            target = entry.link_target or entry.path
            if entry.is_folder or (entry.link_target and (self.start in target.parents or target.is_dir())):
                continue  # what a link inside the searched folder leads to is met by itself
            if not entry.path.name.endswith(self.suffix):
                self.other_suffixes[entry.path.suffix] += 1
                continue
            try:
                content = self._read(target, path)
            except ToolError:
                if entry.path == self.start:
                    raise
                self.unreadable.append(path)
                continue
            if content is None:
                self.binary_count += 1
            else:
                self.searched_count += 1
                yield path, content

    def _is_over(self) -> bool:
        """Tell whether the time left is needed for what is read already."""
        return time.monotonic() > self.deadline - (LAST_LINES_SECONDS if self.aside else PATIENCE_SECONDS)

    def _read(self, path: Path, shown_path: str) -> bytes | None:
        """Return the content of a file, without a byte order mark and with a line break at its end; None if binary."""
        content = self.workspace.read_bytes(path, BLOCK_BYTES)  # most files as a whole, and enough of the others
        if b"\0" in content[:8192]:
            return None
        if len(content) == BLOCK_BYTES:
            content = self.workspace.read_bytes(path, FILE_LIMIT_BYTES + 1)
        if len(content) > FILE_LIMIT_BYTES:
            self.cut.append(shown_path)
            content = content[:FILE_LIMIT_BYTES]
        content = content[3:] if content.startswith(b"\xef\xbb\xbf") else content
        return content if content.endswith(b"\n") or not content else content + b"\n"

    # ---------------------------------------------------------------------------------------------------- telling it

    def report(self, pattern: str) -> str:
        """Return the first matches in order, and a line on each thing that was left out."""
        lines = [text for _, _, text in sorted(self.found)[:MATCH_LIMIT]]
        return "\n".join([*lines, *(f"[{note}]" for note in self._notes(pattern))])

    def _notes(self, pattern: str) -> Iterator[str]:
        if len(self.found) > MATCH_LIMIT:
            yield f"The limit of {MATCH_LIMIT} matches is reached, and there are more. {NARROWING}"
        if not self.found:
            yield from self._why_nothing(pattern)
        if self.unreached:
            yield f"The time is over: {self.unreached} and what sorts after it was not searched. {NARROWING}"
        if self.too_slow:
            places = _some(sorted(self.too_slow))
            advice = "Avoid repeats of repeats, like (a+)+, and several .* in one pattern."
            yield f"Not searched, because the pattern takes too long there: {places}. {advice}"
        if self.cut:
            yield f"Searched only in the first {FILE_LIMIT_BYTES >> 20} MB: {_some(self.cut)}."
        if self.unreadable:
            yield f"Not searched, because they can't be read: {_some(self.unreadable)}."

    def _why_nothing(self, pattern: str) -> Iterator[str]:
        skipped = f" Skipped as binary: {self.binary_count}." if self.binary_count else ""
        yield f"No match. Files searched: {self.searched_count}.{skipped}"
        if self.suffix and not self.searched_count and not self.binary_count:
            there = ", ".join(f"{suffix or 'none'} ({n})" for suffix, n in self.other_suffixes.most_common(5))
            yield f"No file here ends in {self.suffix}. Extensions here: {there or 'there is no file at all'}."
        elif not self.searched_count and not self.include_protected:
            yield "Hidden folders, protected names and what .gitignore ignores are skipped."
        if "\n" in pattern or re.search(r"(?<!\\)(?:\\\\)*\\n", pattern):
            yield "The pattern holds a line break, but each line is searched by itself: search for a part of it."


def _blocks(pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
    """Yield the pieces in groups of about a block, so that many small files cost one exchange."""
    block: list[_Piece] = []
    size_bytes = 0
    for piece in pieces:
        block.append(piece)
        size_bytes += len(piece.content)
        if size_bytes >= BLOCK_BYTES:
            yield block
            block, size_bytes = [], 0
    if block:
        yield block


def _some(places: Sequence[object]) -> str:
    """Return the first few of the places, and how many more there are."""
    more = len(places) - NAMED_AT_MOST
    return ", ".join(map(str, places[:NAMED_AT_MOST])) + (f" and {more} more" if more > 0 else "")
