"""Running a suite: the plan of its cells, in random order and interleaved; their end, and what comes of them."""

from __future__ import annotations

import argparse
import queue
import random
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evals.harness.arms import choose_arms, read_scripted, told
from evals.harness.catalog import UsageError
from evals.harness.cell import Cell, run_cell
from evals.harness.processes import Stopped, stop_all
from evals.harness.report import write_report
from evals.harness.results import NAME, Key, ResultsFile, is_final, read_results
from evals.harness.scripts import KINDS
from evals.harness.suite import Arm, Case, Options, Suite
from mini_agent import BAD_USAGE, INTERRUPTED

ASK_ABOVE_TOKENS = 1_000_000

AGENT_HELP = (
    "another agent, besides. STYLE is how it gets line breaks: backslash (default) or escaped, with a line on standard "
    "input for each turn; or process, with a process for each turn, which gets it in the place of {turn}, or else on "
    "standard input"
)


def main(suite: Suite, arguments: list[str] | None = None) -> int:
    """Run the suite as the flags say; return 0, 1 where cells could not be run, 2 for bad usage, 130 for Ctrl-C."""
    flags = _parser(suite).parse_args(arguments)
    try:
        return _run(suite, flags)
    except KeyboardInterrupt:  # before anything ran
        return INTERRUPTED
    except (UsageError, OSError) as error:
        print(f"evals.{suite.name}: {error}", file=sys.stderr)
        return BAD_USAGE


def _parser(suite: Suite) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m evals.{suite.name}", description=suite.asks)
    add = parser.add_argument
    add("--output", required=True, type=Path, metavar="DIR", help="where results, summary, chart and sessions go")
    arms = "; ".join(f"{arm.name} ({told(arm)})" for arm in suite.arms)
    add("--arm", action="append", metavar="NAME='FLAGS; VAR=VALUE'", help=f"our agent so; instead of {arms}")
    add("--agent", action="append", metavar="NAME[:STYLE]='COMMAND {workspace}'", help=AGENT_HELP)
    add("--repeats", type=_positive, default=5, metavar="N", help="of each case with each arm (default: 5)")
    add("--jobs", type=_positive, default=2, metavar="N", help="cells at once (default: 2)")
    add("--case", action="append", metavar="ID", help="only this case; may be repeated")
    add("--timeout", type=_positive, metavar="S", help="seconds for a cell (default: what the case asks for)")
    add("--shard", type=_shard, default=(1, 1), metavar="I/N", help="the I-th of N parts; `report` joins them")
    add("--seed", type=int, default=1, metavar="N", help="of the order, and of what a suite generates (default: 1)")
    add("--continue", action="store_true", dest="go_on", help="go on with what DIR holds")
    add("--force", action="store_true", help="begin anew, and remove the results that DIR holds")
    add("--yes", action="store_true", help=f"do not ask, whatever it may cost (else above {ASK_ABOVE_TOKENS:,} tokens)")
    add("--scripted", action="append", metavar="[ARM=]KIND", help=f"no model: a script; KIND is {', '.join(KINDS)}")
    for option in suite.options:
        add(f"--{option.name}", choices=option.choices, default=option.default, help=option.help)
    return parser


