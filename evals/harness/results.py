"""results.jsonl: one line for each cell, written when the cell is over. A run that breaks leaves whole lines."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evals.harness.catalog import UsageError
from evals.harness.cell import NO_FAULT_OF_THE_ARM, RECORD_VERSION

NAME = "results.jsonl"
Record = dict[str, Any]
Key = tuple[str, str, str, int]


def key_of(record: Record) -> Key:
    """Return suite, case, arm and repeat of a record."""
    return record["suite"], record["case"], record["arm"], record["repeat"]


def read_results(folder: Path) -> dict[Key, Record]:
    """Return the records of a folder, of a cell that was run again the last; a torn last line is left out.

    Raises UsageError where a line before the last cannot be read.
    """
    path = folder / NAME
    if not path.is_file():
        raise UsageError(f"{folder} holds no {NAME}")
    lines = path.read_bytes().split(b"\n")
    records = {}
    for number, line in enumerate(lines[:-1], 1):  # a line without its end is torn, however complete it looks
        try:
            record = json.loads(line)
            if record["v"] != RECORD_VERSION:
                raise ValueError(f"version {record['v']!r}")
            records[key_of(record)] = record
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path}, line {number}: {error}; remove that line to go on") from error
    return records


def is_final(record: Record) -> bool:
    """Tell whether a cell is done with, and not to be run again because it says nothing about its arm."""
    return record["why"] not in NO_FAULT_OF_THE_ARM


class ResultsFile:
    """The file of a run that appends to it, from several threads."""

    def __init__(self, folder: Path) -> None:
        """Open it, making it where there is none; cut off a torn last line."""
        path = folder / NAME
        self._lock = threading.Lock()
        self._file = open(path, "ab")  # noqa: SIM115 - it stays open as long as the run
        whole = path.read_bytes().rfind(b"\n") + 1
        self._file.truncate(whole)

    def append(self, record: Record) -> None:
        """Write a record at once."""
        with self._lock:
            self._file.write(json.dumps(record, ensure_ascii=True).encode("ascii") + b"\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def join(folders: Sequence[Path]) -> list[Record]:
    """Return the records of several folders: shards of one run, or runs of the same cells, which count as repeats."""
    joined: dict[Key, Record] = {}
    for folder in dict.fromkeys(folder.resolve() for folder in folders):
        records = read_results(folder)
        if not joined.keys().isdisjoint(records):
            before = max(int(record["repeat"]) for record in joined.values())
            records = {key: {**record, "repeat": record["repeat"] + before} for key, record in records.items()}
        joined.update((key_of(record), record) for record in records.values())
    return list(joined.values())
