"""Whether a claim holds, computed from the recorded runs.

A claim is judged for every reading by an estimate and its 95 % interval over instances (graph and
data drawn anew, all methods on the same ones), compared with a threshold:

    kind             estimate                                         holds if      fails if
    beats            mean error of `worse` / mean error of `better`   lower > 1     upper < 1
    cost-to-target   median cost of `worse` / that of `better`        lower > 1     upper < 1
    slope            slope of ln(mean error) over ln(updates)         upper ≤ q−1   lower > q−1
    rank             Spearman's correlation over graphs               lower > 0     upper ≤ 0

In between, or with fewer than 10 instances, it is undecided. A run that failed counts as
infinitely bad, one that never reaches a target as infinitely dear; both are counted in the table.
Each verdict errs with a probability of about 5 % (of 100, about five do).

>>> import pandas
>>> from walklearn.studies.claims import Claim
>>> rows = [
...     {"cell": method, "graph": "g", "problem": "p", "method": method, "step_size": "s",
...      "instance": i, "replicate": 0, "exponent": 0.51, "updates": 100, "distance": error}
...     for method, error in (("weighted", 1.0), ("uniform", 2.0)) for i in range(12)
... ]
>>> claim = Claim(1, "beats", "It wins", "", ("g",), ("p",), ("s",), ("distance",),
...               better=("weighted",), worse=("uniform",))
>>> table = judge([claim], pandas.DataFrame(rows), pandas.DataFrame())
>>> print(table[["ratio", "lower", "upper", "replicates", "verdict"]].to_string(index=False))
 ratio  lower  upper  replicates verdict
   2.0    2.0    2.0          12   holds
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
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
from walklearn.studies.recorded_runs import CellRuns, Runs, by_instance, cost_of, error_at, grouped

if TYPE_CHECKING:
    import pandas

MIN_INSTANCES = 10
SLOPE_WINDOW = 0.1  # slopes leave out the updates before this share of all
_RATIO = f"paired bootstrap over instances, {RESAMPLES} resamples, percentile ∪ studentised"
_MEDIANS = f"paired bootstrap over instances, {RESAMPLES} resamples, percentile, of medians"
_PERCENTILE = f"bootstrap over instances, {RESAMPLES} resamples, percentile"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A claim in one reading, and what came of it: a row of `verdicts.parquet`.

    ratio, lower, upper: the estimate (see above, a slope or a correlation for some kinds) and its
    interval, to be compared with `threshold`.
    median_ratio: the same of the medians. wins: the share of instances that `better` wins.
    largest_share: how much of the larger mean a single instance carries.
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
    """The verdicts of a study's claims, from its results: a row per claim and reading."""
    return judge(study.claims, results.records(), results.facts())


def judge(
    claims: Iterable[Claim], records: pandas.DataFrame, facts: pandas.DataFrame
) -> pandas.DataFrame:
    """Judge the claims by the tables; a reading whose cells are not there yet is undecided."""
    import pandas

    evidence = _Evidence(records, facts)
    rows = [asdict(verdict) for claim in claims for verdict in _judge(claim, evidence)]
    columns = list(Verdict.__dataclass_fields__)
    return pandas.DataFrame(rows, columns=columns)


class _Evidence:
    """The recorded runs and facts, by cell."""

    def __init__(self, records: pandas.DataFrame, facts: pandas.DataFrame) -> None:
        self.cells = {cell: CellRuns(rows) for cell, rows in grouped(records)}
        self._facts: dict[Any, pandas.DataFrame] = dict(grouped(facts))

    def runs(self, cell: tuple[str, ...], cost: str, metric: str) -> Runs | None:
        return self.cells[cell].against(cost, metric) if cell in self.cells else None

    def hashes(self, cells: Iterable[tuple[str, ...]]) -> list[str]:
        return [str(self.cells[cell].only_value("cell")) for cell in cells]

    def fact(self, cell: tuple[str, ...], column: str) -> pandas.Series[Any] | None:
        facts = self._facts.get(cell)
        if facts is None or column not in facts or facts[column].isna().all():
            return None
        return facts.set_index("instance")[column].astype(float)


def _judge(claim: Claim, evidence: _Evidence) -> Iterator[Verdict]:
    judges: dict[str, Callable[[Claim, _Evidence, Verdict], Iterator[Verdict]]] = {
        "beats": _judge_pairs,
        "cost-to-target": _judge_pairs,
        "slope": _judge_slope,
        "rank": _judge_rank,
    }
    graphs = ("all",) if claim.kind == "rank" else claim.graphs
    for graph, (problem, step_size, metric) in product(graphs, claim.readings()):
        verdict = Verdict(
            claim=claim.number, kind=claim.kind, text=claim.text, source=claim.source,
            graph=graph, problem=problem, step_size=step_size, metric=metric,
        )  # fmt: skip
        yield from judges[claim.kind](claim, evidence, verdict)


def _judge_pairs(claim: Claim, evidence: _Evidence, reading: Verdict) -> Iterator[Verdict]:
    """Compare two methods by their errors at a cost, or by the costs of an error."""
    if claim.kind == "cost-to-target":
        # Some runs never reach the target, so their cost is infinite: compare medians.
        reading = replace(reading, at=claim.target, interval=_MEDIANS)
    for better, worse, cost in product(claim.better, claim.worse, claim.costs):
        verdict = replace(reading, better=better, worse=worse, cost=cost)
        cells = [_cell(verdict, method) for method in (better, worse)]
        runs = [evidence.runs(cell, cost, reading.metric) for cell in cells]
        pair = [each for each in runs if each is not None]
        if len(pair) < len(cells):
            yield verdict
            continue
        verdict = replace(verdict, cells=evidence.hashes(cells))
        if claim.kind == "cost-to-target":
            costs = [
                cost_of(each.costs, each.errors, _targets(claim, evidence, cells[0], each))
                for each in pair
            ]
            yield _compared(verdict, pair, costs, ratio_of_medians)
            continue
        for point in _points(claim, verdict, min(each.reach for each in pair)):
            errors = [error_at(each.costs, each.errors, point) for each in pair]
            yield _compared(replace(verdict, at=point), pair, errors, ratio_of_means)


