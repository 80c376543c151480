"""One study as a section of the page: its question, its settings, its figures, its provenance."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from walklearn.report.bands import CellBands, all_bands
from walklearn.report.convergence import convergence
from walklearn.report.cost import cost
from walklearn.report.curves import curves
from walklearn.report.facts_table import FactsTable, facts_table
from walklearn.report.figures import Block
from walklearn.report.network import network
from walklearn.report.verdict_table import Claim, claims
from walklearn.report.views import scatter, tradeoff, tradeoff_axis
from walklearn.report.win_map import map_axes, win_map
from walklearn.studies.facts import notes

if TYPE_CHECKING:
    import pandas

    from walklearn.studies.results import Results

FileOf = Callable[[str], str]


@dataclass(frozen=True)
class Section:
    """All that the page says about one study."""

    name: str
    question: str
    settings: str
    directory: str
    command: str
    notices: list[str]
    notes: list[str]
    claims: list[Claim]
    blocks: list[Block]
    facts: FactsTable
    provenance: dict[str, str]


def section(results: Results, start: Path, shipped: Collection[str] = ()) -> Section:
    """Read what is stored, and put it into words, figures and tables; paths as from ``start``."""

    def file_of(name: str) -> str:
        return relative(results.directory / name, start)

    if (results.directory / "curves.parquet").is_file():
        return _computed(results, file_of)
    records = results.records()
    if records.empty:
        raise ValueError(
            f"{results.directory} has no finished cell yet, so there is nothing to draw; "
            f"run the study first: walklearn run {results.directory / 'study.toml'}"
        )
    study, facts, verdicts = results.study, results.facts(), results.verdicts()
    cells = all_bands(records, file_of)
    return Section(
        name=study.name,
        question=study.question,
        settings=study.text,
        directory=file_of("."),
        command=(
            f"walklearn reproduce {study.name}"
            if study.text in shipped
            else f"walklearn run {file_of('study.toml')}"
        )
        + " --quick" * study.is_quick,
        notices=list(_notices(results)),
        notes=notes(results),
        claims=claims(study.name, verdicts, file_of),
        blocks=list(_blocks(results, cells, records, facts, verdicts, file_of)),
        facts=facts_table(facts, file_of),
        provenance=_provenance(results, records),
    )


def _computed(results: Results, file_of: FileOf) -> Section:
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
        notices=[],
        notes=[],
        claims=[],
        blocks=curves(table, file_of("curves.parquet"), about["note"]),
        facts=FactsTable([], []),
        provenance={
            "walklearn": str(about["walklearn"]),
            "machine": str(about["machine"]),
            "started": minute(str(about["started"])),
            "stored": f"{len(table):,} points",
        },
    )


def _blocks(
    results: Results,
    cells: list[CellBands],
    records: pandas.DataFrame,
    facts: pandas.DataFrame,
    verdicts: pandas.DataFrame,
    file_of: FileOf,
) -> Iterator[Block]:
    """The figures that suit the study: what its grid and its claims are about, then the rest."""
    study, view = results.study, results.study.view
    kinds = view.kind or "map tradeoff cost scatter"
    special: list[Block | None] = []
    if "map" in kinds and (axes := (view.x, view.y) if view.x else map_axes(study.problems)):
        special.append(win_map(study.problems, verdicts, axes, file_of))
    if "tradeoff" in kinds and (axis := view.x or tradeoff_axis(study.methods)):
        special.append(tradeoff(cells, study.methods, study.metric, axis))
    if "cost" in kinds:
        special.append(cost(cells, records, facts, study.claims))
    if "scatter" in kinds:
        ranked = [claim.by for claim in study.claims if claim.kind == "rank"]
        wanted = dict.fromkeys([view.x] if view.x else ranked)
        special.extend(scatter(cells, facts, study.metric, fact) for fact in wanted)
    found = [block for block in special if block is not None]
    yield from found
    yield convergence(cells, study.metric, beside=bool(found))
    drawn = network(results.nodes(), results.edges(), file_of)
    if drawn is not None:
        yield drawn


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
        "stored": f"{records['cell'].nunique():,} cells, {len(records):,} rows of records",
    }


def minute(stored: str) -> str:
    """A stored moment, to read.

    >>> minute("2026-11-16T00:27:34+00:00")
    '2026-11-16 00:27 UTC'
    """
    return f"{datetime.fromisoformat(stored).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def relative(path: Path, start: Path) -> str:
    """A path as seen from the page, with forward slashes."""
    try:
        return Path(os.path.relpath(path, start)).as_posix()
    except ValueError:  # on Windows: another drive
        return path.resolve().as_posix()
