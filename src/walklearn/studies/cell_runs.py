"""Run a cell: tune its step constant if the study asks for it, then run and record its instances.

Instances are independent of each other (`instances` explains their random numbers). They can be run
in any process and in any order, and their results are then joined.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
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
from walklearn.studies.import_paths import register_import_paths
from walklearn.studies.instances import (
    GRAPH,
    RUN,
    TUNE,
    WALK,
    Instance,
    cached_instance,
    one_thread,
    stream,
)
from walklearn.studies.methods import method_of, step_smoothness, tokens_of, update_of
from walklearn.studies.options import step_size_of
from walklearn.studies.provenance import edges_of, facts_of, nodes_of
from walklearn.studies.tables import (
    CellResult,
    Columns,
    constant_columns,
    join_results,
    origin_columns,
    seed_name,
    with_constants,
)
from walklearn.updates.step_choice import best_step
from walklearn.updates.step_sizes import StepSize
from walklearn.updates.update import Update
from walklearn.walks import Walk


@dataclass(frozen=True)
class Tuning:
    """A step constant with its exponent, and the mean errors of the candidates.

    candidates: the pairs of constant and exponent that were compared; empty if nothing was tuned.
    """

    constant: float
    exponent: float
    candidates: tuple[tuple[float, float], ...] = ()
    errors: tuple[float, ...] = ()
    metric: str = ""
    instances: int = 0

    @property
    def at_edge(self) -> bool:
        """True if the constant is the first or last of the grid: a better one may lie outside."""
        grid = sorted({constant for constant, _ in self.candidates})
        return len(grid) > 1 and self.constant in (grid[0], grid[-1])

    def to_json(self) -> str:
        """Return JSON, with null for an infinite error; an empty text if nothing was tuned."""
        if not self.candidates:
            return ""
        errors = [error if np.isfinite(error) else None for error in self.errors]
        return json.dumps({**asdict(self), "errors": errors})


def run_cell(cell: Cell) -> CellResult:
    """Tune a cell if the study asks for it, and run all its instances, in this process.

    Parameters
    ----------
    cell
        The cell.

    Returns
    -------
    CellResult
        The errors, costs and facts of all instances.
    """
    errors = tuning_errors(cell, range(cell.tuning_instances))
    return run_instances(cell, choose_candidate(cell, errors), range(cell.instances))


def tuning_errors(cell: Cell, instances: Sequence[int]) -> NDArray[np.float64]:
    """Return the last error on each tuning instance (row) with each candidate (column).

    An error is infinite if a run diverged, and NaN if the method is infeasible.
    """
    metric = cell.description["step_size"].get("metric", "")
    errors = np.full((len(instances), len(cell.candidates)), np.nan)
    with _cell_context(cell):
        for row, number in enumerate(instances):
            runs = _InstanceRuns(cell, TUNE, number)
            try:
                method = runs.method()
            except InfeasiblePrivacyError:
                continue
            for column, candidate in enumerate(cell.candidates):
                update = runs.update(method, *candidate)
                trace = runs.simulate(method, update, [cell.tuning_updates])
                errors[row, column] = runs.errors(trace, metric)[:, -1].mean()
    return errors


def choose_candidate(cell: Cell, errors: NDArray[np.float64]) -> Tuning:
    """Choose the constant and exponent with the least mean error; among equal ones, the first."""
    steps, candidates = cell.description["step_size"], tuple(cell.candidates)
    if not candidates:  # without a constant (NaN), the update finds its step size
        return Tuning(float(steps.get("constant", np.nan)), cell.exponent)
    feasible = errors[~np.isnan(errors).any(axis=1)]
    means = feasible.mean(axis=0) if len(feasible) else np.full(errors.shape[1], np.inf)
    best = best_step(candidates, means)
    return Tuning(*best, candidates, tuple(means.tolist()), steps["metric"], len(feasible))


def run_instances(cell: Cell, tuning: Tuning, instances: Sequence[int]) -> CellResult:
    """Run some of the cell's instances with the chosen constant."""
    with _cell_context(cell):
        runs = (_InstanceRuns(cell, RUN, number) for number in instances)
        return join_results([_run_instance(each, tuning) for each in runs])


