"""Running a cell: its step constant tuned, if need be, and its instances run and recorded.

Instances are independent of each other (`instances` tells what their random numbers come from), so
any part of them can be run anywhere, and the parts joined.

>>> cell = Cell.of(("mine", "ring", "gaussians", "uniform", "printed"), {
...     "graph": {"family": "ring", "nodes": 11}, "seed": 1, "instances": 2, "replicates": 1,
...     "problem": {"data": "two_gaussians", "dimension": 2, "penalty": 1.0}, "updates": 100,
...     "method": {"walk": "uniform"}, "step_size": {"constant": 0.1, "exponent": 0.75},
...     "records": 3, "facts": False})
>>> result = run(cell)
>>> result.records["updates"].tolist(), result.records["instance"].tolist()
([1, 10, 100, 1, 10, 100], [0, 0, 0, 1, 1, 1])
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.privacy import InfeasiblePrivacyError
from walklearn.simulation.averaging import Gossip
from walklearn.simulation.simulate import simulate
from walklearn.simulation.trace import Trace
from walklearn.simulation.trace_files import ERRORS, table_columns
from walklearn.studies.cell import Cell, CellError
from walklearn.studies.instances import (
    GRAPH,
    RUN,
    TUNE,
    WALK,
    World,
    kept_world,
    one_thread,
    stream,
)
from walklearn.studies.methods import method_of, step_smoothness, update_of
from walklearn.studies.options import step_size_of
from walklearn.studies.origins import register_import_paths
from walklearn.studies.provenance import edges_of, facts_of, nodes_of
from walklearn.studies.tables import (
    CellResult,
    Columns,
    joined,
    origin,
    repeated,
    seed_name,
    widened,
)
from walklearn.updates.step_choice import best_step
from walklearn.updates.step_sizes import StepSize
from walklearn.updates.update import Update
from walklearn.walks import Walk


@dataclass(frozen=True)
class Tuning:
    """A step constant, and how it was chosen: the mean error with each of the candidates."""

    constant: float
    constants: tuple[float, ...] = ()
    errors: tuple[float, ...] = ()
    metric: str = ""
    instances: int = 0

    @property
    def at_edge(self) -> bool:
        """Whether the best is the first or last of several: a better one may lie outside."""
        return len(self.constants) > 1 and self.constant in (self.constants[0], self.constants[-1])

    def as_json(self) -> str:
        """The table, with null for an error that is infinite; empty where nothing was tuned."""
        if not self.constants:
            return ""
        errors = [error if np.isfinite(error) else None for error in self.errors]
        return json.dumps({**asdict(self), "errors": errors})


def run(cell: Cell) -> CellResult:
    """Run all instances of a cell in this process, after tuning its step if the study asks for it.

    Parameters
    ----------
    cell
        The cell.

    Returns
    -------
    CellResult
        Its errors, costs and facts.
    """
    errors = tuning_errors(cell, range(cell.tuning_instances))
    return run_instances(cell, choose(cell, errors), range(cell.instances))


def tuning_errors(cell: Cell, instances: Sequence[int]) -> NDArray[np.float64]:
    """Find the error on each tuning instance (row) with each constant (column), at the horizon.

    Infinite where a run diverged, NaN where the method is not feasible.
    """
    metric = cell.description["step_size"].get("metric", "")
    errors = np.full((len(instances), len(cell.constants)), np.nan)
    with _running(cell):
        for row, number in enumerate(instances):
            instance = _Instance(cell, TUNE, number)
            try:
                method = instance.method()
            except InfeasiblePrivacyError:
                continue
            for column, constant in enumerate(cell.constants):
                update = instance.update(method, constant)
                trace = instance.simulate(method, update, [cell.tuning_updates])
                errors[row, column] = instance.errors(trace, metric)[:, -1].mean()
    return errors


def choose(cell: Cell, errors: NDArray[np.float64]) -> Tuning:
    """Choose the constant with the least mean error, and the smallest where several are equal."""
    steps = cell.description["step_size"]
    if "constants" not in steps:
        return Tuning(float(steps.get("constant", np.nan)))  # NaN: the step finds itself
    feasible = errors[~np.isnan(errors).any(axis=1)]
    means = feasible.mean(axis=0) if len(feasible) else np.full(errors.shape[1], np.inf)
    constants = tuple(map(float, steps["constants"]))
    best = best_step(constants, means)
    return Tuning(best, constants, tuple(means.tolist()), steps["metric"], len(feasible))


def run_instances(cell: Cell, tuning: Tuning, instances: Sequence[int]) -> CellResult:
    """Run some of the cell's instances with the chosen constant."""
    with _running(cell):
        return joined([_run_instance(_Instance(cell, RUN, number), tuning) for number in instances])


