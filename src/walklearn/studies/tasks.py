"""A cell on its way: the tasks it is made of, and what is done with their outcomes.

A cell is tuned first, if its step constant is to be chosen, and then run, each in parts of a few
instances. `perform` does a task anywhere: tasks and outcomes are plain and can be sent.

>>> from walklearn.studies.cell import Cell
>>> cell = Cell.of(("mine", "ring", "gaussians", "uniform", "printed"), {
...     "graph": {"family": "ring", "nodes": 11}, "seed": 1, "instances": 8, "replicates": 1,
...     "problem": {"data": "two_gaussians", "dimension": 2, "penalty": 1.0}, "updates": 100,
...     "method": {"walk": "uniform"}, "step_size": {"constant": 0.1}, "records": 3,
...     "facts": False})
>>> work = CellWork(cell, workers=1)
>>> tasks = work.begin()
>>> [task.instances for task in tasks]
[range(0, 2), range(2, 4), range(4, 6), range(6, 8)]
>>> [work.take(task, perform(task)) for task in tasks]
[[], [], [], []]
>>> len(work.result.records["gap"])
24
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from walklearn.studies.cell import Cell
from walklearn.studies.cell_runs import Tuning, choose, run_instances, tuning_errors
from walklearn.studies.tables import CellResult, joined

# A part has at most this many updates: a second or so, for progress and an even load.
MAX_UPDATES = 2_000_000


@dataclass(frozen=True)
class Task:
    """Some instances of a cell: to tune on, or, once there is a constant, to run."""

    cell: Cell
    instances: range
    tuning: Tuning | None

    @property
    def updates(self) -> int:
        """How many updates it makes, which says how much work it is."""
        each = _tuning_updates if self.tuning is None else _updates
        return len(self.instances) * each(self.cell)


def perform(task: Task) -> Any:
    """Return the tuning errors of the task's instances, or their tables."""
    try:
        if task.tuning is None:
            return tuning_errors(task.cell, task.instances)
        return run_instances(task.cell, task.tuning, task.instances)
    except Exception as error:
        error.add_note(f"In the cell {task.cell}.")
        raise


def work_of(cell: Cell) -> int:
    """The updates that a cell takes, tuning included."""
    return cell.instances * _updates(cell) + cell.tuning_instances * _tuning_updates(cell)


class CellWork:
    """Which parts of a cell are done. `result` is there when all are."""

    def __init__(self, cell: Cell, workers: int) -> None:
        self.cell = cell
        self.workers = workers
        self.result: CellResult | None = None
        self._missing: set[range] = set()
        self._outcomes: dict[range, Any] = {}

    def begin(self) -> list[Task]:
        """The first tasks."""
        if self.cell.tuning_instances:
            return self._split(self.cell.tuning_instances, None)
        return self._split(self.cell.instances, choose(self.cell, np.empty((0, 0))))

    def take(self, task: Task, outcome: Any) -> list[Task]:
        """Keep an outcome; return the tasks that can be done now that it is there."""
        self._missing.remove(task.instances)
        self._outcomes[task.instances] = outcome
        if self._missing:
            return []
        outcomes = [self._outcomes[part] for part in sorted(self._outcomes, key=lambda p: p.start)]
        self._outcomes.clear()
        if task.tuning is None:
            tuning = choose(self.cell, np.concatenate(outcomes))
            return self._split(self.cell.instances, tuning)
        self.result = joined(outcomes)
        return []

    def _split(self, count: int, tuning: Tuning | None) -> list[Task]:
        each = Task(self.cell, range(1), tuning).updates
        size = max(1, min(-(-count // (4 * self.workers)), MAX_UPDATES // each))
        parts = [range(at, min(at + size, count)) for at in range(0, count, size)]
        self._missing = set(parts)
        return [Task(self.cell, part, tuning) for part in parts]


def _updates(cell: Cell) -> int:
    """The task that runs an instance."""
    return int(cell.description["updates"] * cell.description["replicates"])


def _tuning_updates(cell: Cell) -> int:
    """The task that runs a tuning instance."""
    return cell.tuning_updates * int(cell.description["replicates"]) * len(cell.constants)
