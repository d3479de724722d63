"""A comparison as a part of a page: no script, nothing fetched."""

from __future__ import annotations

from html import escape
from math import isinf, log10
from typing import TYPE_CHECKING, Dict, List, Tuple

if TYPE_CHECKING:
    from ._api import Comparison

# Legible on white and on the dark grey of notebooks alike.
_COLOURS = {"agrees": "#1f883d", "diverges": "#d1242f", "could_not_compare": "#9a6700"}
_GREY = "#777"
_MOST = 128  # cells of the map on either side; more are put together, the worst of each group
_CELL = 6    # pixels


def _colour(worst: float) -> str:
    """Green: within the bound. Yellow to dark red: 1 to 10^6 times it. Black: NaN, or no bound to be beyond."""
    if worst == 0:
        return "#d8efdc"
    if isinf(worst):
        return "#000000"
    share = min(max(log10(max(worst, 1.0)) / 6, 0.0), 1.0)
    return f"hsl({round(48 - 48 * share)},85%,{round(62 - 30 * share)}%)"


def _map(result: "Comparison") -> str:
    """Queries go to the right, heads of all batch entries down."""
    problem = result.problem
    heads, queries = problem["batch"] * problem["heads"], problem["seqlen_q"]
    of_head, of_query = -(-heads // _MOST), -(-queries // _MOST)
    worst: Dict[Tuple[int, int], float] = {}
    for batch, head, query, _, ratio in result._compared.wrong_rows():
        at = ((batch * problem["heads"] + head) // of_head, query // of_query)
        worst[at] = max(worst.get(at, 0.0), ratio if ratio == ratio else float("inf"))
    down, across = -(-heads // of_head), -(-queries // of_query)
    cells: List[str] = [f'<rect width="{across * _CELL}" height="{down * _CELL}" fill="{_colour(0)}"/>']
    for (y, x), ratio in sorted(worst.items()):
        head, query = y * of_head, x * of_query
        where = f"batch {head // problem['heads']}, head {head % problem['heads']}, query {query}"
        more = " and what follows" if of_head > 1 or of_query > 1 else ""
        cells.append(f'<rect x="{x * _CELL}" y="{y * _CELL}" width="{_CELL}" height="{_CELL}" fill="{_colour(ratio)}">'
                     f"<title>{where}{more}: {ratio:.3g}x the bound</title></rect>")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{across * _CELL}" height="{down * _CELL}" '
            f'style="border:1px solid {_GREY}">{"".join(cells)}</svg>'
            f'<p style="margin:.3em 0;color:{_GREY}">Error over bound of {escape(str(result.first["tensor"]))}: '  # type: ignore[index]
            f"queries 0 to {queries - 1} to the right, {heads} heads down. Green is within the bound; "
            "yellow to dark red 1 to 10<sup>6</sup> times it; black is NaN or infinite.</p>")


def comparison_html(result: "Comparison") -> str:
    title = (f'<p style="font-weight:bold;color:{_COLOURS[result.verdict]};margin:.3em 0">'
             f"{escape(result.headline)}</p>")
    picture = _map(result) if result.first is not None else ""
    return (f'<div style="font-family:sans-serif">{title}{picture}'
            f'<pre style="margin:.3em 0">{escape(str(result))}</pre></div>')


def page(result: "Comparison", title: str, paragraphs: List[str]) -> str:
    """A whole page, with what else there is to say above."""
    said = "".join(f"<pre>{escape(paragraph)}</pre>" for paragraph in paragraphs)
    return (f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
            f"<title>{escape(title)}</title>"
            f"<h1>{escape(title)}</h1>{comparison_html(result)}{said}</html>\n")
