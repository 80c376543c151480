"""What a study claims: read from the tables `[[claims]]` of its text, checked, and kept as data.

There are four kinds, each judged by `walklearn.studies.verdicts`:

    beats            the error of `better` is below that of `worse` at the same cost
    slope            a method's error falls at least as fast as 1 / k^(1−q)
    rank             a number known before the run ranks the graphs as the measured error does
    cost-to-target   `better` reaches an error at less cost than `worse`

A claim is judged once for every reading: every graph, problem, step size, metric, cost and point
that it names (all of the study's where it names none); where it names several methods, for each.
Steps that were tuned for one error are not judged by another.

>>> study = CheckedTable.parse('''
... [graphs.ring]
... [problems.easy]
... [methods]
... uniform = { walk = "uniform" }
... weighted = { walk = "weighted" }
... [step_sizes.printed]
... [[claims]]
... kind = "beats"
... text = "The weighted walk beats the uniform one"
... better = "weighted"
... worse = "uniform"
... at = [1000]
... ''', "study.toml")
>>> claim, = read_claims(study)
>>> claim.better, claim.worse, claim.problems, claim.metrics, claim.costs, claim.at
(('weighted',), ('uniform',), ('easy',), ('average_gap',), ('updates',), (1000.0,))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from walklearn.checks import is_number
from walklearn.files.checked_table import CheckedTable
from walklearn.plots import COSTS
from walklearn.simulation.trace_files import ERRORS

KINDS = ("beats", "slope", "rank", "cost-to-target")
#: What a rank claim may rank graphs by: columns of the facts.
PREDICTIONS = ("bound", "mixing_time")

_COMMON = ("kind", "text", "source", "graphs", "problems", "step_sizes", "metrics")
_PAIR = (*_COMMON, "better", "worse", "cost")
_KEYS = {
    "beats": (*_PAIR, "at"),
    "slope": (*_COMMON, "methods"),
    "rank": (*_COMMON, "methods", "by", "at"),
    "cost-to-target": (*_PAIR, "target", "relative"),
}


@dataclass(frozen=True)
class Claim:
    """One claim, with every choice made.

    number: its place among the study's claims, from 1.
    better, worse: the methods of "beats" and "cost-to-target".
    methods: those that "slope" and "rank" are about, each judged on its own.
    costs: what the error is measured against.
    at: points of the cost axis; none stands for the largest cost that all runs reach.
    at_tuned: step sizes with the number of updates that they were tuned for: compare there.
    tuned_for: step sizes that were tuned, with the error that they were tuned for.
    by: the fact that should rank the graphs.
    target, relative: an error to be reached, or with `relative` its share of ‖w*‖.
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
    at: tuple[float, ...] = ()
    at_tuned: tuple[tuple[str, float], ...] = ()
    tuned_for: tuple[tuple[str, str], ...] = ()
    by: str = "bound"
    target: float = 0.0
    relative: bool = False

    def readings(self) -> Iterator[tuple[str, str, str]]:
        """Problem, step size and metric, in the order in which they are named."""
        tuned_for = dict(self.tuned_for)
        for problem, step_size, metric in product(self.problems, self.step_sizes, self.metrics):
            if tuned_for.get(step_size, metric) == metric:
                yield problem, step_size, metric

    def points(self, step_size: str) -> tuple[float, ...]:
        """Where to compare runs with that step size; empty for as far as all of them go."""
        tuned = dict(self.at_tuned)
        return (tuned[step_size],) if step_size in tuned else self.at


def read_claims(study: CheckedTable) -> tuple[Claim, ...]:
    """Read the claims of a study; an error names the key and line of what is wrong with one."""
    tables = study.tables("claims")
    return tuple(_claim(study, table, number) for number, table in enumerate(tables, start=1))


def _claim(study: CheckedTable, table: CheckedTable, number: int) -> Claim:
    kind = table.choice("kind", KINDS)
    table.only(_KEYS[kind], f"a claim of kind {kind}")
    metric = study.get("metric", "average_gap")
    chosen: dict[str, Any] = {
        "number": number,
        "kind": kind,
        "text": table.text("text"),
        "source": table.text("source", ""),
        "metrics": table.names("metrics", ERRORS, (metric,), or_one=True),
    }
    for key in ("graphs", "problems", "step_sizes"):
        chosen[key] = _named(study, table, key)
    tuned_for = tuple(_of_steps(study, "constants", "metric", metric))
    claim = Claim(**chosen, **_own(study, table, kind), tuned_for=tuned_for)
    if not any(claim.readings()):
        raise table.error("metrics", "leaves nothing to judge: the steps were tuned for others.")
    return claim


def _own(study: CheckedTable, table: CheckedTable, kind: str) -> dict[str, Any]:
    """What only this kind of claim has."""
    if kind == "slope":
        return {"methods": _named(study, table, "methods")}
    if kind == "rank":
        by = table.choice("by", PREDICTIONS, "bound")
        return {"methods": _named(study, table, "methods"), "by": by, **_points(study, table)}
    pair: dict[str, Any] = {
        key: table.names(key, study["methods"], or_one=True) for key in ("better", "worse")
    }
    for both in set(pair["better"]) & set(pair["worse"]):
        raise table.error("worse", f'must differ from better; both name "{both}".')
    pair["costs"] = table.names("cost", COSTS, ("updates",), or_one=True)
    if kind == "beats":
        return {**pair, **_points(study, table)}
    target, relative = table.number("target", above=0.0), table.flag("relative", False)
    return {**pair, "target": target, "relative": relative}


def _named(study: CheckedTable, table: CheckedTable, key: str) -> tuple[str, ...]:
    """The study's graphs, methods, … that the claim names; all of them where it names none."""
    every = tuple(study[key])
    return table.names(key, every, every, or_one=True)


def _points(study: CheckedTable, table: CheckedTable) -> dict[str, Any]:
    if table.get("at") == "tuned":
        tuned = _of_steps(study, "tuning_updates", "tuning_updates")
        return {"at_tuned": tuple((name, float(updates)) for name, updates in tuned)}
    points = table.value(
        "at", [], wanted='"tuned" or a list of positive costs',
        fits=lambda value: isinstance(value, list)
        and all(is_number(point) and point > 0 for point in value),
    )  # fmt: skip
    return {"at": tuple(sorted(map(float, points)))}


def _of_steps(
    study: CheckedTable, having: str, key: str, default: Any = None
) -> Iterator[tuple[str, Any]]:
    """Each step size whose table has one key, with what stands there under another."""
    for name, table in study["step_sizes"].items():
        if having in table:
            yield name, table.get(key, default)