def _judge_slope(claim: Claim, evidence: _Evidence, reading: Verdict) -> Iterator[Verdict]:
    for method in claim.methods:
        cell = _cell(reading, method)
        verdict = replace(reading, better=method, interval=_PERCENTILE)
        runs = evidence.runs(cell, "updates", reading.metric)
        if runs is None:
            yield verdict
            continue
        exponent = float(evidence.cells[cell].only_value("exponent"))
        updates = runs.costs[0]
        late = updates >= SLOPE_WINDOW * updates[-1]
        errors = [by_instance(runs.instances, column) for column in runs.errors[:, late].T]
        yield _decided(
            replace(
                verdict, worse=f"O(1/k^{1.0 - exponent:.2g})", threshold=exponent - 1.0,
                at=float(updates[-1]), cells=evidence.hashes([cell]), replicates=len(errors[0]),
            ),
            log_slope(updates[late], np.stack(errors, axis=1)),
        )  # fmt: skip


def _judge_rank(claim: Claim, evidence: _Evidence, reading: Verdict) -> Iterator[Verdict]:
    import pandas

    for method in claim.methods:
        cells = [_cell(replace(reading, graph=graph), method) for graph in claim.graphs]
        verdict = replace(reading, better=method, worse=claim.by, interval=_PERCENTILE)
        runs = [evidence.runs(cell, "updates", reading.metric) for cell in cells]
        predicted = [evidence.fact(cell, claim.by) for cell in cells]
        known = [each for each in runs if each is not None]
        facts = [each for each in predicted if each is not None]
        if min(len(known), len(facts)) < len(cells):
            yield verdict
            continue
        for point in _points(claim, verdict, min(each.reach for each in known)):
            errors = [
                by_instance(each.instances, error_at(each.costs, each.errors, point))
                for each in known
            ]
            measured = pandas.concat(errors, axis=1, join="inner")  # what all graphs have
            table = np.stack([fact.loc[measured.index] for fact in facts], axis=1)
            ranks = rank_correlation(measured.to_numpy(), table)
            yield _decided(
                replace(
                    verdict, at=point, threshold=0.0, replicates=len(measured),
                    cells=evidence.hashes(cells),
                ),
                ranks,
            )  # fmt: skip


def _cell(verdict: Verdict, method: str) -> tuple[str, ...]:
    return verdict.graph, verdict.problem, method, verdict.step_size


def _points(claim: Claim, verdict: Verdict, reach: float) -> list[float]:
    """Where to compare: the points asked for, no further than all runs reach."""
    wanted = claim.points(verdict.step_size)
    return sorted({min(point, reach) for point in wanted}) or [reach]


def _targets(claim: Claim, evidence: _Evidence, cell: tuple[str, ...], runs: Runs) -> Array:
    """The error that each run is to reach: fixed, or a share of its instance's ‖w*‖."""
    if not claim.relative:
        return np.full(len(runs.instances), claim.target)
    norms = evidence.fact(cell, "optimum_norm")
    if norms is None:
        return np.full(len(runs.instances), np.nan)
    return np.asarray(claim.target * norms.reindex(runs.instances.tolist()).to_numpy())


def _compared(
    verdict: Verdict,
    pair: list[Runs],
    values: list[Array],
    ratio: Callable[[Array, Array], Interval],
) -> Verdict:
    """`worse` against `better`, on the instances that both have."""
    import pandas

    better, worse = (
        by_instance(runs.instances, each) for runs, each in zip(pair, values, strict=True)
    )
    both = pandas.concat([better, worse], axis=1, join="inner").to_numpy()
    better_values, worse_values = both[:, 0], both[:, 1]
    return _decided(
        replace(
            verdict,
            replicates=len(both),
            median_ratio=ratio_of_medians(worse_values, better_values).value,
            wins=float(np.mean(better_values < worse_values)),
            largest_share=max(_largest_share(better_values), _largest_share(worse_values)),
            failed_better=int(np.isinf(better_values).sum()),
            failed_worse=int(np.isinf(worse_values).sum()),
        ),
        ratio(worse_values, better_values),
    )


def _largest_share(values: Array) -> float:
    finite = values[np.isfinite(values)]
    total = float(finite.sum())
    return float(finite.max() / total) if total > 0 else math.nan


def _decided(verdict: Verdict, found: Interval) -> Verdict:
    """The verdict with its estimate and what that means."""
    value, lower, upper = found.value, found.lower, found.upper
    judged = replace(verdict, ratio=value, lower=lower, upper=upper)
    threshold = verdict.threshold
    if verdict.replicates < MIN_INSTANCES:
        return judged
    if verdict.kind == "slope":
        holds, fails = upper <= threshold, lower > threshold
    else:
        # A correlation of exactly 0 throughout says that nothing is ranked.
        holds = lower > threshold
        fails = upper <= threshold if verdict.kind == "rank" else upper < threshold
    word = "holds" if holds else "does not hold" if fails else "undecided"
    return replace(judged, verdict=word)
