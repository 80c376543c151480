"""The tasks of a cell, and their outcomes.

A cell is tuned, if the study gives several step constants, and then run. Each task is one of these
on a few instances. Tasks and outcomes can be pickled, so any process can `perform` a task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from walklearn.studies.cell import Cell
from walklearn.studies.cell_runs import Tuning, choose_candidate, run_instances, tuning_errors
from walklearn.studies.tables import CellResult, join_results

# Updates per task: about a second, for a smooth progress bar and an even load.
MAX_UPDATES = 2_000_000


@dataclass(frozen=True)
class Task:
    """Some instances of a cell to tune on (`tuning` is None), or to run with a tuned constant."""

    cell: Cell
    instances: range
    tuning: Tuning | None

    @property
    def updates(self) -> int:
        """The number of updates, as a measure of work."""
        return len(self.instances) * _updates(self.cell, is_tuning=self.tuning is None)


def perform(task: Task) -> Any:
    """Return the outcome of a task: tuning errors, or tables of results."""
    try:
        if task.tuning is None:
            return tuning_errors(task.cell, task.instances)
        return run_instances(task.cell, task.tuning, task.instances)
    except Exception as error:
        error.add_note(f"In the cell {task.cell}.")
        raise


def work_of(cell: Cell) -> int:
    """Return the number of updates of a cell, including its tuning."""
    run, tuned = (_updates(cell, is_tuning=is_tuning) for is_tuning in (False, True))
    return cell.instances * run + cell.tuning_instances * tuned


class CellWork:
    """The progress of a cell; `result` is None until all its tasks are done."""

    def __init__(self, cell: Cell, workers: int) -> None:
        self.cell = cell
        self.workers = workers
        self.result: CellResult | None = None
        self._unfinished: set[range] = set()
        self._outcomes: dict[range, Any] = {}

    def begin(self) -> list[Task]:
        """Return the first tasks."""
        if self.cell.tuning_instances:
            return self._split(self.cell.tuning_instances, None)
        return self._split(self.cell.instances, choose_candidate(self.cell, np.empty((0, 0))))

    def store_outcome(self, task: Task, outcome: Any) -> list[Task]:
        """Store the outcome of a task, and return the tasks that can start now."""
        self._unfinished.remove(task.instances)
        self._outcomes[task.instances] = outcome
        if self._unfinished:
            return []
        outcomes = [self._outcomes.pop(part) for part in sorted(self._outcomes, key=min)]
        if task.tuning is None:
            tuning = choose_candidate(self.cell, np.concatenate(outcomes))
            return self._split(self.cell.instances, tuning)
        self.result = join_results(outcomes)
        return []

    def _split(self, count: int, tuning: Tuning | None) -> list[Task]:
        each = Task(self.cell, range(1), tuning).updates
        size = max(1, min(-(-count // (4 * self.workers)), MAX_UPDATES // each))
        parts = [range(at, min(at + size, count)) for at in range(0, count, size)]
        self._unfinished = set(parts)
        return [Task(self.cell, part, tuning) for part in parts]


def _updates(cell: Cell, *, is_tuning: bool) -> int:
    """The number of updates for one instance."""
    tuning, run = cell.tuning_updates * len(cell.candidates), cell.description["updates"]
    return int((tuning if is_tuning else run) * cell.description["replicates"])
