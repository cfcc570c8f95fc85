"""The command line for tests: in this process, or as a process of its own, with settings of nobody's but the test's."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable
from unittest import mock

from mini_agent.cli import main
from mini_agent.session.event_log import LogEntry, read_log
from tests import COMPILED

REPOSITORY = Path(__file__).resolve().parents[1]
PATIENCE_SECONDS = 30  # against hanging; nothing takes that long


@dataclass(frozen=True)
class Ran:
    """What a run came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """Return a script's reply that calls one tool."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


class CommandLineTestCase(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.workspace = self.folder / "work"
        self.workspace.mkdir()
        self.environment: dict[str, str] = {}
        (self.folder / "none.env").write_text("")

    def script(self, *replies: Any, summaries: Sequence[str] = ()) -> None:
        """Let these replies answer from now on; a text stands for a reply that is only that."""
        path = self.folder / "script.json"
        listed = [{"text": reply} if isinstance(reply, str) else reply for reply in replies]
        path.write_text(json.dumps({"replies": listed, "summaries": list(summaries)}))
        self.environment["MINI_AGENT_SCRIPT"] = str(path)

    def arguments(self, *arguments: str) -> list[str]:
        own = [] if "-w" in arguments else ["-w", str(self.workspace)]
        return [*own, "--env-file", str(self.folder / "none.env"), *arguments]

    def variables(self) -> dict[str, str]:
        """Return the whole environment of a run."""
        own = {"HOME": str(self.folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        return {**own, **COMPILED, **self.environment}

    def run_here(self, *arguments: str, stdin: bytes = b"", encoding: str = "utf-8") -> Ran:
        """Run it in this process."""
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2))
        streams = {"stdin": io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"), "stdout": out, "stderr": err}
        with mock.patch.multiple(sys, **streams), mock.patch.dict(os.environ, self.variables(), clear=True):
            code = main(self.arguments(*arguments))
        texts = [stream.buffer.getvalue().decode(encoding) for stream in (out, err)]  # type: ignore[attr-defined]
        return Ran(code, *texts)

    def start(
        self, *arguments: str, shell: str = "", python: Sequence[str] = ("-m", "mini_agent"), **options: Any
    ) -> Any:
        """Start it as a process of its own; `shell` redirects its streams, as in `>&-`."""
        # -S: no site-packages, whose hooks take longer to load than we do
        command = [sys.executable, "-S", *python, *self.arguments(*arguments)]
        if shell:
            command = ["sh", "-c", f'exec "$@" {shell}', "sh", *command]
        variables = {"PYTHONPATH": str(REPOSITORY), **self.variables()}
        pipe = subprocess.PIPE
        streams = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, "cwd": self.folder, **options}
        process = subprocess.Popen(command, env=variables, **streams)
        self.addCleanup(self._end, process)
        return process

    def _end(self, process: Any) -> None:
        if process.poll() is None:
            process.kill()
        process.communicate()

    def end_of(self, process: Any) -> Ran:
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        return Ran(process.returncode, *((data or b"").decode("utf-8") for data in (out, err)))

    def run_apart(self, *arguments: str, **options: Any) -> Ran:
        """Run it as a process of its own."""
        return self.end_of(self.start(*arguments, **options))

    def wait_until(self, holds: Callable[[], Any]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            self.assertLess(time.monotonic(), deadline, "it never came true")
            time.sleep(0.01)

    def log_paths(self) -> list[Path]:
        return sorted(self.workspace.glob(".mini_agent/sessions/*.jsonl"))

    def log(self) -> list[LogEntry]:
        """Return the entries of the only session's log."""
        (path,) = self.log_paths()
        return read_log(path)
