"""From results.jsonl to summary.md and the charts: what was compared, what came out, and how sure that is."""

from __future__ import annotations

import statistics as numbers
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Callable

from evals.harness.catalog import UsageError, find_suite
from evals.harness.chart import draw_pairs
from evals.harness.results import Record, is_final, join
from evals.harness.statistics import Difference, counts, difference, pair_up, passed, spread, tokens, verdict

SUMMARY = "summary.md"


def write_report(folders: Sequence[Path], output: Path | None) -> str:
    """Join the results of folders; write summary and charts into `output`, if there is one; return the summary."""
    records = join(folders)
    parts = []
    for suite in sorted({record["suite"] for record in records}):
        of_suite = [record for record in records if record["suite"] == suite]
        parts.append(_suite_report(suite, of_suite, output))
    text = "\n\n".join(parts) + "\n"
    if output:
        output.mkdir(parents=True, exist_ok=True)
        (output / SUMMARY).write_text(text, encoding="utf-8")
    return text


def _suite_report(suite: str, records: list[Record], output: Path | None) -> str:
    arms = list(dict.fromkeys(r["arm"] for r in sorted(records, key=lambda record: int(record["arm_number"]))))
    repeats = max(Counter((record["case"], record["arm"]) for record in records).values())
    parts = [f"# {suite}", _asks(suite), "\n".join(_facts_of_run(records, arms, repeats)), _arms_table(records, arms)]
    for baseline in arms[1:]:
        parts.append(_comparison(suite, records, arms[0], baseline, repeats, output))
    parts += [_failures(records, arms), _inspections(list(filter(is_final, records)), arms), _cases(records, arms)]
    return "\n\n".join(filter(None, parts))


def _asks(suite: str) -> str:
    try:
        return find_suite(suite).asks
    except UsageError:  # results outlive suites
        return ""


def _facts_of_run(records: list[Record], arms: list[str], repeats: int) -> Iterable[str]:
    cases = len({record["case"] for record in records})
    yield f"- {len(records)} cells: {cases} cases, {len(arms)} arms, up to {repeats} repeats"
    yield f"- begun {min(record['started'] for record in records)}, seeds {_listed(r['seed'] for r in records)}"
    versions = (f"{name} {version}" for record in records for name, version in record["versions"].items())
    yield f"- versions: {_listed(versions)}"
    for arm in arms:
        of_arm = [record for record in records if record["arm"] == arm]
        setting = of_arm[0]["setting"]
        told = [*setting["command"], *(f"{name}={value}" for name, value in setting["environment"].items())]
        models = _listed(record["model"] for record in of_arm if record["model"]) or "not known"
        yield f"- arm `{arm}`: `{' '.join(told) or 'as it is'}`; model: {models}"
    scripted = {record["setting"]["scripted"] for record in records} - {""}
    if scripted:
        yield f"- **scripted ({_listed(scripted)}): no model answered, and nothing here tells about any**"
    elsewhere = sum(not is_final(record) for record in records)
    if elsewhere:
        yield f"- **{elsewhere} cells are in no pair: server, setting or grader failed, not the arm**"


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(sorted({str(value) for value in values}))


# ------------------------------------------------------------------------------------------------------------ tables


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(value) for value in line) + " |" for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,.{0 if abs(value) >= 100 else 2}f}" if isinstance(value, float) else str(value)


def _arms_table(records: list[Record], arms: list[str]) -> str:
    """Return the means of each arm; what an arm does not tell stays empty."""
    head = "arm|cells|passed|score|tokens in|out|cached|requests|rounds|used|tool errors|compressions|characters saved"
    head += "|seconds (median)"
    rows = []
    for arm in arms:
        cells = [record for record in records if record["arm"] == arm and is_final(record)]
        known = [record["tokens"] or {} for record in cells]
        used = [record["used"] for record in cells if record["used"] is not None]
        errors = [sum(record["tool_errors"].values()) for record in cells if record["tool_errors"] is not None]
        rows.append(
            (
                arm,
                len(cells),
                f"{sum(record['passed'] for record in cells)}",
                spread([record["score"] for record in cells]),
                *(spread([counted.get(name) for counted in known]) for name in ("in", "out", "cached")),
                *(spread([record[name] for record in cells]) for name in ("requests", "rounds")),
                f"{sum(use['successes'] for use in used)} of {sum(use['calls'] for use in used)}" if used else None,
                spread(errors),
                *(spread([record[name] for record in cells]) for name in ("compressions", "characters_saved")),
                numbers.median(record["seconds"] for record in cells) if cells else None,
            )
        )
    return "## Arms, means of a cell\n\n" + _table(head.split("|"), rows)


