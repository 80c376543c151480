"""Make the section of the page about one study: question, settings, figures and provenance.

The grid and the claims decide which figures come first:

    map         if problems form a grid over two numbers: the ratios of the verdicts
    tradeoff    if methods differ only in one number, such as ε: the last error against it
    cost        if claims are about reaching a target: the cost until it is reached
    scatter     if a claim says that a fact ranks graphs: the last error against that fact

The table ``[figure]`` of a study overrides this (see `walklearn.studies.figure_options`).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from walklearn.studies.provenance import notes
from walklearn.studies.report.bands import all_bands
from walklearn.studies.report.figures import Block, Figure, computed_curves
from walklearn.studies.report.final_errors import FACTS, scatter, tradeoff, tradeoff_axis
from walklearn.studies.report.readings import readings_of
from walklearn.studies.report.spending import convergence, cost
from walklearn.studies.report.verdict_table import Claim, claims
from walklearn.studies.report.win_map import map_axes, win_map
from walklearn.wording import number, plural

if TYPE_CHECKING:
    from walklearn.studies.results import Results


class StoredResults:
    """The tables of stored results, and summaries of their cells.

    start: the directory of the page; links to files are relative to it.
    """

    def __init__(self, results: Results, start: Path) -> None:
        self.results, self._start = results, start
        self.records, self.facts = results.records(), results.facts()
        self.verdicts = results.verdicts()
        self.cells = all_bands(self.records, self.facts, self.file_of)

    @cached_property
    def words(self) -> dict[str, dict[str, str]]:
        """Explanations of the names of graphs, problems and step sizes."""
        return readings_of(self.results.study)

    def file_of(self, name: str) -> str:
        """The path of a file of the study."""
        return Path(os.path.relpath(self.results.directory / name, self._start)).as_posix()

    def with_titles(self, block: Block) -> Block:
        """Replace names in the titles of panels by their explanations."""

        def with_title(figure: Figure) -> Figure:
            words = (self.words[kind].get(name, name) for kind, name in figure.shared.items())
            return replace(figure, title=" · ".join(filter(None, words)) or figure.title)

        return replace(block, figures=[with_title(figure) for figure in block.figures])


@dataclass(frozen=True)
class Section:
    """The content of the page about one study."""

    name: str
    question: str
    settings: str
    directory: str
    command: str
    blocks: list[Block]
    provenance: dict[str, str]
    notices: Sequence[str] = ()
    notes: Sequence[str] = ()
    claims: Sequence[Claim] = ()
    names: Mapping[str, str] = field(default_factory=dict)  # names of the grid, explained
    fact_heads: Sequence[str] = ()
    fact_rows: Sequence[Sequence[str]] = ()  # one for each cell; the last column is its file


def section(results: Results, start: Path, shipped: Collection[str] = ()) -> Section:
    """Return the section of stored results; paths are relative to ``start``."""
    stored = StoredResults(results, start)
    if (results.directory / "curves.parquet").is_file():
        return _section_of_curves(stored)
    records = stored.records
    if records.empty:
        raise ValueError(
            f"{results.directory} has no finished cell, so there is nothing to draw. "
            f"Run the study first: walklearn run {results.directory / 'study.toml'}"
        )
    study = results.study
    known = f"reproduce {study.name}" if study.text in shipped else None
    command = f"walklearn {known or 'run ' + stored.file_of('study.toml')}"
    heads, rows = _facts_table(stored)
    times = sorted(map(str, records["stored_at"].unique()))
    explained = {name: text for words in stored.words.values() for name, text in words.items()}
    return Section(
        name=study.name,
        question=study.question,
        settings=study.text,
        directory=stored.file_of("."),
        command=command + " --quick" * study.is_quick,
        notices=list(_notices(results)),
        notes=notes(results),
        claims=claims(study.name, stored.verdicts, stored.file_of, stored.words),
        names={name: text for name, text in explained.items() if text not in ("", name)},
        blocks=[stored.with_titles(block) for block in blocks(stored)],
        fact_heads=heads,
        fact_rows=rows,
        provenance={
            "walklearn": ", ".join(map(str, records["version"].unique())),
            "machine": "; ".join(map(str, records["machine"].unique())),
            "started": format_time(results.about["started"]),
            "cells finished": " to ".join(dict.fromkeys(map(format_time, (times[0], times[-1])))),
            "seed": str(study.seed),
            "seed of one run": f"{records['seed'].iloc[0]}; each row has its own",
            "stored": f"{plural(records['cell'].nunique(), 'cell')}, "
            f"{plural(len(records), 'row')} of records",
        },
    )


def _section_of_curves(stored: StoredResults) -> Section:
    """Return the section of a computed figure, which has no cells and no verdicts."""
    import pandas

    about = stored.results.about
    table = pandas.read_parquet(stored.results.directory / "curves.parquet")
    return Section(
        name=about["study"],
        question=about["question"],
        settings=about["note"],
        directory=stored.file_of("."),
        command=f"walklearn reproduce {about['study']}",
        blocks=computed_curves(table, stored.file_of("curves.parquet"), about["note"]),
        provenance={
            "walklearn": about["walklearn"],
            "machine": about["machine"],
            "started": format_time(about["started"]),
            "stored": f"{len(table):,} points",
        },
    )


def blocks(stored: StoredResults) -> Iterator[Block]:
    """Yield the special figures for the grid and the claims, then the error curves."""
    study, view, cells = stored.results.study, stored.results.study.view, stored.cells
    kinds = view.kind or "map tradeoff cost scatter"
    special: list[Block | None] = []
    if "map" in kinds and (axes := (view.x, view.y) if view.x else map_axes(study.problems)):
        special.append(win_map(study.problems, stored.verdicts, axes, stored.file_of))
    if "tradeoff" in kinds and (axis := view.x or tradeoff_axis(study.methods)):
        special.append(tradeoff(cells, study.methods, study.metric, axis))
    if "cost" in kinds:
        special.append(cost(cells, study.claims))
    if "scatter" in kinds:
        ranked = [claim.by for claim in study.claims if claim.kind == "rank"]
        axes_of_claims = dict.fromkeys([view.x] if view.x else ranked)
        special.extend(scatter(cells, study.metric, fact) for fact in axes_of_claims)
    first = [block for block in special if block is not None]
    yield from first
    yield convergence(cells, study.metric, is_first=not first)


def _facts_table(stored: StoredResults) -> tuple[list[str], list[list[str]]]:
    """Return a table of means over the instances of each cell, without zero or unknown columns."""
    facts, names = stored.facts, ["graph", "problem", "step_size", "method"]
    groups = facts.groupby("cell", sort=False)
    present = [name for name in FACTS if name in facts and facts[name].notna().any()]
    means = groups[present].mean()
    means = means.loc[:, (means.fillna(0) != 0).any()]
    named = groups[names].first()
    rows = [
        [*map(str, named.loc[cell]), *(number(float(value)) for value in row),
         stored.file_of(f"facts/{cell}.parquet")]
        for cell, row in zip(means.index, means.to_numpy(), strict=True)
    ]  # fmt: skip
    heads = [*(name.replace("_", " ") for name in names), *(FACTS[str(name)] for name in means)]
    return [*heads, "file"], rows


def _notices(results: Results) -> Iterator[str]:
    """Yield warnings that come before the figures."""
    finished, planned = results.finished_count, len(results.study.cells())
    if finished < planned:
        yield f"{finished} of {planned} cells are finished; run the study again for the rest."
    if results.study.is_quick:
        yield "A quick run: fewer instances and updates than in the full study."


def format_time(stored: str) -> str:
    """Format a stored time.

    >>> format_time("2026-11-16T00:27:34+00:00")
    '2026-11-16 00:27 UTC'
    """
    return f"{datetime.fromisoformat(stored).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
