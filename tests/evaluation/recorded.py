"""Recorded cells for the statistics: as a run leaves them, made up from a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CASES, REPEATS = 10, 3


def record(case: str, arm: str, repeat: int, **others: Any) -> dict[str, Any]:
    """Return a line of results.jsonl of a cell that passed."""
    return {
        "v": 1,
        "suite": "lookup",
        "case": case,
        "arm": arm,
        "arm_number": 0 if arm == "new" else 1,
        "repeat": repeat,
        "passed": True,
        "score": 1.0,
        "missing": [],
        "forbidden": [],
        "why": "",
        "problem": "",
        "used": None,
        "tokens": {"in": 9000, "out": 1000, "cached": 0},
        "requests": 4,
        "rounds": 4,
        "calls": {"grep": 3},
        "tool_errors": {},
        "compressions": 0,
        "characters_saved": 0,
        "model": "recorded",
        "seconds": 5.0,
        "exit_code": 0,
        "facts": {},
        "answer": "42",
        "started": "2026-01-31T09:30:00.000Z",
        "seed": "1",
        "versions": {"mini_agent": "0", "python": "3"},
        "sessions": [],
        "setting": {"options": {"seed": "1"}, "command": [], "environment": {}, "scripted": ""},
        **others,
    }


def failed(case: str, arm: str, repeat: int, why: str = "wrong", **others: Any) -> dict[str, Any]:
    """Return the line of a cell that failed."""
    return record(case, arm, repeat, passed=False, score=0.0, why=why, **others)


def noisy(seed: int, better: Mapping[str, float] | None = None, dearer: Mapping[str, float] | None = None) -> list[Any]:
    """Return a run in which cases are of different size and luck, and arms as good and as dear as is said of them.

    better: by arm, what is added to the probability to pass. dearer: by arm, the factor on tokens.
    """
    chance = random.Random(seed)
    records = []
    for number in range(CASES):
        luck, size = chance.uniform(0.2, 0.9), chance.uniform(5_000, 50_000)
        for repeat in range(1, REPEATS + 1):
            for arm in ("new", "old"):
                tokens = int(size * chance.lognormvariate(0, 0.3) * (dearer or {}).get(arm, 1))
                cell = record if chance.random() < luck + (better or {}).get(arm, 0) else failed
                seconds = chance.lognormvariate(1, 0.5)
                told = {"tokens": {"in": tokens, "out": 500, "cached": 0}, "seconds": seconds}
                records.append(cell(f"case-{number}", arm, repeat, **told))
    return records


def write(folder: Path, records: Sequence[Mapping[str, Any]], torn: str = "") -> Path:
    """Write records as a run does; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line) + "\n" for line in records)
    (folder / "results.jsonl").write_text(text + torn, encoding="utf-8")
    return folder
