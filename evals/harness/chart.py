"""An SVG chart that shows each pair: a line for each case, and on it, for each repeat, from what to what it went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from evals.harness.results import Record
from evals.harness.statistics import VERDICTS, Pair

LEFT, WIDTH, ROW, TOP, GAP = 260, 560, 11, 62, 7  # pixels
_COLOURS = dict(zip(VERDICTS, ("#1a7f37", "#cf222e", "#57606a", "#bc4c00", "#8250df")))


def draw_pairs(pairs: Sequence[Pair], treatment: str, baseline: str) -> str:
    """Return the chart: tokens from left to right, a circle for the baseline, a square for the treatment.

    Filled is passed, hollow is failed. The colour is the pair's verdict. A cell of unknown tokens stands at the
    left edge, with no line to it.
    """
    most = max([_tokens(cell) or 1 for pair in pairs for cell in (pair.treatment, pair.baseline)])
    cases = list(dict.fromkeys(pair.case for pair in pairs))
    body, y = [], TOP
    for case in cases:
        of_case = [pair for pair in pairs if pair.case == case]
        middle = y + ROW * len(of_case) / 2
        body.append(f'<text x="{LEFT - 12}" y="{middle + 4:.1f}" text-anchor="end">{escape(case)}</text>')
        for pair in of_case:
            body.append(_pair(pair, y + ROW / 2, most))
            y += ROW
        y += GAP
    height = y + 34
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 40}" height="{height}" '
        'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="#fff"/>'
    )
    title = f"each pair: {treatment} (square) against {baseline} (circle); filled: passed; tokens, in and out"
    parts = [head, f'<text x="12" y="20" font-size="13">{escape(title)}</text>', *_legend(), *_axis(most, y), *body]
    return "\n".join([*parts, "</svg>\n"])


def _tokens(cell: Record) -> int | None:
    return int(cell["tokens"]["in"] + cell["tokens"]["out"]) if cell["tokens"] else None


def _pair(pair: Pair, y: float, most: int) -> str:
    colour = _COLOURS[pair.verdict]
    known = _tokens(pair.treatment), _tokens(pair.baseline)
    x, x_before = (LEFT + WIDTH * (tokens or 0) / most for tokens in known)
    fill, fill_before = (colour if cell["passed"] else "#fff" for cell in (pair.treatment, pair.baseline))
    told = f"{pair.case}, repeat {pair.repeat}: {pair.verdict}, tokens {known[1]} → {known[0]}"
    line = "" if None in known else f'<line x1="{x_before:.1f}" y1="{y}" x2="{x:.1f}" y2="{y}"/>'
    return (
        f'<g stroke="{colour}"><title>{escape(told)}</title>{line}'
        f'<circle cx="{x_before:.1f}" cy="{y}" r="4" fill="{fill_before}"/>'
        f'<rect x="{x - 3:.1f}" y="{y - 3}" width="6" height="6" fill="{fill}"/></g>'
    )


def _legend() -> Iterator[str]:
    for place, (name, colour) in enumerate(_COLOURS.items()):
        x = LEFT + 110 * place
        yield f'<rect x="{x}" y="32" width="10" height="10" fill="{colour}"/><text x="{x + 15}" y="41">{name}</text>'


def _axis(most: int, bottom: int) -> Iterator[str]:
    for part in range(5):
        x = LEFT + WIDTH * part / 4
        yield f'<line x1="{x}" y1="{TOP - 6}" x2="{x}" y2="{bottom}" stroke="#d0d7de"/>'
        yield f'<text x="{x}" y="{bottom + 16}" text-anchor="middle">{most * part // 4:,}</text>'