@dataclass(frozen=True)
class _InstanceRuns:
    """The runs of a cell on one instance."""

    cell: Cell
    stage: int
    number: int

    @property
    def description(self) -> dict[str, Any]:
        return self.cell.description

    @cached_property
    def instance(self) -> Instance:
        graph, problem, seed = (self.description[key] for key in ("graph", "problem", "seed"))
        return cached_instance(graph, problem, seed, self.stage, self.number)

    @property
    def walks(self) -> np.random.SeedSequence:
        return stream(self.description["seed"], self.stage, self.number, WALK)

    def method(self) -> Walk | Gossip:
        table = self.description["method"]
        try:
            return method_of(table, self.description["problem"], self.instance.problem)
        except InfeasiblePrivacyError as error:
            if table.get("infeasible") == "skip":
                raise
            raise CellError(str(error)) from error

    def update(self, method: Walk | Gossip, constant: float, exponent: float) -> Update:
        """Return the update of the method, with this step unless it finds its step size."""
        finds_step_size = "found" in self.description["step_size"]
        step_size = None if finds_step_size else self.step_size(method, constant, exponent)
        return update_of(self.description["method"], step_size)

    def step_size(self, method: Walk | Gossip, constant: float, exponent: float) -> StepSize:
        """Return the step size; a `relative` constant is divided by the smoothness of the steps."""
        step_size = step_size_of(constant, exponent)
        if not self.description["step_size"].get("relative", False):
            return step_size
        smoothness = step_smoothness(method, *self.instance, step_size)
        return step_size_of(constant / smoothness, exponent)

    def simulate(self, method: Walk | Gossip, update: Update, records: list[int]) -> Trace:
        graph, problem = self.instance
        trace = simulate(
            problem, graph, method, steps=records[-1], update=update,
            tokens=tokens_of(self.description["method"]),
            replicates=self.description["replicates"], seed=self.walks, records=records,
            gaps=self.description.get("gaps") or True, cores=1, progress=False,
        )  # fmt: skip
        if not trace.complete:  # after Ctrl-C: part of an instance is useless
            raise KeyboardInterrupt
        return trace

    def errors(self, trace: Trace, name: str) -> NDArray[np.float64]:
        """Return the errors: infinite if the run diverged, NaN if the error is not defined."""
        errors: NDArray[np.float64] = getattr(trace, name)
        is_defined = name.endswith("gap") or self.instance.problem.solution.unique
        return np.where(np.isnan(errors), np.inf, errors) if is_defined else errors


def _run_instance(runs: _InstanceRuns, tuning: Tuning) -> CellResult:
    """Run one instance, and return its tables."""
    description, instance, number = runs.description, runs.instance, runs.number
    seed, constant = description["seed"], tuning.constant
    method: Walk | Gossip | None = None
    trace: Trace | None = None
    refusal: InfeasiblePrivacyError | None = None
    try:
        method = runs.method()
    except InfeasiblePrivacyError as error:
        refusal = error
    else:
        update = runs.update(method, tuning.constant, tuning.exponent)
        constant = getattr(getattr(update, "step_size", None), "constant", np.nan)
        trace = runs.simulate(method, update, _record_updates(runs.cell))
    seed_of_instance = origin_columns(seed, RUN, number)
    common = {
        "instance": number, "constant": constant, "exponent": tuning.exponent, **seed_of_instance,
    }  # fmt: skip
    facts = facts_of(instance, method, description, runs.walks, trace, refusal)
    chosen = {"tuning": tuning.to_json(), "at_edge": tuning.at_edge}
    rows = constant_columns({**common, **facts, **chosen}, 1)
    if method is None or trace is None:
        return CellResult({}, rows, {}, {})
    records = _records(runs, trace, common)
    if number > 0:
        return CellResult(records, rows, {}, {})
    nodes = with_constants(nodes_of(instance, method, runs.walks, trace), seed_of_instance)
    edges = with_constants(edges_of(instance.graph), origin_columns(seed, RUN, 0, GRAPH))
    return CellResult(records, rows, nodes, edges)


def _records(runs: _InstanceRuns, trace: Trace, common: dict[str, Any]) -> Columns:
    """Return a row for each replicate and record."""
    root, key = runs.description["seed"], runs.walks.spawn_key
    seeds = [seed_name(root, *key, replicate) for replicate in range(trace.replicates)]
    columns = table_columns(vars(trace))
    costs = ("replicate", "updates", "messages", "bytes", "time")
    return {
        **constant_columns(common, trace.messages.size),
        **{name: columns[name] for name in costs},
        "seed": np.array(seeds, dtype=object).repeat(trace.records),
        **{name: runs.errors(trace, name).ravel() for name in ERRORS},
    }


def _record_updates(cell: Cell) -> list[int]:
    """Return the updates at which errors are recorded, the same for all methods."""
    last, count = cell.description["updates"], cell.description["records"]
    spaced = np.rint(np.geomspace(1, last, count)) if count > 1 else [last]
    return [int(number) for number in np.unique(spaced)]


@contextmanager
def _cell_context(cell: Cell) -> Iterator[None]:
    """Name the cell in errors, and silence warnings, which the facts of the cell contain."""
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore", UserWarning)
        try:
            register_import_paths(cell.description.get("import_paths", {}))
            yield
        except (ValueError, TypeError, ArithmeticError) as error:
            raise CellError(f"{cell}: {error}") from error
