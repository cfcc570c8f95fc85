"""The child process in which grep matches: a regular expression can run for hours, and only a process can be stopped.

`grep.py` starts this file by itself, so it imports nothing of ours. It opens no file either: what it matches, it is
sent, so that the path policy has one place. All of the exchange is UTF-8 over its stdin and stdout:

    in   a block: the pattern
    out  an answer: nothing, or what is wrong with the pattern
    then, again and again
    in   a block: whole lines
    out  an answer: `index:text` for each of them that matches, index from 0

A block is its length in bytes on a line of its own, and then the bytes. An answer is any number of lines, and then an
empty one. The child ends when its stdin does, and by itself after as many seconds as its one argument says: inside a
match it would not notice that its parent is gone.
"""

from __future__ import annotations

import faulthandler
import re
import sys

SHOWN_CHARACTERS = 300

# ------------------------------------------------------------------------------------------------ reading a pattern

_TOKEN = re.compile(
    r"\\(?:N\{[^}]*\}|x..|u.{4}|U.{8}|[0-9]{1,3}|.)"  # an escape
    r"|\[\^?\]?(?:\\.|[^\]\\])*\]"  # a class
    r"|\{[0-9,]*\}"  # a repeat count
    r"|.",
    re.DOTALL,
)
_NOT_READ = re.compile(r"\(\?(?:#|[a-zA-Z]*[ix])")  # comments, and flags that change what a letter stands for
_MOST_TEXTS = 8  # looking for more than these is no quicker than the pattern itself


def required_texts(pattern: str) -> list[str]:
    """Return texts of which every line that matches a valid pattern holds at least one; [] where that's not easy.

    Looking for them saves time, and sometimes all of it: an e-mail pattern takes minutes on a long line of letters,
    and looking for the @ takes none. Letters stand for themselves. All that may stand for something else ends a run
    of them: a class, a whole group, an escape like \\w, and a repeat, which takes the letter before it along where it
    may mean none. Of each alternative the longest run is taken.
    """
    if _NOT_READ.search(pattern):
        return []
    runs, texts, depth = [""], [], 0
    for token in [*_TOKEN.findall(pattern), "|"]:
        is_escaped_sign = token[0] == "\\" and len(token) == 2 and not token[1].isalnum()
        if depth == 0 and (is_escaped_sign or (len(token) == 1 and token not in "()|*+?.^$\ufffd")):
            runs[-1] += token[-1]  # but not U+FFFD: undecodable bytes are shown as that
            continue
        depth += (token == "(") - (token == ")")
        if token in "*?" or token[0] == "{":
            runs[-1] = runs[-1][:-1]
        if token == "|" and depth == 0:
            texts.append(max(runs, key=len))
            runs = []
        runs.append("")
    return texts if depth == 0 and all(texts) and len(texts) <= _MOST_TEXTS else []


def compile_pattern(text: str) -> tuple[re.Pattern[str] | None, str]:
    """Return the compiled pattern and "", or None and what is wrong with it, and where, in one line."""
    try:
        return re.compile(text), ""
    except re.error as error:
        if error.pos is None:
            return None, error.msg
        rest = text[error.pos : error.pos + 20]
        return None, f"{error.msg} at position {error.pos} ({f'here: {rest!r}' if rest else 'its end'})"
    except (ValueError, OverflowError, RecursionError, MemoryError) as error:  # flags, a repeat count, depth
        return None, str(error) or type(error).__name__


# ------------------------------------------------------------------------------------------------- answering blocks


def _answer_lines(pattern: re.Pattern[str], required: list[str], block: bytes) -> None:
    lines = block.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    for index, line in enumerate(lines[:-1]):  # a block ends with a line break: nothing follows it
        if not required or any(text in line for text in required):
            match = pattern.search(line)
            if match:
                _write_line(f"{index}:{around(line, match.start())}")


def around(line: str, start: int) -> str:
    """Return a long line's 300 characters around `start`, as they are, and then which characters these were."""
    if len(line) <= SHOWN_CHARACTERS:
        return line
    first = max(0, min(start - SHOWN_CHARACTERS // 3, len(line) - SHOWN_CHARACTERS))
    last = first + SHOWN_CHARACTERS
    return f"{line[first:last]} [characters {first + 1} to {last} of {len(line)}]"


def _read_block() -> bytes:
    """Return the next block; exit where there is none."""
    head = sys.stdin.buffer.readline()
    if not head:
        sys.exit()
    return sys.stdin.buffer.read(int(head))


def _write_line(text: str) -> None:
    sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")


def main() -> None:
    """Answer blocks until stdin ends."""
    faulthandler.dump_traceback_later(float(sys.argv[1]), exit=True)  # unlike a thread, it does not wait for `re`
    text = _read_block().decode("utf-8", "surrogatepass")
    pattern, problem = compile_pattern(text)
    required = required_texts(text) if pattern else []
    if problem:
        _write_line(problem)
    while True:
        _write_line("")
        sys.stdout.buffer.flush()
        block = _read_block()
        if pattern:
            _answer_lines(pattern, required, block)


if __name__ == "__main__":
    main()
