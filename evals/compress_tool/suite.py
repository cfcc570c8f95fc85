"""Does compress_tool help? Many large files are read; what the first ones say is corrected by a later one.

    turn 1         what will be asked for in the end, and the first file
    …              a file in each turn; three of them hold evidence, the others noise
    the last turn  answer from what you know: nothing may be read again

A cell that reads in its last turn all the same has failed, and is told as "read again". The conversation is not made
smaller by anything but the tool. Where the files do not fit the window (`hard` is about 128k tokens), an agent without
it ends by an overflow: that is a finding, too.

`--wording guided` asks for the tool in each turn; an arm that does not have it, or is another agent, gets the neutral
words. `all` runs each case both ways.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from evals.compress_tool.stories import NATURES
from evals.harness import scripts
from evals.harness.drawn import Draw
from evals.harness.measures import use_of_tool
from evals.harness.pairs import grade_pairs, proofs_of
from evals.harness.suite import Arm, Case, Grade, Inspection, Option, Options, Outcome, Script, Suite, Use
from mini_agent.conversation.events import AssistantMessageAdded, ToolResultAdded, UserMessageAdded
from mini_agent.session.event_log import LogEntry

TOOL = "compress_tool"
WITHOUT = "--disable-compress-tool"
ARMS = (Arm("on"), Arm("off", flags=(WITHOUT,)))
ENVIRONMENT = {
    "MINI_AGENT_COMPRESSION": "off",
    "MINI_AGENT_SHORTENING": "off",
    "MINI_AGENT_MAX_TOOL_ROUNDS": "60",  # in a turn that needs two, or three with the tool
}
ASK = "Then answer in one short sentence: what does it say about that?"
HINT = (
    f"When you know what it says, replace its output with {TOOL} by the facts that matter, with their exact names and "
    "values, and with what corrects what. Do that before you answer."
)


@dataclass(frozen=True)
class Pressure:
    """How much there is to read."""

    files: int
    tokens: int  # of each file, at four bytes; a result of more than a sixth of the window is cut
    timeout_seconds: float


PRESSURES = {"smoke": Pressure(4, 700, 900), "medium": Pressure(8, 4000, 1800), "hard": Pressure(26, 4900, 5400)}


def cases(options: Options) -> list[Case]:
    """Return a case of each nature, once or, with both wordings, twice."""
    wordings = ("neutral", "guided") if options["wording"] == "all" else (options["wording"],)
    return [_case(nature, options["pressure"], options["seed"], w) for nature in NATURES for w in wordings]


@functools.lru_cache(maxsize=2 * len(NATURES))
def _case(nature: str, level: str, seed: str, wording: str) -> Case:
    draw = Draw(f"{TOOL} {nature} {level} {seed}")  # the wordings have the same files
    story, pressure = NATURES[nature](draw), PRESSURES[level]
    stages = {number * pressure.files // 4: lines for number, lines in enumerate(story.stages)}  # noise comes last
    files, evidence = {}, {}
    for number in range(pressure.files):
        path = f"{story.folder}/part-{number + 1}.txt"
        lines, own = draw.noise(pressure.tokens, story.pattern), stages.get(number, ())
        for line, place in zip(own, sorted(draw.random.sample(range(len(lines)), len(own)))):
            lines.insert(place, line)
        files[path], evidence[path] = ("\n".join(lines) + "\n").encode(), own
    opening = f"In the end I shall ask you for this: {story.wanted}. We go through the files one by one.\n\n"
    reads = [f"Read {path} as a whole. {ASK}" for path in files]
    task = (
        f"Now answer from what you know. Call no tool and read nothing again. Tell me {story.wanted}. A line for each, "
        "`name: value`, with what holds now; do not mention any value that was corrected or is no longer valid."
    )
    return Case(
        id=f"{nature}-{level}-{wording}",
        files=files,
        turns=(opening + reads[0], *reads[1:], task),
        proofs=proofs_of(story.pairs, lambda text: {"answer": text}),
        facts=tuple(value for pair in story.pairs for value in pair.told),
        flags=("--no-project-instructions",),
        environment=ENVIRONMENT,
        tokens=2 * pressure.files * (2000 + pressure.files * pressure.tokens // 2),
        timeout_seconds=pressure.timeout_seconds,
        details={"pairs": story.pairs, "evidence": evidence, "guided": wording == "guided"},
    )


def has_tool(case: Case, arm: Arm) -> bool:
    """Tell whether the agent of this arm can compress its tool outputs."""
    return arm.is_ours and WITHOUT not in (*case.flags, *arm.flags)


def turns(case: Case, arm: Arm) -> tuple[str, ...]:
    """Return the turns, with the hint where it is wanted and can be followed."""
    if not (case.details["guided"] and has_tool(case, arm)):
        return case.turns
    return (*(f"{turn}\n{HINT}" for turn in case.turns[:-1]), case.turns[-1])


def grade(case: Case, outcome: Outcome) -> Grade:
    """Look for the pairs in the final answer."""
    return grade_pairs(outcome.answer, case.details["pairs"])


def check(case: Case) -> list[str]:
    """Find each value in one file and in no turn, and nowhere as a part of anything else."""
    texts = [content.decode().lower() for content in case.files.values()]
    places = {value: sum(text.count(value.lower()) for text in texts) for value in case.facts}
    spoiled = [value for value in case.facts if any(value.lower() in turn.lower() for turn in case.turns)]
    lines = "\n".join(line for lines in case.details["evidence"].values() for line in lines).lower()
    problems = [f"stands in other places than its evidence: {v}" for v in places if places[v] != lines.count(v.lower())]
    return problems + [f"a turn tells {value}" for value in spoiled]


def inspect(case: Case, entries: Sequence[LogEntry]) -> Inspection:
    """Tell whether the last turn called a tool to read, and whether all the evidence had been seen whole."""
    events = [entry.event for entry in entries]
    begun = [place for place, event in enumerate(events) if isinstance(event, UserMessageAdded)]
    last = events[begun[-1] :] if len(begun) == len(case.turns) else []
    replies = [event for event in last if isinstance(event, AssistantMessageAdded)]
    read_again = any(call.name != TOOL for reply in replies for call in reply.message.tool_calls)
    seen = "\n".join(event.text for event in events if isinstance(event, ToolResultAdded))
    is_seen = all(line in seen for lines in case.details["evidence"].values() for line in lines)
    return Inspection("read again" if read_again else "", {"read_again": read_again, "evidence_seen": is_seen})


def treatment(entries: Sequence[LogEntry]) -> Use:
    """Return how often the tool was called."""
    return use_of_tool(TOOL, entries)


def script(case: Case, arm: Arm, kind: str) -> Script:
    """Return a script: good compresses what it has read, bad believes what is outdated, careless reads again."""
    proof = next(proof for proof in case.proofs if proof.passes != (kind == "bad"))
    replies = []
    for path, lines in case.details["evidence"].items():
        replies.append(scripts.reply("", scripts.call("read_file", path=path)))
        if kind == "good" and has_tool(case, arm):
            text = "\n".join(lines) or "Nothing about it."
            shorter = {"tool_name": "read_file", "tool_arguments": {"path": path}, "replace_content": text}
            replies.append(scripts.reply("", scripts.call(TOOL, replacements=[shorter])))
        replies.append(scripts.reply("Noted."))
    if kind == "careless":
        replies.append(scripts.reply("", scripts.call("read_file", path=next(iter(case.files)))))
    return {"replies": [*replies, scripts.reply(proof.answer)], "summaries": []}


SUITE = Suite(
    name=TOOL,
    asks="Does compress_tool help to keep what matters of many large tool outputs?",
    cases=cases,
    arms=ARMS,
    grade=grade,
    options=(
        Option("pressure", "smoke", tuple(PRESSURES), "how much there is to read: about 3k, 32k or 128k tokens"),
        Option("wording", "neutral", ("neutral", "guided", "all"), "whether the turns ask for the tool, where it is"),
    ),
    turns=turns,
    treatment=treatment,
    inspect=inspect,
    check=check,
    script=script,
)
