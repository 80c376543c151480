"""What was found, in words: a tally of every claim, and in which readings it holds.

A claim has a verdict for each reading. The tally counts them; the Markdown lists the readings by
what came of them, for each error and cost at the largest number of updates (or messages, …) judged,
and where costs to a target are compared, what every method needed.

    python -m walklearn.studies.paper.findings results docs/experiments.md

puts that list into a page, between two marks, from stored results.

>>> import pandas
>>> row = {"claim": 1, "text": "It wins", "kind": "beats", "graph": "er", "step_size": "tuned",
...        "metric": "gap", "cost": "updates", "at": 100.0, "better": "a", "worse": "b",
...        "lower": 0.5, "upper": 2.0, "replicates": 20}
>>> table = pandas.DataFrame([
...     row | {"problem": "easy", "ratio": 2.0, "lower": 1.5, "verdict": "holds"},
...     row | {"problem": "hard", "ratio": 1.01, "verdict": "undecided"}])
>>> tally("mine", table)
[['mine', 'It wins', '1', '0', '1', '1 to 2', '20']]
>>> readings(table)[0].lists["holds"]
['easy 2']
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from walklearn.files.atomic_write import atomic_write
from walklearn.studies import Results
from walklearn.studies.report import spending
from walklearn.studies.report.bands import METRIC_SYMBOLS
from walklearn.studies.report.sections import Stored
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
    """A line per claim: how many readings came out which way, and the range of the estimates."""
    lines = []
    for _, rows in verdicts.groupby("claim", sort=False):
        counts = rows["verdict"].value_counts()
        known = rows["ratio"].dropna()
        span = f"{_short(known.min())} to {_short(known.max())}" if len(known) else "–"
        lines.append(
            [study, str(rows["text"].iloc[0]), *(str(counts.get(word, 0)) for word in VERDICTS),
             span, str(rows["replicates"].max())]
        )  # fmt: skip
    return lines


def lines(verdicts: pandas.DataFrame) -> list[list[str]]:
    """A line per reading, with its estimate and interval."""
    found = []
    for _, rows in verdicts.groupby("claim", sort=False):
        for name, (_, row) in zip(_names(rows), rows.iterrows(), strict=True):
            interval = f"{_short(row['lower'])} to {_short(row['upper'])}"
            measure = _measure(rows.loc[[row.name]], row["metric"], row["cost"])
            found.append(
                [str(row["text"]), name, measure, _short(row["ratio"]), interval, row["verdict"]]
            )
    return found


@dataclass(frozen=True)
class Readings:
    """A claim by one error and cost: its readings, listed by verdict with their estimates."""

    text: str
    measure: str
    lists: dict[str, list[str]]


def readings(verdicts: pandas.DataFrame) -> list[Readings]:
    """Each claim by each error and cost at the last point; equal lists are told once."""
    found: list[Readings] = []
    for _, claim in verdicts.groupby("claim", sort=False):
        for (metric, cost), rows in claim.groupby(["metric", "cost"], sort=False):
            last = rows.loc[rows.groupby(_reading(rows), sort=False)["at"].idxmax()]
            names = _names(last)
            lists = {
                word: [
                    f"{name} {_short(ratio)}".strip()
                    for name, ratio, verdict in zip(
                        names, last["ratio"], last["verdict"], strict=True
                    )
                    if verdict == word
                ]
                for word in VERDICTS
            }
            reading = Readings(str(last["text"].iloc[0]), _measure(last, metric, cost), lists)
            if not (found and found[-1].text == reading.text and found[-1].lists == lists):
                found.append(reading)
    return found


def _reading(rows: pandas.DataFrame) -> list[str]:
    return [key for key in ("better", "worse", "graph", "problem", "step_size") if key in rows]


def _names(rows: pandas.DataFrame) -> list[str]:
    """What sets the readings apart from each other."""
    differing = [key for key in _reading(rows) if rows[key].nunique() > 1]
    return [" ".join(str(row[key]) for key in differing) for _, row in rows.iterrows()]


def _measure(rows: pandas.DataFrame, metric: Any, cost: Any) -> str:
    error, kind = METRIC_SYMBOLS[metric], rows["kind"].iloc[0]
    points = sorted(rows["at"].dropna().unique())
    at = f"{points[0]:,.0f}" if len(points) == 1 else "the last"
    if kind == "cost-to-target":
        return f"{cost} until {error} is reached"
    if kind == "slope":
        return f"slope of {error}"
    if kind == "rank":
        return f"rank correlation with {error} after {at} {cost}"
    return f"{error} at equal {cost}" + (f" ({at})" if len(points) == 1 else "")


def markdown(results: Iterable[Results]) -> str:
    """The findings of several studies, as Markdown."""
    parts = []
    for one in results:
        study, verdicts = one.study, one.verdicts()
        parts.append(
            f"### {study.name}\n\n{study.question} ({plural(study.instances, 'instance')}, "
            f"{plural(study.updates, 'update')})\n\n"
            "| claim | judged by | holds | does not hold | undecided |\n|---|---|---|---|---|"
        )
        last = ""
        for reading in readings(verdicts):
            cells = ("; ".join(reading.lists[word]) or "–" for word in VERDICTS)
            text, last = "" if reading.text == last else reading.text, reading.text
            parts[-1] += "\n" + " | ".join(["| " + text, reading.measure, *cells]) + " |"
        parts += costs(Stored(one, one.directory.parent))
    return "\n\n".join(parts) + "\n"


def costs(stored: Stored) -> list[str]:
    """A table for each target that costs are compared to: median updates of every method."""
    block = spending.cost(stored.cells, stored.facts, stored.results.study.claims)
    if block is None:
        return []
    targets = [str(name) for name in block.figures[0].series[0].columns["target"]]
    methods = list(dict.fromkeys(one.name for figure in block.figures for one in figure.series))
    tables = []
    for place, target in enumerate(targets):
        heads = [f"updates to {target}", *(figure.title for figure in block.figures)]
        rows = [" | ".join(["| " + heads[0], *heads[1:]]) + " |", "|---" * len(heads) + "|"]
        for method in methods:
            known = ({one.name: one for one in figure.series} for figure in block.figures)
            cells = (
                _spent(panel[method].numbers("updates median")[place]) if method in panel else ""
                for panel in known
            )
            rows.append(" | ".join([f"| {method}", *cells]) + " |")
        tables.append("\n".join(rows))
    return tables


def _spent(value: float) -> str:
    """A median cost with three digits, or "never" where half of the instances did not get there."""
    return f"{float(f'{value:.3g}'):,.0f}" if value < float("inf") else "never"


def insert(page: Path, text: str) -> None:
    """Put the findings between the marks of a page."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page} has no place for findings: no {BEGIN} … {END}")
    atomic_write(page, f"{before}{BEGIN}\n\n{text}\n{END}{after}".encode())


if __name__ == "__main__":
    from walklearn.studies.paper.catalogue import STUDIES

    folder, target = map(Path, sys.argv[1:])
    insert(target, markdown(Results.open(folder / name) for name in STUDIES))
