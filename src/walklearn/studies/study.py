"""A study: what is compared, on what, how often. Read from TOML and checked before it is run.

Every error names the file, the line and the key, what is wrong and what is allowed:

>>> Study.from_text("name = 'mine'\\nupdate = 100", source="mine.toml")
Traceback (most recent call last):
    ...
walklearn.studies.source.StudyError: mine.toml, line 2: update is no key of a study; did you
mean updates? Allowed: name, question, ...
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from walklearn.privacy import InfeasiblePrivacyError
from walklearn.studies.cell import Cell
from walklearn.studies.choices import (
    ChoiceError,
    Table,
    as_toml,
    check_keys,
    check_type,
    chosen,
    graph_of,
    not_known,
    step_size_of,
)
from walklearn.studies.claims import Claim, read_claims
from walklearn.studies.extras import one_thread
from walklearn.studies.methods import WHERE, method_of, resolved
from walklearn.studies.source import Source, StudyError
from walklearn.studies.view import View, read_view
from walklearn.studies.worlds import DATA, GRAPH, RUN, draw_problem, stream
from walklearn.trace_files import ERRORS

# The keys of a study with what they are when left out; None where they must be given.
_COUNTS: dict[str, int | None] = {
    "seed": 1, "instances": 100, "replicates": 1, "updates": None, "records": 60,
}  # fmt: skip
_GRIDS = ("graphs", "problems", "methods", "step_sizes")
_KEYS = (
    "name", "question", *_COUNTS, "metric", "gaps", "facts", "quick", *_GRIDS, "claims", "figure",
)  # fmt: skip
_QUICK = ("instances", "replicates", "updates", "records", "tuning_instances")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
TUNING_INSTANCES = 10
MOST = 10**12  # of anything that is counted


@dataclass(frozen=True)
class Study:
    """A grid of graphs × problems × methods × step sizes, and how often each cell is run.

    instances: draws of graph and data, the same for every method. replicates: walks on each.
    records: at how many numbers of updates, log-spaced, errors are recorded. metric: the error
    that figures show first and that steps are tuned for. facts: whether theory is asked too.
    gaps: over how many nodes, spread evenly, gossip's gaps are averaged; None for all.
    view: what it is best looked at as. is_quick: whether `quick` has been applied.
    """

    name: str
    question: str
    seed: int
    instances: int
    replicates: int
    updates: int
    records: int
    metric: str
    facts: bool
    graphs: Mapping[str, Table]
    problems: Mapping[str, Table]
    methods: Mapping[str, Table]
    step_sizes: Mapping[str, Table]
    gaps: int | None = None
    claims: tuple[Claim, ...] = ()
    view: View = field(default_factory=View)
    text: str = field(default="", repr=False)
    quick_changes: Table = field(default_factory=dict, repr=False)
    is_quick: bool = False

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Study:
        """Read and check a study's file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise StudyError(f"cannot read {path}: {error}") from error
        return cls.from_text(text, source=str(path))

    @classmethod
    def from_text(cls, text: str, source: str = "the study", *, check: bool = True) -> Study:
        """Read a study. check: build every graph, problem and method once, to be sure of them."""
        origin = Source(source, text)
        with _about(origin):
            study = _read(origin)
        if check:
            with one_thread():
                _build(study, origin)
        return study

    def cells(self) -> list[Cell]:
        """One for each graph, problem, step size and method, in this order."""
        return [
            self._cell(graph, problem, method, step_size)
            for graph, problem, step_size, method in product(
                self.graphs, self.problems, self.step_sizes, self.methods
            )
            if _runs_on(self.methods[method], graph, problem, step_size)
        ]

    def quick(self) -> Study:
        """The same with the changes of its `quick` table."""
        if not self.quick_changes:
            raise StudyError(
                f"{self.name} says nothing of a quick run: give it a line such as "
                "quick = { instances = 20, updates = 1000 }"
            )
        changes = dict(self.quick_changes)
        tuning = changes.pop("tuning_instances", None)
        steps = self.step_sizes
        if tuning is not None:
            steps = {
                name: {**table, "tuning_instances": tuning} if "constants" in table else table
                for name, table in steps.items()
            }
        return replace(self, **changes, step_sizes=steps, is_quick=True)

    def _cell(self, graph: str, problem: str, method: str, step_size: str) -> Cell:
        steps = dict(self.step_sizes[step_size])
        if "constants" in steps:
            steps = {"tuning_instances": TUNING_INSTANCES, "metric": self.metric, **steps}
        return Cell.of(
            (self.name, graph, problem, method, step_size),
            {
                "graph": self.graphs[graph],
                "problem": self.problems[problem],
                "method": resolved(self.methods[method]),
                "step_size": steps,
                "seed": self.seed,
                "instances": self.instances,
                "replicates": self.replicates,
                "updates": self.updates,
                "records": self.records,
                "facts": self.facts,
                **({"gaps": self.gaps} if self.gaps else {}),
            },
        )


def _runs_on(method: Table, graph: str, problem: str, step_size: str) -> bool:
    names = (graph, problem, step_size)
    return all(name in method.get(key, [name]) for key, name in zip(WHERE, names, strict=True))


