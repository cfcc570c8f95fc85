"""Does compression keep what matters? Long sessions that end in a task which rests on their beginning.

    turn 1         what the session is about, and the first report
    turn 2         what must be remembered, before a report
    …              reports: two of three are pasted, the third is a file to be read
    the middle     the first change, before a report; a little later the second one
    …              reports
    the last turn  the task; nothing is repeated

What must be remembered is not in the first turn, because a compression leaves that one as it is. `--size` is what all
reports and turns come to, at four bytes a token; whether a cell really exceeded the window is read from its log. The
window is set for all arms alike, so that it is known. Without compression everything is sent: a server whose own
window is larger shows what is lost by compressing, one that has just this window shows what compressing is good for.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from evals.context_retention.stories import NATURES, Story
from evals.harness import scripts
from evals.harness.drawn import Draw
from evals.harness.measures import last_turn_end, use_of_compression
from evals.harness.suite import Arm, Case, Grade, Inspection, Option, Options, Outcome, Script, Suite
from mini_agent.cli import build_parser
from mini_agent.context.tokens import message_tokens, text_tokens, tools_tokens
from mini_agent.conversation.events import (
    AssistantMessageAdded,
    HistorySummarized,
    InstructionsSet,
    ToolOutputCompressed,
    ToolResultAdded,
    UserMessageAdded,
)
from mini_agent.session.event_log import LogEntry

SIZES = {f"{k}k": k * 1024 for k in (8, 16, 32, 64, 128, 256, 512)}
SIZES["1m"] = 1024 * 1024
WINDOWS = {f"{k}k": k * 1024 for k in (4, 8, 16, 32, 64, 128, 256)}
SMALLEST_REPORT_TOKENS, LARGEST_REPORT_TOKENS = 340, 8000  # below a sixth of the window, so that no result is cut
OPENING = (
    "We go through the depots' reports. Some I paste, some are files that I ask you to read. Answer each with one "
    "short sentence. At the very end there is a task that rests on what I tell you on the way."
)
ASK = "Is a delay reported? Answer in one short sentence."
_WINDOW = "MINI_AGENT_CONTEXT_WINDOW"
ARMS = (
    Arm("on", environment={"MINI_AGENT_COMPRESSION": "on"}),
    Arm("off", environment={"MINI_AGENT_COMPRESSION": "off"}),
)


def window_tokens(options: Options) -> int:
    """Return the window that these options ask for: by default half of the size, at most 128k."""
    return WINDOWS.get(options["window"], min(SIZES[options["size"]] // 2, WINDOWS["128k"]))


def cases(options: Options) -> list[Case]:
    """Return a case of each nature."""
    window = str(window_tokens(options))
    made = [_case(nature, options["size"], options["seed"]) for nature in NATURES]
    return [replace(case, environment={_WINDOW: window}) for case in made]


@functools.lru_cache(maxsize=len(NATURES))
def _case(nature: str, size: str, seed: str) -> Case:
    draw = Draw(f"context_retention {nature} {size} {seed}")
    story = NATURES[nature][0](draw)
    files, turns = _session(story, draw, SIZES[size])
    return Case(
        id=f"{nature}-{size}",
        files=files,
        turns=turns,
        proofs=story.proofs,
        facts=story.values,
        flags=("--disable-compress-tool", "--no-project-instructions"),  # one thing is measured
        tokens=len(turns) * SIZES[size] * 2 // 3,  # requests, the mean size of one without compression
        timeout_seconds=900 + SIZES[size] // 50,
        details=story.details,
    )


def _session(story: Story, draw: Draw, size: int) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return files and turns that come to `size` tokens together, and the story told in them."""
    each = min(max(size // 48, SMALLEST_REPORT_TOKENS), LARGEST_REPORT_TOKENS)
    count = -(-size // each)
    told = {0: OPENING, 1: story.early, count // 2: story.changes[0], count * 2 // 3: story.changes[1]}
    files, turns = {}, []
    for number in range(count):
        report = "\n".join([f"Report {number + 1}", *draw.noise(each)])
        if number % 3 == 2 and number not in told:
            path = f"reports/report-{number + 1}.txt"
            files[path] = report.encode() + b"\n"
            turns.append(f"Read {path} as a whole. {ASK}")
        else:
            turns.append("\n\n".join([*([told[number]] if number in told else []), f"{ASK}\n{report}"]))
    return files, (*turns, story.task)


def grade(case: Case, outcome: Outcome) -> Grade:
    """Ask the grader of the case's nature."""
    return NATURES[case.id.rpartition("-")[0]][1](case.details, outcome)


def check(case: Case) -> list[str]:
    """Find each value in one turn before the last and nowhere else, even in another word; and the size reached."""
    task = case.turns[-1]
    told = [turn.lower() for turn in case.turns[:-1]]
    read = [content.decode().lower() for content in case.files.values()]
    problems = [f"told in {n} turns: {v}" for v in case.facts if (n := sum(v.lower() in turn for turn in told)) != 1]
    problems += [f"repeated: {v}" for v in case.facts if v.lower() in task.lower() or any(v.lower() in r for r in read)]
    size, wanted = sum(map(text_tokens, [*case.turns, *read])), SIZES[case.id.rpartition("-")[2]]
    return problems + ([] if size >= wanted else [f"comes to {size} tokens, not to {wanted}"])


def inspect(case: Case, entries: Sequence[LogEntry]) -> Inspection:
    """Tell whether the raw history exceeded the window that the agent was given, or the server's own.

    case: with the flags and the environment that the cell had.
    """
    raw, window = raw_tokens(entries), _window_of(case)
    end = last_turn_end(entries)
    exceeded = raw > window or (end is not None and end.kind == "context_overflow")
    return Inspection(facts={"raw_tokens": raw, "window_tokens": window, "exceeded_window": exceeded})


def _window_of(case: Case) -> int:
    flag = build_parser().parse_args(list(case.flags)).context_window
    return int(flag or case.environment[_WINDOW])


def raw_tokens(entries: Sequence[LogEntry]) -> int:
    """Return the size of all that was said, with instructions and tools, as if nothing had been compressed.

    Up to the first compression it is the server's own count, where it counts; what comes after is estimated.
    """
    total, instructions, is_whole = 0, 0, True
    for event in (entry.event for entry in entries):
        if isinstance(event, InstructionsSet):
            total -= instructions  # the new ones stand in the place of the old ones
            instructions = text_tokens(event.text) + tools_tokens(event.tools)
            total += instructions
        elif isinstance(event, (UserMessageAdded, ToolResultAdded)):
            total += text_tokens(event.text)
        elif isinstance(event, (HistorySummarized, ToolOutputCompressed)):
            is_whole = False
        elif isinstance(event, AssistantMessageAdded):
            counted = is_whole and event.usage
            total = counted.input_tokens + counted.output_tokens if counted else total + message_tokens(event.message)
    return total


def script(case: Case, arm: Arm, kind: str) -> Script:
    """Return a script that reads each file when it is asked to, and does in the last turn what a proof does.

    No usage: the agent then estimates, so that a scripted session is compressed where a real one would be.
    """
    proof = next(proof for proof in case.proofs if proof.passes != (kind == "bad"))
    replies: list[scripts.Reply] = []
    for turn in case.turns[:-1]:
        if turn.startswith("Read ") and kind != "careless":
            replies.append(scripts.reply("", scripts.call("read_file", path=turn.split()[1])))
        replies.append(scripts.reply("No delay is reported."))
    change = scripts.patch(case.files, proof.files)
    if change and kind != "careless":
        replies.append(scripts.reply("", scripts.call("apply_patch", patch=change)))
    replies.append(scripts.reply(proof.answer or "Done."))
    for reply in replies:
        del reply["usage"]
    return {"replies": replies, "summaries": ["What was said so far, in short."] * len(replies)}


SUITE = Suite(
    name="context_retention",
    asks="Does compressing a long conversation keep what was agreed on early and changed midway?",
    cases=cases,
    arms=ARMS,
    grade=grade,
    options=(
        Option("size", "8k", tuple(SIZES), "tokens that all turns and files come to"),
        Option("window", "half", ("half", *WINDOWS), "the agent's window; half: of the size, at most 128k"),
    ),
    treatment=use_of_compression,
    inspect=inspect,
    check=check,
    script=script,
)
