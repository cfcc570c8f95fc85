"""How long apply_patch takes beside `git apply`, on a file of 50,000 lines: printed as ratios.

    python -m evals.speed.apply_patch

Both read the same patch, write the same file, and are timed alternately; the interpreter's start is not counted
(git's start is). Ours also syncs what it writes to the disk, which git does not; the last column is without that.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Callable
from unittest import mock

from mini_agent.tools.apply_patch.apply_patch import apply_patch
from mini_agent.tools.workspace import Workspace

LINES = 50_000
RUNS = 9


def make_patch(hunks: int) -> tuple[str, str, str]:
    """Return a text, a patch of it with three lines of context, and the text after it."""
    chance = random.Random(hunks)
    before = [f"row {number} {chance.randrange(10**9)}" for number in range(1, LINES + 1)]
    after, parts = list(before), ["diff --git a/big.txt b/big.txt\n--- a/big.txt\n+++ b/big.txt\n"]
    for number in range(hunks):
        at = 10 + number * (LINES // (hunks + 1))
        after[at] = f"row {at + 1} changed"
        lines = [f" {line}" for line in before[at - 3 : at]]
        lines += [f"-{before[at]}", f"+{after[at]}", *(f" {line}" for line in before[at + 1 : at + 4])]
        parts.append(f"@@ -{at - 2},7 +{at - 2},7 @@\n" + "\n".join(lines) + "\n")
    return "\n".join(before) + "\n", "".join(parts), "\n".join(after) + "\n"


def shifted(patch: str) -> str:
    """Return the patch with every line number wrong by 5."""
    lines = patch.split("\n")
    for at, line in enumerate(lines):
        if line.startswith("@@"):
            start = int(line.split(",")[0][4:]) + 5
            lines[at] = f"@@ -{start},7 +{start},7 @@"
    return "\n".join(lines)


def seconds(prepare: Callable[[], object], work: Callable[[], object]) -> float:
    """Return how long the work takes, once."""
    prepare()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(hunks: int, change: Callable[[str], str] = str) -> None:
    """Print one line: medians in milliseconds, and the ratios."""
    before, patch, after = make_patch(hunks)
    patch = change(patch)
    with tempfile.TemporaryDirectory() as folder:
        file, patch_file = Path(folder, "big.txt"), Path(folder, "the.patch")
        patch_file.write_text(patch, encoding="utf-8")
        workspace = Workspace(Path(folder))

        def lay_out() -> None:
            file.write_text(before, encoding="utf-8")

        def ours() -> None:
            apply_patch(patch, workspace)

        def ours_unsynced() -> None:
            with mock.patch.object(os, "fsync"):
                ours()

        def git() -> None:
            subprocess.run(["git", "apply", str(patch_file)], cwd=folder, check=True)

        times: dict[str, list[float]] = {"git": [], "ours": [], "ours_unsynced": []}
        for _ in range(RUNS):
            for work in (git, ours, ours_unsynced):
                times[work.__name__].append(seconds(lay_out, work))
                assert file.read_text(encoding="utf-8") == after
    medians = {name: statistics.median(values) for name, values in times.items()}
    label = f"{hunks} hunks" + (", line numbers wrong" if change is not str else "")
    print(
        f"{label:34} git {medians['git'] * 1000:6.1f} ms   ours {medians['ours'] * 1000:6.1f} ms "
        f"= {medians['ours'] / medians['git']:.2f} x   unsynced {medians['ours_unsynced'] / medians['git']:.2f} x"
    )


if __name__ == "__main__":
    for count in (200, 1000):
        measure(count)
        measure(count, shifted)
