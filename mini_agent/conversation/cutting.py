"""How a text that is too long for the model is cut: in the middle, with a line that says so.

It stands on the lowest floor because tools cut what they return, and the context what it asks a summary of.
"""

from __future__ import annotations


def cut_middle(text: str, limit_bytes: int, narrowing: str = "") -> str:
    """Return `text` in at most about `limit_bytes` of UTF-8: its first 70 %, a line on what is missing, its last 30 %.

    The cuts fall on line ends where there are any near.
    """
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= limit_bytes:
        return text
    head = data[: limit_bytes * 7 // 10]
    tail = data[len(data) - limit_bytes * 3 // 10 :]
    if b"\n" in head[len(head) // 2 :]:
        head = head[: head.rindex(b"\n") + 1]
    if b"\n" in tail[: len(tail) // 2]:
        tail = tail[tail.index(b"\n") + 1 :]
    missing = len(data) - len(head) - len(tail)
    note = f"[… {missing:,} of {len(data):,} bytes are left out here{'. ' + narrowing if narrowing else ''} …]"
    head_text, tail_text = head.decode("utf-8", "ignore"), tail.decode("utf-8", "ignore")
    return f"{head_text.rstrip(chr(10))}\n{note}\n{tail_text}"
