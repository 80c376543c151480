"""One study as a section of the page: its question, its settings, its figures, its provenance.

What a study is best looked at as is seen from its grid and its claims:

    map         its problems form a grid over two numbers: who wins where, by the verdicts' ratios
    tradeoff    methods that differ in one number alone, such as ε: the final error against it
    cost        claims about reaching a target: what was spent to get there
    scatter     a claim that a fact ranks graphs: the final error against that fact

unless the study says so itself, in its table ``[figure]`` (see `walklearn.studies.figure_options`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from walklearn.studies.provenance import notes
from walklearn.studies.report.bands import PANEL, CellBands, all_bands
from walklearn.studies.report.figures import Block, Figure, computed_curves
from walklearn.studies.report.final_errors import FACTS, scatter, tradeoff, tradeoff_axis
from walklearn.studies.report.graph_visits import graph_visits
from walklearn.studies.report.readings import readings_of
from walklearn.studies.report.spending import convergence, cost
from walklearn.studies.report.verdict_table import Claim, claims
from walklearn.studies.report.win_map import map_axes, win_map
from walklearn.wording import number, plural

if TYPE_CHECKING:
    import pandas

    from walklearn.studies.results import Results


@dataclass(frozen=True)
class Stored:
    """What a study has stored: each table read once, its cells summarised once.

    Files are named as they are seen from the directory ``start``.
    """

    results: Results
    start: Path

    @cached_property
    def records(self) -> pandas.DataFrame:
        """A row per record."""
        return self.results.records()

    @cached_property
    def facts(self) -> pandas.DataFrame:
        """A row per instance of each cell."""
        return self.results.facts()

    @cached_property
    def verdicts(self) -> pandas.DataFrame:
        """A row per claim and reading."""
        return self.results.verdicts()

    @cached_property
    def cells(self) -> list[CellBands]:
        """The summaries that all figures are made of."""
        return all_bands(self.records, self.file_of)

    def file_of(self, name: str) -> str:
        """The path of a file of the study."""
        return Path(os.path.relpath(self.results.directory / name, self.start)).as_posix()


@dataclass(frozen=True)
class Section:
    """All that the page says about one study."""

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
    names: Mapping[str, str] = field(default_factory=dict)  # of its grid, and what they stand for
    fact_heads: Sequence[str] = ()
    fact_rows: Sequence[Sequence[str]] = ()  # one for each cell; the last column is its file


def section(results: Results, start: Path, shipped: Collection[str] = ()) -> Section:
    """Read what is stored, and put it into words, figures and tables; paths as from ``start``."""
    stored = Stored(results, start)
    if (results.directory / "curves.parquet").is_file():
        return _computed(results, stored.file_of)
    if stored.records.empty:
        raise ValueError(
            f"{results.directory} has no finished cell yet, so there is nothing to draw; "
            f"run the study first: walklearn run {results.directory / 'study.toml'}"
        )
    study = results.study
    words = readings_of(study)
    heads, rows = _facts_table(stored.facts, stored.file_of)
    return Section(
        name=study.name,
        question=study.question,
        settings=study.text,
        directory=stored.file_of("."),
        command=(
            f"walklearn reproduce {study.name}"
            if study.text in shipped
            else f"walklearn run {stored.file_of('study.toml')}"
        )
        + " --quick" * study.is_quick,
        notices=list(_notices(results)),
        notes=notes(results),
        claims=claims(study.name, stored.verdicts, stored.file_of, words),
        names={
            name: text
            for kind in words.values()
            for name, text in kind.items()
            if text and text != name
        },
        blocks=[_in_words(block, words) for block in blocks(stored)],
        fact_heads=heads,
        fact_rows=rows,
        provenance=_provenance(results, stored.records),
    )


def _computed(results: Results, file_of: Callable[[str], str]) -> Section:
    """A figure of computed curves: no study, no cells, no verdicts."""
    import pandas

    about = results.about
    table = pandas.read_parquet(results.directory / "curves.parquet")
    return Section(
        name=about["study"],
        question=about["question"],
        settings=about["note"],
        directory=file_of("."),
        command=f"walklearn reproduce {about['study']}",
        blocks=computed_curves(table, file_of("curves.parquet"), about["note"]),
        provenance={
            "walklearn": str(about["walklearn"]),
            "machine": str(about["machine"]),
            "started": minute(str(about["started"])),
            "stored": f"{len(table):,} points",
        },
    )


def blocks(stored: Stored) -> Iterator[Block]:
    """The figures that suit the study: what its grid and its claims are about, then the rest."""
    study, view, cells = stored.results.study, stored.results.study.view, stored.cells
    kinds = view.kind or "map tradeoff cost scatter"
    special: list[Block | None] = []
    if "map" in kinds and (axes := (view.x, view.y) if view.x else map_axes(study.problems)):
        special.append(win_map(study.problems, stored.verdicts, axes, stored.file_of))
    if "tradeoff" in kinds and (axis := view.x or tradeoff_axis(study.methods)):
        special.append(tradeoff(cells, study.methods, study.metric, axis))
    if "cost" in kinds:
        special.append(cost(cells, stored.facts, study.claims))
    if "scatter" in kinds:
        ranked = [claim.by for claim in study.claims if claim.kind == "rank"]
        wanted = dict.fromkeys([view.x] if view.x else ranked)
        special.extend(scatter(cells, stored.facts, study.metric, fact) for fact in wanted)
    found = [block for block in special if block is not None]
    yield from found
    yield convergence(cells, study.metric, beside=bool(found))
    drawn = graph_visits(stored.results.nodes(), stored.results.edges(), stored.file_of)
    if drawn is not None:
        yield drawn


def _in_words(block: Block, words: Mapping[str, Mapping[str, str]]) -> Block:
    """The block with titles that say what sets each panel apart, not what the study calls it."""

    def titled(figure: Figure) -> Figure:
        said = (words[kind].get(name, name) for kind, name in figure.of.items())
        return replace(figure, title=" · ".join(filter(None, said)) or figure.title)

    return replace(block, figures=[titled(figure) for figure in block.figures])


def _facts_table(
    facts: pandas.DataFrame, file_of: Callable[[str], str]
) -> tuple[list[str], list[list[str]]]:
    """Means over the instances of each cell; columns that say nothing are left out."""
    identity = [*PANEL, "method"]
    named = facts.groupby("cell", sort=False)[identity].first()
    present = [name for name in FACTS if name in facts and facts[name].notna().any()]
    means = facts.groupby("cell", sort=False)[present].mean()
    means = means.loc[:, (means.fillna(0) != 0).any()]
    rows = [
        [*map(str, named.loc[cell]), *(number(float(value)) for value in row),
         file_of(f"facts/{cell}.parquet")]
        for cell, row in zip(means.index, means.to_numpy(), strict=True)
    ]  # fmt: skip
    heads = [*(name.replace("_", " ") for name in identity), *(FACTS[str(name)] for name in means)]
    return [*heads, "file"], rows


def _notices(results: Results) -> Iterator[str]:
    """What a reader must know before anything else."""
    finished, planned = results.finished_count, len(results.study.cells())
    if finished < planned:
        yield f"{finished} of {planned} cells are finished; the rest is still to be run."
    if results.study.is_quick:
        yield "A quick run: fewer instances and updates than the study asks for."


def _provenance(results: Results, records: pandas.DataFrame) -> dict[str, str]:
    times = sorted(map(str, records["time"].unique()))
    return {
        "walklearn": ", ".join(map(str, records["version"].unique())),
        "machine": "; ".join(map(str, records["machine"].unique())),
        "started": minute(str(results.about["started"])),
        "cells finished": " to ".join(
            dict.fromkeys(minute(time) for time in (times[0], times[-1]))
        ),
        "seed": str(results.study.seed),
        "seed of one run": f"{records['seed'].iloc[0]}; each row has its own",
        "stored": f"{plural(records['cell'].nunique(), 'cell')}, "
        f"{plural(len(records), 'row')} of records",
    }


def minute(stored: str) -> str:
    """A stored moment, to read.

    >>> minute("2026-11-16T00:27:34+00:00")
    '2026-11-16 00:27 UTC'
    """
    return f"{datetime.fromisoformat(stored).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