@dataclass(frozen=True)
class _Instance:
    """A draw of a cell's graph and data, to run on or to tune on, and the walks there."""

    cell: Cell
    stage: int
    number: int

    @cached_property
    def world(self) -> World:
        described = self.cell.description
        return kept_world(
            described["graph"], described["problem"], described["seed"], self.stage, self.number
        )

    @property
    def walks(self) -> np.random.SeedSequence:
        return stream(self.cell.description["seed"], self.stage, self.number, WALK)

    @property
    def exponent(self) -> float:
        return float(self.cell.description["step_size"].get("exponent", 0.75))

    def method(self) -> Walk | Gossip:
        described = self.cell.description
        try:
            return method_of(described["method"], described["problem"], self.world.problem)
        except InfeasiblePrivacyError as error:
            if described["method"].get("infeasible") == "skip":
                raise
            raise CellError(str(error)) from error

    def update(self, method: Walk | Gossip, constant: float) -> Update:
        """What a visit does, with the constant in its step unless it finds that itself."""
        described = self.cell.description
        found = "found" in described["step_size"]
        return update_of(described["method"], None if found else self.step_size(method, constant))

    def step_size(self, method: Walk | Gossip, constant: float) -> StepSize:
        """The step size; a `relative` constant is in units of 1 / (smoothness of the steps)."""
        step_size = step_size_of(constant, self.exponent)
        if not self.cell.description["step_size"].get("relative", False):
            return step_size
        smoothness = step_smoothness(method, self.world.graph, self.world.problem, step_size)
        return step_size_of(constant / smoothness, self.exponent)

    def simulate(self, method: Walk | Gossip, update: Update, records: list[int]) -> Trace:
        described, problem = self.cell.description, self.world.problem
        trace = simulate(
            problem, self.world.graph, method, steps=records[-1], update=update,
            replicates=described["replicates"], seed=self.walks, records=records,
            gaps=described.get("gaps") or True, cores=1, progress=False,
        )  # fmt: skip
        if not trace.complete:  # it was Ctrl-C; half an instance is of no use
            raise KeyboardInterrupt
        return trace

    def errors(self, trace: Trace, name: str) -> NDArray[np.float64]:
        """The errors, infinite where the run diverged; NaN only where they are not defined."""
        errors: NDArray[np.float64] = getattr(trace, name)
        defined = name.endswith("gap") or self.world.problem.solution.unique
        return np.where(np.isnan(errors), np.inf, errors) if defined else errors


def _run_instance(instance: _Instance, tuning: Tuning) -> CellResult:
    cell, number, world = instance.cell, instance.number, instance.world
    seed = cell.description["seed"]
    of_instance = origin(seed_name(seed, RUN, number))
    common: dict[str, Any] = {
        "instance": number, "constant": tuning.constant, "exponent": instance.exponent,
        **of_instance,
    }  # fmt: skip
    chosen = {"tuning": tuning.as_json(), "at_edge": tuning.at_edge}
    try:
        method = instance.method()
    except InfeasiblePrivacyError as error:
        facts = facts_of(world, None, cell.description, instance.walks, refusal=error)
        return CellResult({}, repeated({**common, **facts, **chosen}, 1), {}, {})
    update = instance.update(method, tuning.constant)
    common["constant"] = getattr(getattr(update, "step_size", None), "constant", np.nan)
    trace = instance.simulate(method, update, _recorded_at(cell))
    facts = facts_of(world, method, cell.description, instance.walks, trace=trace)
    first = number == 0
    nodes = nodes_of(world, method, instance.walks, trace) if first else {}
    return CellResult(
        records=_records(instance, trace, common),
        facts=repeated({**common, **facts, **chosen}, 1),
        nodes=widened(nodes, of_instance),
        edges=widened(edges_of(world), origin(seed_name(seed, RUN, 0, GRAPH))) if first else {},
    )


def _records(instance: _Instance, trace: Trace, common: Mapping[str, Any]) -> Columns:
    """A row for each replicate and record."""
    root, key = instance.cell.description["seed"], instance.walks.spawn_key
    seeds = [seed_name(root, *key, replicate) for replicate in range(trace.replicates)]
    columns = table_columns(vars(trace))
    return {
        **repeated(common, trace.messages.size),
        **{name: columns[name] for name in ("replicate", "updates", "messages", "bytes")},
        "seed": np.array(seeds, dtype=object).repeat(trace.records),
        **{name: instance.errors(trace, name).ravel() for name in ERRORS},
    }


def _recorded_at(cell: Cell) -> list[int]:
    """The same numbers of updates for all methods, so that their errors can be compared."""
    last, count = cell.description["updates"], cell.description["records"]
    spaced = np.rint(np.geomspace(1, last, count)) if count > 1 else [last]
    return [int(number) for number in np.unique(spaced)]


@contextmanager
def _running(cell: Cell) -> Iterator[None]:
    """Let errors name the cell, and silence warnings of runs, which the facts tell."""
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore", UserWarning)
        try:
            register_import_paths(cell.description.get("import_paths", {}))
            yield
        except (ValueError, TypeError, ArithmeticError) as error:
            raise CellError(f"{cell}: {error}") from error
