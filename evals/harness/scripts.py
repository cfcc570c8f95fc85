"""Scripts for `--scripted`: what a good, a bad and a careless model would do in a case, derived from its proofs.

    good       reads the files that matter, makes the change of the first right proof, gives its answer
    bad        reads them as well, and then does and says what the first wrong proof does
    careless   calls no tool at all, and says what the first right proof says

They need no model, so that a run of the whole harness costs nothing; they tell nothing about any model.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from evals.harness.suite import Arm, Case, Files, Script, Suite

KINDS = ("good", "bad", "careless")
MOST_READS = 6  # files that a derived script reads

Reply = dict[str, Any]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """Return a tool call of a script."""
    return {"name": name, "arguments": arguments}


def reply(text: str, *calls: Mapping[str, Any]) -> Reply:
    """Return a reply of a script, with calls or, without, as a turn's answer; it costs tokens, so that they add up."""
    usage = {"input": 1000, "output": 10 + len(text) // 4 + 20 * len(calls), "cached": 0}
    return {"text": text, "tool_calls": [dict(call) for call in calls], "usage": usage}


def patch(before: Mapping[str, bytes], overlay: Files) -> str:
    """Return the patch, in git's form, that lays an overlay over files; "" where that changes nothing."""
    parts = []
    for name, content in sorted(overlay.items()):
        old, new = before.get(name), content
        if old == new:
            continue
        # a carriage return belongs to the line's end here, as in what git prints
        old_lines, new_lines = (_lines((data or b"").decode("utf-8")) for data in (old, new))
        old_name, new_name = "/dev/null" if old is None else f"a/{name}", "/dev/null" if new is None else f"b/{name}"
        mode = "new file mode 100644\n" if old is None else "deleted file mode 100644\n" if new is None else ""
        diff = "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in difflib.unified_diff(old_lines, new_lines, old_name, new_name)
        )
        parts.append(f"diff --git a/{name} b/{name}\n{mode}{diff}")
    return "".join(parts)


def _lines(text: str) -> list[str]:
    return [line + "\n" for line in text.split("\n")[:-1]] + [rest for rest in [text.split("\n")[-1]] if rest]


def script_for(suite: Suite, case: Case, arm: Arm, kind: str) -> Script:
    """Return the suite's own script for a cell, or the derived one."""
    return suite.script(case, arm, kind) or derived_script(case, len(suite.turns(case, arm)), kind)


def derived_script(case: Case, turns: int, kind: str) -> Script:
    """Return a script of one kind for a case of so many turns: all the work is done in the last."""
    proof = next(proof for proof in case.proofs if proof.passes != (kind == "bad"))
    replies = [reply("Understood.") for _ in range(turns - 1)]
    if kind != "careless":
        replies.append(reply("I look first.", call("list_files")))
        replies += [reply("", call("read_file", path=name)) for name in _to_read(case, proof.files)]
        change = patch(case.files, proof.files)
        if change:
            replies.append(reply("", call("apply_patch", patch=change)))
    return {"replies": [*replies, reply(proof.answer or "Done.")], "summaries": ["What was said so far."] * turns}


def _to_read(case: Case, overlay: Files) -> list[str]:
    """Return the files that a change touches, and those that hold a fact."""
    touched = [name for name in overlay if name in case.files]
    holding = [name for name, text in case.files.items() if any(fact.encode() in text for fact in case.facts)]
    return list(dict.fromkeys(touched + holding))[:MOST_READS]
