"""What a study claims: read from the tables `[[claims]]` of its text, checked, and kept as data.

There are four kinds, each judged by `walklearn.studies.verdicts`:

    beats            the error of `better` is below that of `worse` at the same cost
    slope            a method's error falls at least as fast as 1 / k^(1−q)
    rank             a number known before the run ranks the graphs as the measured error does
    cost-to-target   `better` reaches an error at less cost than `worse`

A claim is judged once for every reading: every graph, problem, step size, metric, cost and point
that it names (all of the study's where it names none); where it names several methods, for each.
Steps that were tuned for one error are not judged by another.

>>> source = Source("study.toml", '''
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
... ''')
>>> claim, = read_claims(source)
>>> claim.better, claim.worse, claim.problems, claim.metrics, claim.costs, claim.at
(('weighted',), ('uniform',), ('easy',), ('average_gap',), ('updates',), (1000.0,))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from walklearn.plot import COSTS
from walklearn.simulation.trace_files import ERRORS
from walklearn.studies.source import Source

KINDS = ("beats", "slope", "rank", "cost-to-target")
#: What a rank claim may rank graphs by: columns of the facts.
PREDICTIONS = ("bound", "mixing_time")

_COMMON = ("kind", "text", "source", "graphs", "problems", "step_sizes", "metrics")
_PAIR = (*_COMMON, "better", "worse", "cost", "setup")
_KEYS = {
    "beats": (*_PAIR, "at"),
    "slope": (*_COMMON, "methods", "window"),
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
    setup: whether messages and bytes include what nodes tell each other before the first update.
    at: points of the cost axis; none stands for the largest cost that all runs reach.
    at_tuned: step sizes with the number of updates that they were tuned for: compare there.
    tuned_for: step sizes that were tuned, with the error that they were tuned for.
    window: the slope is measured from this share of the updates on.
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
    setup: bool = False
    at: tuple[float, ...] = ()
    at_tuned: tuple[tuple[str, float], ...] = ()
    tuned_for: tuple[tuple[str, str], ...] = ()
    window: float = 0.1
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


def read_claims(source: Source) -> tuple[Claim, ...]:
    """The claims of a study; a StudyError names the key and line of what is wrong with one."""
    tables = source.table.get("claims", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise source.error(("claims",), "must be a list of tables: write [[claims]]")
    return tuple(_Reader(source, number).claim() for number in range(len(tables)))


class _Reader:
    """Takes one claim out of the text."""

    def __init__(self, source: Source, place: int) -> None:
        self.source = source
        self.place = place
        self.table: dict[str, Any] = source.table["claims"][place]

    def claim(self) -> Claim:
        kind = self._choice("kind", None, KINDS)
        self._refuse_unknown(kind)
        metric = self.source.table.get("metric", "average_gap")
        chosen: dict[str, Any] = {
            "number": self.place + 1,
            "kind": kind,
            "text": self._text("text"),
            "source": self._text("source", ""),
            "metrics": self._list("metrics", ERRORS, [metric]),
        }
        for key in ("graphs", "problems", "step_sizes"):
            chosen[key] = self._list(key, self._names(key))
        claim = Claim(**chosen, **self._own(kind), tuned_for=tuple(self._tuned_for(metric)))
        if not any(claim.readings()):
            raise self._error("metrics", "leaves nothing to judge: the steps were tuned for others")
        return claim

    def _tuned_for(self, metric: str) -> Iterator[tuple[str, str]]:
        for name, table in self.source.table.get("step_sizes", {}).items():
            if "constants" in table:
                yield name, table.get("metric", metric)

    def _own(self, kind: str) -> dict[str, Any]:
        """What only this kind of claim has."""
        if kind == "slope":
            return {"methods": self._methods(), "window": self._share("window", 0.1)}
        if kind == "rank":
            by = self._choice("by", "bound", PREDICTIONS)
            return {"methods": self._methods(), "by": by, **self._points()}
        pair: dict[str, Any] = {key: self._pair_of(key) for key in ("better", "worse")}
        both = set(pair["better"]) & set(pair["worse"])
        if both:
            raise self._error("worse", f"must differ from better; both name {both.pop()!r}")
        pair["costs"] = self._list("cost", COSTS, ["updates"])
        pair["setup"] = self._flag("setup")
        if kind == "beats":
            return {**pair, **self._points()}
        return {**pair, "target": self._positive("target"), "relative": self._flag("relative")}

    def _pair_of(self, key: str) -> tuple[str, ...]:
        self._value(key, None)
        return self._list(key, self._names("methods"))

    def _refuse_unknown(self, kind: str) -> None:
        for key in self.table:
            if key not in _KEYS[kind]:
                allowed = ", ".join(_KEYS[kind])
                raise self._error(key, f"is not a key of a {kind!r} claim; those are {allowed}")

    def _names(self, key: str) -> list[str]:
        named = self.source.table.get(key, {})
        return list(named) if isinstance(named, dict) else []

    def _methods(self) -> tuple[str, ...]:
        return self._list("methods", self._names("methods"))

    def _text(self, key: str, default: str | None = None) -> str:
        value = self._value(key, default)
        if not isinstance(value, str):
            raise self._error(key, f"must be text; it is {value!r}")
        return value

    def _choice(self, key: str, default: str | None, allowed: Any) -> str:
        value = self._value(key, default)
        if value not in list(allowed):
            raise self._error(key, f"must be one of {', '.join(allowed)}; it is {value!r}")
        return str(value)

    def _list(self, key: str, allowed: Any, default: list[str] | None = None) -> tuple[str, ...]:
        names = list(allowed)
        values = self.table.get(key, names if default is None else default)
        values = [values] if isinstance(values, str) else values
        if not isinstance(values, list) or not values:
            raise self._error(key, f"must be a list of names; it is {values!r}")
        for value in values:
            if value not in names:
                raise self._error(key, f"may name {', '.join(names)}; {value!r} is none of them")
        return tuple(values)

    def _points(self) -> dict[str, Any]:
        points = self.table.get("at", [])
        if points == "tuned":
            return {"at_tuned": tuple(self._tuned())}
        if not isinstance(points, list) or not all(_is_number(p) and p > 0 for p in points):
            raise self._error("at", f'must be "tuned" or a list of positive costs, not {points!r}')
        return {"at": tuple(sorted(float(point) for point in points))}

    def _tuned(self) -> Iterator[tuple[str, float]]:
        """The step sizes that were tuned for a horizon of their own."""
        for name, table in self.source.table.get("step_sizes", {}).items():
            if "tuning_updates" in table:
                yield name, float(table["tuning_updates"])

    def _positive(self, key: str) -> float:
        value = self._value(key, None)
        if not _is_number(value) or not 0 < value < float("inf"):
            raise self._error(key, f"must be a positive number; it is {value!r}")
        return float(value)

    def _share(self, key: str, default: float) -> float:
        value = self.table.get(key, default)
        if not _is_number(value) or not 0 < value < 1:
            raise self._error(key, f"must be between 0 and 1; it is {value!r}")
        return float(value)

    def _flag(self, key: str) -> bool:
        value = self.table.get(key, False)
        if not isinstance(value, bool):
            raise self._error(key, f"must be true or false; it is {value!r}")
        return value

    def _value(self, key: str, default: Any) -> Any:
        value = self.table.get(key, default)
        if value is None:
            raise self._error(key, "is missing")
        return value

    def _error(self, key: str, message: str) -> Exception:
        return self.source.error(("claims", self.place, key), message)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
