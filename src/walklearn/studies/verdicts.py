"""Verdicts on claims, computed from the recorded runs.

A reading of a claim is one combination of the graphs, problems, step sizes, metrics and methods
that it covers. For each reading, an estimate and its 95 % interval over instances are compared with
a threshold. (An instance is a draw of graph and data, the same for all methods.)

    kind             estimate                                         holds if      fails if
    beats            mean error of `worse` / mean error of `better`   lower > c     upper < c
    cost-to-target   median cost of `worse` / that of `better`        lower > c     upper < c
    slope            slope of ln(mean error) over ln(updates)         upper ≤ q−1   lower > q−1
    rank             Spearman's correlation over graphs               lower > 0     upper ≤ 0

c is the claim's factor, by default 1. Otherwise, or with fewer than 10 instances, the claim is
undecided. A failed run has an infinite
error, and a run that never reaches its target has an infinite cost; the table counts both. About
one verdict in twenty is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from walklearn.simulation.intervals import (
    CONFIDENCE,
    RESAMPLES,
    Array,
    Interval,
    log_slope,
    rank_correlation,
    ratio_of_means,
    ratio_of_medians,
)
from walklearn.studies.claims import Claim
from walklearn.studies.recorded_runs import CellRuns, by_cell

if TYPE_CHECKING:
    import pandas

MIN_INSTANCES = 10
SLOPE_WINDOW = 0.1  # slopes use only the updates after this share of all updates
Cells = Mapping[tuple[str, ...], CellRuns]
_RATIO = f"paired bootstrap over instances, {RESAMPLES} resamples, percentile ∪ studentised"
_MEDIANS = f"paired bootstrap over instances, {RESAMPLES} resamples, percentile, of medians"
_PERCENTILE = f"bootstrap over instances, {RESAMPLES} resamples, percentile"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict on a claim in one reading: a row of `verdicts.parquet`.

    ratio, lower, upper: the estimate (a ratio, slope or correlation) and its interval.
    median_ratio: ratio of the medians. wins: the share of instances in which `better` is
    smaller.
    largest_share: the largest share of one instance in the sum over instances.
    failed_better, failed_worse: instances with an infinite error or cost.
    replicates: the number of instances.
    """

    claim: int
    kind: str
    text: str
    source: str
    graph: str
    problem: str
    step_size: str
    metric: str
    cost: str = "updates"
    at: float = math.nan
    better: str = ""
    worse: str = ""
    ratio: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    threshold: float = 1.0
    median_ratio: float = math.nan
    wins: float = math.nan
    largest_share: float = math.nan
    failed_better: int = 0
    failed_worse: int = 0
    confidence: float = CONFIDENCE
    replicates: int = 0
    verdict: str = "undecided"
    cells: list[str] = field(default_factory=list)
    interval: str = _RATIO


def verdicts(study: Any, results: Any) -> pandas.DataFrame:
    """Judge the claims of a study by its results: a row per claim and reading."""
    return judge(study.claims, results.records(), results.facts())


def judge(
    claims: Iterable[Claim], records: pandas.DataFrame, facts: pandas.DataFrame
) -> pandas.DataFrame:
    """Judge claims from tables of records and facts; undecided where cells are missing."""
    import pandas

    facts_of_cell = by_cell(facts)
    cells = {
        cell: CellRuns(rows, facts_of_cell.get(cell)) for cell, rows in by_cell(records).items()
    }
    rows = [asdict(verdict) for claim in claims for verdict in _judge(claim, cells)]
    return pandas.DataFrame(rows, columns=list(Verdict.__dataclass_fields__))


def _judge(claim: Claim, cells: Cells) -> Iterator[Verdict]:
    judges = {"slope": _judge_slope, "rank": _judge_rank}
    graphs = ("all",) if claim.kind == "rank" else claim.graphs
    for graph, (problem, step_size, metric) in product(graphs, claim.readings()):
        reading = Verdict(
            claim=claim.number, kind=claim.kind, text=claim.text, source=claim.source,
            graph=graph, problem=problem, step_size=step_size, metric=metric,
        )  # fmt: skip
        yield from judges.get(claim.kind, _judge_pairs)(claim, cells, reading)


def _judge_pairs(claim: Claim, cells: Cells, reading: Verdict) -> Iterator[Verdict]:
    """Compare two methods by their errors at equal cost, or by their costs to reach an error."""
    to_target = claim.kind == "cost-to-target"
    reading = replace(reading, threshold=claim.factor)
    if to_target:
        # The cost of runs that never reach the target is infinite, so medians are compared.
        reading = replace(reading, at=claim.target, interval=_MEDIANS)
    for better, worse, cost in product(claim.better, claim.worse, claim.costs):
        verdict = replace(reading, better=better, worse=worse, cost=cost)
        verdict, pair = _with_cells(verdict, cells, (better, worse))
        if not pair:
            yield verdict
        elif to_target:
            costs = [runs.cost_of(verdict.metric, cost, claim.target, claim.relative)
                     for runs in pair]  # fmt: skip
            yield _compare(verdict, costs, ratio_of_medians)
        else:
            for point in _points(claim, verdict, pair):
                errors = [runs.error_at(verdict.metric, cost, point) for runs in pair]
                yield _compare(replace(verdict, at=point), errors, ratio_of_means)