def _positive(text: str) -> int:
    if not re.fullmatch("[1-9][0-9]{0,6}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def _shard(text: str) -> tuple[int, int]:
    match = re.fullmatch("([0-9]{1,4})/([0-9]{1,4})", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form 1/4 … 4/4")
    return int(match[1]), int(match[2])


# ---------------------------------------------------------------------------------------------------------- the plan


def make_plan(suite: Suite, cases: Sequence[Case], arms: Sequence[Arm], flags: argparse.Namespace) -> list[Cell]:
    """Return the cells of this shard in the order in which they run.

    The arms of one case and repeat stand together, in random order: what changes with time (a server under load) meets
    all of them alike. The cases keep their order, in which those that share a workspace stand together: a server's
    prompt cache is then of use. A shard has all arms of a case or none.
    """
    options, scripted = _options(suite, flags), read_scripted(flags.scripted or (), arms)
    chance = random.Random(flags.seed)
    blocks = []
    for repeat in range(1, flags.repeats + 1):
        blocks += [(case, repeat) for case in cases]
    part, parts = flags.shard
    plan = []
    for number, (case, repeat) in enumerate(blocks):
        limit = flags.timeout or case.timeout_seconds or suite.timeout_seconds
        for place in chance.sample(range(len(arms)), len(arms)):
            if number % parts == part - 1:
                arm = arms[place]
                plan.append(Cell(suite, options, case, arm, place, repeat, limit, scripted.get(arm.name, "")))
    return plan


def _options(suite: Suite, flags: argparse.Namespace) -> Options:
    return {**{option.name: getattr(flags, option.name) for option in suite.options}, "seed": str(flags.seed)}


def _chosen_cases(suite: Suite, flags: argparse.Namespace) -> list[Case]:
    cases = {case.id: case for case in suite.cases(_options(suite, flags))}
    unknown = [id for id in flags.case or () if id not in cases]
    if unknown:
        raise UsageError(f"no case {', '.join(unknown)} with these options; there are {', '.join(cases)}")
    return [case for id, case in cases.items() if not flags.case or id in flags.case]


def estimated_tokens(case: Case) -> int:
    """Return about how many tokens one run reads and writes: by default six requests that have read half of it all."""
    size = sum(map(len, case.files.values())) + 4 * sum(map(len, case.turns))
    return case.tokens or 6 * (2500 + min(size, 100_000) // 8)


def _run(suite: Suite, flags: argparse.Namespace) -> int:
    cases = _chosen_cases(suite, flags)
    arms = choose_arms(suite, flags.arm or (), flags.agent or ())
    plan = make_plan(suite, cases, arms, flags)
    output = flags.output.resolve()
    done = _done_before(output, flags, plan)
    left = [cell for cell in plan if cell.key not in done]
    tokens = sum(estimated_tokens(cell.case) for cell in left if not cell.scripted)
    print(
        f"{len(left)} cells to run: {len(cases)} cases, {len(arms)} arms ({', '.join(arm.name for arm in arms)}), "
        f"{flags.repeats} repeats{f', {len(done)} done before' if done else ''}; about {tokens:,} tokens",
        flush=True,
    )
    if tokens > ASK_ABOVE_TOKENS and not flags.yes:
        _ask()
    output.mkdir(parents=True, exist_ok=True)
    if flags.force:
        shutil.rmtree(output / "sessions", ignore_errors=True)
        (output / NAME).unlink(missing_ok=True)
    if not _run_all(left, output, flags.jobs):
        print(f"Stopped. To go on: the same command with --continue; results are in {output}", file=sys.stderr)
        return INTERRUPTED
    print(write_report([output], output))
    failed = [record for record in read_results(output).values() if not is_final(record)]
    if failed:
        why = failed[0]["problem"] or failed[0]["why"]
        print(f"{len(failed)} cells could not be run or graded, the first: {why}", file=sys.stderr)
    return 1 if failed else 0


def _done_before(output: Path, flags: argparse.Namespace, plan: Sequence[Cell]) -> set[Key]:
    """Return which cells of the plan an earlier run has done; raise UsageError where its results are in the way."""
    if not (output / NAME).exists() or flags.force:
        return set()
    if not flags.go_on:
        raise UsageError(f"{output} holds results: --continue goes on with them, --force begins anew")
    records = read_results(output)
    planned = {cell.key: cell for cell in plan}
    for key, record in records.items():
        if key not in planned or planned[key].setting != record["setting"]:
            raise UsageError(f"{output} holds results of other options or arms ({', '.join(map(str, key))})")
    return {key for key, record in records.items() if is_final(record)}


def _ask() -> None:
    if not sys.stdin.isatty():
        raise UsageError(f"that is above {ASK_ABOVE_TOKENS:,} tokens, and nobody is here to be asked: --yes allows it")
    print("Go on? Only yes does: ", end="", flush=True)
    if sys.stdin.readline().strip().lower() != "yes":
        raise UsageError("nothing was run")


def _run_all(cells: Sequence[Cell], output: Path, jobs: int) -> bool:
    """Run cells, several at once, and write each result as it comes; return whether nobody stopped it."""
    waiting: queue.SimpleQueue[Cell] = queue.SimpleQueue()
    for cell in cells:
        waiting.put(cell)
    results = ResultsFile(output)
    finished = 0
    broken: list[BaseException] = []

    def work() -> None:
        nonlocal finished
        with tempfile.TemporaryDirectory(prefix="mini_agent_evals_") as scratch:
            while not broken:
                try:
                    cell = waiting.get_nowait()
                    record = run_cell(cell, output, Path(scratch).resolve() / "cell")
                except (queue.Empty, Stopped):
                    return
                except BaseException as error:  # a full disk, a suite that raises: told by the main thread
                    broken.append(error)
                    return
                results.append(record)
                finished += 1
                print(_progress(finished, len(cells), record), file=sys.stderr, flush=True)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(min(jobs, len(cells)))]
    usual = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for worker in workers:
            worker.start()
        while any(worker.is_alive() for worker in workers):
            time.sleep(0.05)
        was_stopped = False
    except KeyboardInterrupt:
        was_stopped = True
        stop_all()
    finally:
        for worker in workers:
            worker.join()
        signal.signal(signal.SIGTERM, usual)
        results.close()
    if broken:
        raise broken[0]
    return not was_stopped


def _progress(number: int, of: int, record: Mapping[str, Any]) -> str:
    tokens = record["tokens"]
    told = f", {tokens['in'] + tokens['out']:,} tokens" if tokens else ""
    outcome = "passed" if record["passed"] else f"failed ({record['why']})"
    return (
        f"[{number}/{of}] {record['case']} {record['arm']} {record['repeat']}: {outcome}, {record['seconds']} s{told}"
    )
