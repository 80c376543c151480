"""Verdicts in words: counts for every claim, and the readings in which it holds.

A claim has a verdict for each reading. The tally counts them. The Markdown lists the readings by
verdict, for each error and cost at the largest number of updates (or messages, …) judged; where
costs to a target are compared, it has the cost of every method.

    python -m walklearn.studies.paper.findings results docs/experiments.md

inserts that list into a page, between two marks, from stored results.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from walklearn.files.atomic_write import atomic_write
from walklearn.studies import Results
from walklearn.studies.report import spending
from walklearn.studies.report.bands import METRIC_SYMBOLS
from walklearn.studies.report.figures import Block
from walklearn.studies.report.sections import StoredResults
from walklearn.studies.report.verdict_table import SYMBOLS
from walklearn.wording import number, plural

if TYPE_CHECKING:
    import pandas

VERDICTS = tuple(SYMBOLS)
HEADER = ("study", "claim", *VERDICTS, "estimates", "instances")
READING_HEADER = ("claim", "reading", "judged by", "estimate", "95 % interval", "verdict")
BEGIN, END = "<!-- findings: begin -->", "<!-- findings: end -->"

_short = partial(number, digits=2)


def tally(study: str, verdicts: pandas.DataFrame) -> list[list[str]]:
    """A line per claim: the number of readings with each verdict, and the range of estimates."""
    lines = []
    for text, rows in _by_claim(verdicts):
        counts, known = rows["verdict"].value_counts(), rows["ratio"].dropna()
        span = f"{_short(known.min())} to {_short(known.max())}" if len(known) else "–"
        outcomes = (str(counts.get(word, 0)) for word in VERDICTS)
        lines.append([study, text, *outcomes, span, str(rows["replicates"].max())])
    return lines


def lines(verdicts: pandas.DataFrame) -> list[list[str]]:
    """A line per reading, with its estimate and interval."""
    return [
        [text, name, _measure(rows.loc[[row.name]]), _short(row["ratio"]),
         f"{_short(row['lower'])} to {_short(row['upper'])}", row["verdict"]]
        for text, rows in _by_claim(verdicts)
        for name, (_, row) in zip(_names(rows), rows.iterrows(), strict=True)
    ]  # fmt: skip


def readings(verdicts: pandas.DataFrame) -> list[tuple[str, str, list[str]]]:
    """List each claim by each error and cost at the last point.

    An entry has the claim, the measure, and for each of `VERDICTS` the readings with their
    estimates. If the lists of two measures are equal, the second is left out.
    """
    entries: list[tuple[str, str, list[str]]] = []
    for text, claim in _by_claim(verdicts):
        for _, rows in claim.groupby(["metric", "cost"], sort=False):
            last = rows.loc[rows.groupby(_reading(rows), sort=False)["at"].idxmax()]
            texts: dict[str, list[str]] = {word: [] for word in VERDICTS}
            for name, ratio, verdict in zip(
                _names(last), last["ratio"], last["verdict"], strict=True
            ):
                texts[verdict].append(f"{name} {_short(ratio)}".strip())
            lists = ["; ".join(each) or "–" for each in texts.values()]
            if not entries or (entries[-1][0], entries[-1][2]) != (text, lists):
                entries.append((text, _measure(last), lists))
    return entries


def _by_claim(verdicts: pandas.DataFrame) -> list[tuple[str, pandas.DataFrame]]:
    """Text and verdicts of each claim."""
    groups = verdicts.groupby("claim", sort=False)
    return [(str(rows["text"].iloc[0]), rows) for _, rows in groups]


def _reading(rows: pandas.DataFrame) -> list[str]:
    return [key for key in ("better", "worse", "graph", "problem", "step_size") if key in rows]


def _names(rows: pandas.DataFrame) -> list[str]:
    """Name the readings by the columns in which they differ."""
    differing = [key for key in _reading(rows) if rows[key].nunique() > 1]
    return [" ".join(str(row[key]) for key in differing) for _, row in rows.iterrows()]


def _measure(rows: pandas.DataFrame) -> str:
    """Name the error and cost by which readings were judged, and the point if it is the same."""
    metric, cost, kind = rows[["metric", "cost", "kind"]].iloc[0]
    error, points = METRIC_SYMBOLS[metric], rows["at"].dropna().unique()
    at = f"{points[0]:,.0f}" if len(points) == 1 else ""
    if kind == "cost-to-target":
        return f"{cost} until {error} is reached"
    if kind == "slope":
        return f"slope of {error}"
    if kind == "rank":
        return f"rank correlation with {error} after {at or 'the last'} {cost}"
    return f"{error} at equal {cost}" + (f" ({at})" if at else "")


def markdown(results: Iterable[Results]) -> str:
    """The findings of several studies, as Markdown."""
    parts = []
    for one in results:
        study, last, rows = one.study, "", []
        for text, measure, lists in readings(one.verdicts()):
            rows.append([text if text != last else "", measure, *lists])
            last = text
        sizes = f"{plural(study.instances, 'instance')}, {plural(study.updates, 'update')}"
        parts += [f"### {study.name}", f"{study.question} ({sizes})"]
        parts += [_table(["claim", "judged by", *VERDICTS], rows)]
        parts += _costs(StoredResults(one, one.directory.parent))
    return "\n\n".join(parts) + "\n"


def _costs(stored: StoredResults) -> list[str]:
    """Tables of the median cost of every method to each target: updates, and time if it is claimed.

    A row is a setting, with a column for each method, or the other way round if settings are few.
    """
    claims = stored.results.study.claims
    block = spending.cost(stored.cells, claims)
    if block is None:
        return []
    claimed = {name for claim in claims if claim.kind == "cost-to-target" for name in claim.costs}
    targets: Any = block.figures[0].series[0].columns["target"]
    return [
        _table(*_oriented(f"{name} to {target}", _medians(block, name, place)))
        for place, target in enumerate(targets)
        for name in ("updates", "time")
        if name == "updates" or name in claimed
    ]


def _medians(block: Block, cost: str, place: int) -> dict[str, dict[str, str]]:
    """The median cost to the target at this place, by setting and method."""
    return {
        figure.title: {
            one.name: _cost(one.numbers(f"{cost} median")[place]) for one in figure.series
        }
        for figure in block.figures
    }


def _oriented(corner: str, cells: dict[str, dict[str, str]]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of a table of cells, with the more numerous names in rows.

    >>> _oriented("updates", {"er": {"sgd": "9"}, "ring": {"sgd": "never"}})
    (['updates', 'sgd'], [['er', '9'], ['ring', 'never']])
    """
    methods = list(dict.fromkeys(name for row in cells.values() for name in row))
    if len(cells) > len(methods):
        rows = [[name, *(row.get(method, "") for method in methods)] for name, row in cells.items()]
        return [corner, *methods], rows
    by_method = [[name, *(row.get(name, "") for row in cells.values())] for name in methods]
    return [corner, *cells], by_method


def _cost(value: float) -> str:
    """A median cost with three digits, or "never" if half of the instances missed the target."""
    return f"{float(f'{value:.3g}'):,.0f}" if value < float("inf") else "never"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(row)} |" for row in (heads, *rows)]
    return "\n".join([lines[0], "|---" * len(heads) + "|", *lines[1:]])


def insert(page: Path, text: str) -> None:
    """Put the findings between the marks of a page."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page} has no place for findings. Add the lines {BEGIN} and {END}.")
    atomic_write(page, f"{before}{BEGIN}\n\n{text}\n{END}{after}".encode())


if __name__ == "__main__":
    from walklearn.studies.paper.catalogue import STUDIES

    folder, target = map(Path, sys.argv[1:])
    insert(target, markdown(Results.open(folder / name) for name in STUDIES))