def _read(source: Source) -> Study:
    table = source.table
    check_keys(table, _KEYS, "a study")
    settings: dict[str, Any] = {"question": "", "facts": False, **table}
    for key, kind in (("name", "str"), ("question", "str"), ("facts", "bool")):
        if key not in settings:
            raise ChoiceError(f"{source.name} needs {key}")
        check_type(settings, key, kind)
    if not _NAME.fullmatch(settings["name"]):
        raise ChoiceError(f"may have a-z, 0-9 and -; it is {as_toml(settings['name'])}", "name")
    for key, default in _COUNTS.items():
        if settings.setdefault(key, default) is None:
            raise ChoiceError(f"{source.name} needs {key}")
        _check_count(settings, key)
    if "gaps" in table:
        _check_count(table, "gaps")
    settings["metric"] = chosen({"metric": "average_gap", **table}, "metric", ERRORS)
    quick = settings.pop("quick", {})
    with _about(source, "quick"):
        _check_quick(quick)
    for grid in _GRIDS:
        _check_grid(source, grid)
    for name, steps in table["step_sizes"].items():
        with _about(source, "step_sizes", name):
            _check_steps(steps)
    _check_where(source)
    settings["claims"] = read_claims(source)
    settings.pop("figure", None)
    with _about(source, "figure"):
        settings["view"] = read_view(table)
    return Study(**settings, quick_changes=quick, text=source.text)


def _check_count(table: Table, key: str) -> None:
    check_type(table, key, "int")
    least, most = (0, 2**128) if key == "seed" else (1, MOST)
    if not least <= table[key] <= most:
        bound = f"at least {least}" if table[key] < least else f"at most {most:,}"
        raise ChoiceError(f"must be {bound}; it is {table[key]}", key)


def _check_quick(table: Any) -> None:
    if not isinstance(table, dict):
        raise ChoiceError(f"must be a table; it is {as_toml(table)}")
    check_keys(table, _QUICK, "quick")
    for key in table:
        _check_count(table, key)


def _check_grid(source: Source, grid: str) -> None:
    tables = source.table.get(grid)
    if not isinstance(tables, dict) or not tables:
        raise source.error((grid,), f"must have at least one table, such as [{grid}.mine]")
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise source.error((grid, name), f"must be a table, [{grid}.{name}]")


def _check_steps(table: Table) -> None:
    tuned = "constants" in table
    always = ("exponent", "relative")
    allowed = (
        ("constants", "tuning_instances", "tuning_updates", "metric") if tuned else ("constant",)
    )
    check_keys(table, (*allowed, *always), "a step size")
    if not tuned and "constant" not in table:
        raise ChoiceError("needs constant, or constants to be tuned over")
    check_type({"exponent": 0.75, **table}, "exponent", "float")
    check_type({"relative": False, **table}, "relative", "bool")
    if tuned:
        _check_count({"tuning_updates": 1, **table}, "tuning_updates")
        _check_count({"tuning_instances": TUNING_INSTANCES, **table}, "tuning_instances")
        chosen({"metric": "gap", **table}, "metric", ERRORS)
    constants = table["constants"] if tuned else [table["constant"]]
    key = "constants" if tuned else "constant"
    if not isinstance(constants, list) or not constants:
        raise ChoiceError(f"must be a list of numbers; it is {as_toml(constants)}", key)
    for constant in constants:
        check_type({key: constant}, key, "float")
        step_size_of(constant, table.get("exponent", 0.75))
    if constants != sorted(set(constants)):
        raise ChoiceError("must increase, so that its ends can be told", key)


def _check_where(source: Source) -> None:
    for name, method in source.table["methods"].items():
        for key in WHERE:
            names, known = method.get(key, []), source.table[key]
            if not isinstance(names, list) or (key in method and not names):
                raise source.error(("methods", name, key), "must be a list of names")
            for wanted in names:
                if wanted not in known:
                    raise source.error(("methods", name, key), not_known(wanted, known))


def _build(study: Study, source: Source) -> None:
    """Make everything once, for instance 0: what cannot be made is said with its line."""
    for graph, problem in product(study.graphs, study.problems):
        with _about(source, "graphs", graph):
            drawn = graph_of(study.graphs[graph], stream(study.seed, RUN, 0, GRAPH))
        with _about(source, "problems", problem, note=f" (with graph {graph})"):
            data = stream(study.seed, RUN, 0, DATA)
            posed = draw_problem(study.problems[problem], drawn, data)
        for name, method in study.methods.items():
            if not any(_runs_on(method, graph, problem, steps) for steps in study.step_sizes):
                continue
            with _about(source, "methods", name, note=f" (with problem {problem})"):
                try:
                    method_of(resolved(method), study.problems[problem], posed)
                except InfeasiblePrivacyError as error:
                    if method.get("infeasible") != "skip":
                        hint = 'Or say infeasible = "skip" to record that it is'
                        raise ChoiceError(f"{error} {hint}", "epsilon") from error


@contextmanager
def _about(source: Source, *path: str, note: str = "") -> Iterator[None]:
    """Say of an error where in the text its cause stands."""
    try:
        yield
    except StudyError:
        raise
    except ChoiceError as error:
        raise source.error((*path, *error.path), str(error)) from error
    except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
        table = source.table
        for part in path:
            table = table[part]
        named = [key for key in table if re.search(rf"\b{re.escape(key)}\b", str(error))]
        raise source.error((*path, *named[:1]), f": {error}{note}") from error