def _judge_slope(claim: Claim, cells: Cells, reading: Verdict) -> Iterator[Verdict]:
    for method in claim.methods:
        verdict = replace(reading, better=method, interval=_PERCENTILE)
        verdict, stored = _with_cells(verdict, cells, (method,))
        if not stored:
            yield verdict
            continue
        (runs,) = stored
        exponent, updates = float(runs.only_value("exponent")), runs.table("updates")[0]
        is_late = updates >= SLOPE_WINDOW * updates[-1]
        verdict = replace(
            verdict, worse=f"O(1/k^{1.0 - exponent:.2g})", threshold=exponent - 1.0,
            at=float(updates[-1]), replicates=len(runs.instances),
        )  # fmt: skip
        errors = runs.averaged(runs.table(verdict.metric)[:, is_late])
        yield _decide(verdict, log_slope(updates[is_late], errors))


def _judge_rank(claim: Claim, cells: Cells, reading: Verdict) -> Iterator[Verdict]:
    import pandas

    for method in claim.methods:
        verdict = replace(reading, better=method, worse=claim.by, interval=_PERCENTILE)
        verdict, stored = _with_cells(verdict, cells, (method,), claim.graphs)
        facts = [fact for runs in stored if (fact := runs.fact(claim.by)) is not None]
        if not stored or len(facts) < len(stored):
            yield replace(verdict, cells=[])
            continue
        for point in _points(claim, verdict, stored):
            errors = [runs.error_at(verdict.metric, "updates", point) for runs in stored]
            measured = pandas.concat(errors, axis=1, join="inner")  # instances of all graphs
            predicted = np.stack([fact.loc[measured.index] for fact in facts], axis=1)
            ranked = replace(verdict, at=point, threshold=0.0, replicates=len(measured))
            yield _decide(ranked, rank_correlation(measured.to_numpy(), predicted))


def _with_cells(
    verdict: Verdict, cells: Cells, methods: Iterable[str], graphs: Iterable[str] = ()
) -> tuple[Verdict, list[CellRuns]]:
    """Return the verdict with its cells, and their runs; no runs unless all cells are stored."""
    names = [
        (graph, verdict.problem, method, verdict.step_size)
        for graph, method in product(graphs or (verdict.graph,), methods)
    ]
    if not all(name in cells for name in names):
        return verdict, []
    runs = [cells[name] for name in names]
    return replace(verdict, cells=[str(each.only_value("cell")) for each in runs]), runs


def _points(claim: Claim, verdict: Verdict, runs: list[CellRuns]) -> list[float]:
    """Return the costs at which to compare: those of the claim, limited to what all runs reach."""
    reach = min(each.reach(verdict.cost) for each in runs)
    return sorted({min(point, reach) for point in claim.points(verdict.step_size)}) or [reach]


def _compare(
    verdict: Verdict, values: list[pandas.Series[Any]], ratio: Callable[[Array, Array], Interval]
) -> Verdict:
    """Compare `better` and `worse` on the instances that both have."""
    import pandas

    better, worse = pandas.concat(values, axis=1, join="inner").to_numpy().T
    compared = replace(
        verdict,
        replicates=len(better),
        median_ratio=ratio_of_medians(worse, better).value,
        wins=float(np.mean(better < worse)),
        largest_share=max(_largest_share(better), _largest_share(worse)),
        failed_better=int(np.isinf(better).sum()),
        failed_worse=int(np.isinf(worse).sum()),
    )
    return _decide(compared, ratio(worse, better))


def _largest_share(values: Array) -> float:
    finite = values[np.isfinite(values)]
    total = float(finite.sum())
    return float(finite.max() / total) if total > 0 else math.nan


def _decide(verdict: Verdict, estimate: Interval) -> Verdict:
    """Return the verdict with its estimate and outcome."""
    value, lower, upper = estimate
    threshold, outcome = verdict.threshold, "undecided"
    if verdict.kind == "slope":
        holds, fails = upper <= threshold, lower > threshold
    else:
        # A correlation of exactly 0 throughout means that nothing is ranked.
        holds = lower > threshold
        fails = upper <= threshold if verdict.kind == "rank" else upper < threshold
    if verdict.replicates >= MIN_INSTANCES:
        outcome = "holds" if holds else "does not hold" if fails else "undecided"
    return replace(verdict, ratio=value, lower=lower, upper=upper, verdict=outcome)