def _comparison(
    suite: str, records: list[Record], treatment: str, baseline: str, repeats: int, output: Path | None
) -> str:
    pairs, left_out = pair_up(records, treatment, baseline)
    title = f"## {treatment} against {baseline}"
    if not pairs:
        return f"{title}\n\nThere is no pair to compare."
    chart = f"{suite}-{treatment}-against-{baseline}.svg"
    if output:
        output.mkdir(parents=True, exist_ok=True)
        (output / chart).write_text(draw_pairs(pairs, treatment, baseline), encoding="utf-8")
    by_passing, by_tokens = difference(pairs, passed), difference(pairs, tokens)
    lines = [
        f"- **Passing:** {verdict(by_passing, f'{treatment} passes more', f'{treatment} passes less', repeats)}",
        f"- **Tokens**, where both passed: "
        f"{verdict(by_tokens, f'{treatment} needs more', f'{treatment} needs fewer', repeats)}",
        f"- Pairs: {', '.join(f'{count} {name}' for name, count in counts(pairs).items())}; {left_out} left out",
    ]
    rows = [
        _difference_row("passed", by_passing, lambda value: f"{100 * value:+.1f} points"),
        _difference_row("tokens", by_tokens, lambda value: f"{value:+,.0f}"),
    ]
    table = _table(("difference", "pairs", "more", "fewer", "mean", "95 % interval", "p"), rows)
    return "\n\n".join([title, "\n".join(lines), table, f"![each pair]({chart})"])


def _difference_row(name: str, found: Difference | None, show: Callable[[float], str]) -> Sequence[Any]:
    if found is None:
        return (name, 0, None, None, None, None, None)
    interval = f"{show(found.interval[0])} to {show(found.interval[1])}" if found.interval else "one pair has none"
    return (name, len(found.values), found.ups, found.downs, show(found.mean), interval, f"{found.chance:.2g}")


def _failures(records: list[Record], arms: list[str]) -> str:
    """Return why cells failed, and which errors the tools told, by arm."""
    whys = Counter((record["why"], record["arm"]) for record in records if record["why"])
    errors: Counter[tuple[str, str]] = Counter()
    for record in records:
        for kind, count in (record["tool_errors"] or {}).items():
            errors[kind, record["arm"]] += count
    parts = []
    for title, found in (("Why cells failed", whys), ("Errors of tools", errors)):
        rows = [(kind, *(found[kind, arm] for arm in arms)) for kind in sorted({kind for kind, _ in found})]
        if rows:
            parts.append(f"## {title}\n\n" + _table(("", *arms), rows))
    return "\n\n".join(parts)


def _inspections(records: list[Record], arms: list[str]) -> str:
    """Return what the suite itself read from the logs: of yes and no how often yes, of numbers the mean."""
    names = list(dict.fromkeys(name for record in records for name in record["facts"]))
    rows = []
    for name in names:
        row = [name]
        for arm in arms:
            values = [r["facts"][name] for r in records if r["arm"] == arm and name in r["facts"]]
            row.append(_summed_up(values))
        rows.append(row)
    return "## What the logs tell\n\n" + _table(("", *arms), rows) if rows else ""


def _summed_up(values: Sequence[Any]) -> str:
    if values and all(isinstance(value, bool) for value in values):
        return f"{sum(values)} of {len(values)}"
    if values and all(isinstance(value, (int, float)) for value in values):
        return _cell(numbers.fmean(values))
    return ", ".join(f"{value}: {count}" for value, count in sorted(Counter(map(str, values)).items()))


def _cases(records: list[Record], arms: list[str]) -> str:
    rows = []
    for case in sorted({record["case"] for record in records}):
        row = [case]
        for arm in arms:
            cells = [record for record in records if record["case"] == case and record["arm"] == arm]
            whys = Counter(record["why"] for record in cells if record["why"])
            told = "; ".join(f"{count} {why}" for why, count in whys.items())
            row.append(f"{sum(cell['passed'] for cell in cells)} of {len(cells)}{f' ({told})' if told else ''}")
        rows.append(row)
    return "## Cases: passed\n\n" + _table(("case", *arms), rows)
