"""Claims of a study, read from the tables `[[claims]]` of its text and checked.

`walklearn.studies.verdicts` judges four kinds:

    beats            the error of `better` is below that of `worse` at the same cost
    slope            a method's error falls at least as fast as 1 / k^(1−q)
    rank             a number computed before the run orders the graphs as the error does
    cost-to-target   `better` reaches an error at less cost than `worse`

A claim has one verdict for each reading, a combination of graph, problem, step size, metric, cost,
point and method. If a claim names no graphs, all graphs of the study count, and so on. A step size
that was tuned for one error is not judged by another error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from walklearn.checks import is_number
from walklearn.files.checked_table import CheckedTable
from walklearn.plots import COSTS
from walklearn.simulation.trace_files import ERRORS

KINDS = ("beats", "slope", "rank", "cost-to-target")
#: Columns of the facts by which a rank claim can order graphs.
PREDICTIONS = ("bound", "mixing_time")

_GRID = ("graphs", "problems", "step_sizes")
_COMMON = ("kind", "text", "source", *_GRID, "metrics")
_PAIR = (*_COMMON, "better", "worse", "cost", "factor")
_KEYS = {
    "beats": (*_PAIR, "at"),
    "slope": (*_COMMON, "methods"),
    "rank": (*_COMMON, "methods", "by", "at"),
    "cost-to-target": (*_PAIR, "target", "relative"),
}


@dataclass(frozen=True)
class Claim:
    """One claim.

    number: position in the study, from 1.
    better, worse: the methods of "beats" and "cost-to-target".
    factor: `better` is better by more than this factor.
    methods: the methods of "slope" and "rank", each judged by itself.
    at: points of the cost axis; empty for the largest cost that all runs reach.
    at_tuned: the point for each tuned step size, for `at = "tuned"`.
    tuned_for: the error of each tuned step size.
    by: the fact that should rank the graphs.
    target, relative: an error to reach, or with `relative` a multiple of ‖w*‖.
    """

    number: int
    kind: str
    text: str
    source: str
    graphs: tuple[str, ...]
    problems: tuple[str, ...]
    step_sizes: tuple[str, ...]
    metrics: tuple[str, ...]
    methods: tuple[str, ...] = ()
    better: tuple[str, ...] = ()
    worse: tuple[str, ...] = ()
    costs: tuple[str, ...] = ("updates",)
    factor: float = 1.0
    at: tuple[float, ...] = ()
    at_tuned: Mapping[str, float] = field(default_factory=dict)
    tuned_for: Mapping[str, str] = field(default_factory=dict)
    by: str = "bound"
    target: float = 0.0
    relative: bool = False

    def readings(self) -> Iterator[tuple[str, str, str]]:
        """Yield the combinations of problem, step size and metric."""
        for problem, step_size, metric in product(self.problems, self.step_sizes, self.metrics):
            if self.tuned_for.get(step_size, metric) == metric:
                yield problem, step_size, metric

    def points(self, step_size: str) -> tuple[float, ...]:
        """Return the points for a step size; empty for the largest cost that all runs reach."""
        return (self.at_tuned[step_size],) if step_size in self.at_tuned else self.at


def read_claims(study: CheckedTable) -> tuple[Claim, ...]:
    """Read the claims of a study."""
    tables = study.tables("claims")
    return tuple(_claim(study, table, number) for number, table in enumerate(tables, start=1))


def _claim(study: CheckedTable, table: CheckedTable, number: int) -> Claim:
    kind = table.choice("kind", KINDS)
    table.only(_KEYS[kind], f"a claim of kind {kind}")
    metric = study.get("metric", "average_gap")
    grid: dict[str, Any] = {key: _names(study, table, key) for key in _GRID}
    claim = Claim(
        number=number,
        kind=kind,
        text=table.text("text"),
        source=table.text("source", ""),
        metrics=table.names("metrics", ERRORS, (metric,), or_one=True),
        tuned_for=_of_steps(study, "constants", "metric", metric),
        **grid,
        **_settings(study, table, kind),
    )
    if not any(claim.readings()):
        raise table.error("metrics", "leaves nothing to judge: the steps were tuned for others.")
    return claim


def _settings(study: CheckedTable, table: CheckedTable, kind: str) -> dict[str, Any]:
    """Read the fields of this kind of claim."""
    if kind == "slope":
        return {"methods": _names(study, table, "methods")}
    if kind == "rank":
        by = table.choice("by", PREDICTIONS, "bound")
        return {"methods": _names(study, table, "methods"), "by": by, **_points(study, table)}
    pair: dict[str, Any] = {
        key: table.names(key, study["methods"], or_one=True) for key in ("better", "worse")
    }
    for name in set(pair["better"]) & set(pair["worse"]):
        raise table.error("worse", f'must differ from better; "{name}" is in both.')
    pair["costs"] = table.names("cost", COSTS, ("updates",), or_one=True)
    pair["factor"] = table.number("factor", 1.0, minimum=1.0)
    if kind == "beats":
        return {**pair, **_points(study, table)}
    target, relative = table.number("target", above=0.0), table.flag("relative", False)
    return {**pair, "target": target, "relative": relative}


def _names(study: CheckedTable, table: CheckedTable, key: str) -> tuple[str, ...]:
    """Return the names in a key of a claim, by default all graphs, methods, … of the study."""
    return table.names(key, study[key], tuple(study[key]), or_one=True)


def _points(study: CheckedTable, table: CheckedTable) -> dict[str, Any]:
    if table.get("at") == "tuned":
        return {"at_tuned": _of_steps(study, "tuning_updates", "tuning_updates")}
    points = table.value(
        "at", [], wanted='"tuned" or a list of positive costs',
        fits=lambda value: isinstance(value, list)
        and all(is_number(point) and point > 0 for point in value),
    )  # fmt: skip
    return {"at": tuple(sorted(map(float, points)))}


def _of_steps(
    study: CheckedTable, required_key: str, key: str, default: Any = None
) -> dict[str, Any]:
    """The value of `key` for each step size that has the key `required_key`."""
    steps = study["step_sizes"].items()
    return {name: table.get(key, default) for name, table in steps if required_key in table}
