"""The demonstration: a scripted model mends a small broken project; all but the model is real.

The sample project is copied to a new folder, which is left for the user to look at: the record and the log of the
turn lie in it. Its own tests run before and after, and their verdict is the demonstration's.
"""

from __future__ import annotations

import difflib
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

from mini_agent.agent.runner import TurnResult
from mini_agent.settings import Settings

SAMPLE = Path(__file__).parent / "sample"
SCRIPT = Path(__file__).parent / "script.json"
REQUEST = "Two tests of this project fail. Find out why and mend it."
TEST_COMMAND = ("-m", "unittest", "discover", "-s", "tests")
TESTS_TIMEOUT_SECONDS = 60  # they take a moment; this is for a machine that hangs


def run_demo(
    run_turn: Callable[[Settings, str], TurnResult], write: Callable[[str], None], folder: Path | None = None
) -> int:
    """Run the demonstration and return the exit status: 0 when the turn was completed and the sample's tests now pass.

    run_turn: opens an agent with these settings and runs one turn of it with this request, as for any user.
    write: gets the lines that a person reads.
    folder: where the sample is copied to, empty or new; by default a new folder for temporary files.
    """
    write("This is a demonstration: the model is scripted (no key, no network); loop, tools and files are real.")
    try:
        folder = Path(tempfile.mkdtemp(prefix="mini_agent_demo_") if folder is None else folder).resolve()
        copy_sample(folder)
    except OSError as error:
        write(f"The sample project could not be copied: {error}. Set TMPDIR to a folder that can be written.")
        return 1
    write(f"A small project with a fault in it now lies in {folder}")
    run_tests(folder, write)
    write(f"\nThe user asks: {REQUEST}\n")
    result = run_turn(Settings(workspace=folder, model="scripted", script=SCRIPT), REQUEST)
    write("\nWhat is different on the disk now:\n" + "".join(f"  {line}" for line in _changes(folder)).rstrip("\n"))
    passed = run_tests(folder, write)
    write("\nTo look at:")
    for kind, pattern in (("record", "sessions/*.md"), ("log", "sessions/*.jsonl"), ("trace", "logs/*.log")):
        for path in folder.glob(f".mini_agent/{pattern}"):
            write(f"  {kind:7} {path}")
    write(f"  project {folder} (delete it when you like)")
    return 0 if passed and result.status == "completed" else 1


def _sample_files() -> Iterator[Path]:
    """Yield the sample's files, relative to it; what Python or an installer compiled beside them is none of it."""
    for path in sorted(SAMPLE.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(SAMPLE)


def copy_sample(folder: Path) -> None:
    """Copy the sample project into `folder`; not its permissions, since an installed package may be read-only."""
    for path in _sample_files():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes((SAMPLE / path).read_bytes())


def run_tests(folder: Path, write: Callable[[str], None]) -> bool:
    """Run the sample's own tests in a process of their own, write what they said in short, return whether they passed.

    The process gets no setting of this program, the key least of all, and leaves no compiled file behind.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_KEPT_BACK)}
    write(f"\nIts own tests: {shlex.join(['python3', *TEST_COMMAND])}")
    try:
        done = subprocess.run(
            [sys.executable, "-B", *TEST_COMMAND],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TESTS_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        write(f"  they could not be run: {error}")
        return False
    for line in done.stdout.decode("utf-8", errors="replace").splitlines():
        is_detail = line.startswith((" ", "=", "-", "Traceback")) or set(line) <= set(".FE")
        if not is_detail:  # what failed and how many, not where
            write(f"  {line}")
    return done.returncode == 0


_KEPT_BACK = ("OPENAI_", "MINI_AGENT_", "PYTHON")


def _changes(folder: Path) -> Iterator[str]:
    """Yield the lines of a unified diff from the sample to what the folder holds now."""
    for path in _sample_files():
        before, after = (_lines(root / path) for root in (SAMPLE, folder))
        yield from difflib.unified_diff(before, after, f"a/{path.as_posix()}", f"b/{path.as_posix()}", n=1)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
