"""A cell of a study: one graph, problem, method and step size, run on all its instances.

A cell is a plain description that can be sent to a worker. Its hash covers everything that
decides its numbers, and its own names, but nothing of other cells.

>>> cell = Cell.of(("mine", "ring", "gaussians", "uniform", "printed"), {"seed": 1})
>>> cell.description["seed"], cell.method
(1, 'uniform')
>>> cell.hash == Cell.of(("mine", "ring", "gaussians", "weighted", "printed"), {"seed": 1}).hash
False
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

FORMAT = 1  # of the tables; part of every cell's hash


@dataclass(frozen=True)
class Cell:
    """The smallest part of a study: one graph, problem, method and step size.

    Parameters
    ----------
    study
        The name of the study.
    graph
        The name of the graph in it.
    problem
        The name of the problem.
    method
        The name of the method.
    step_size
        The name of the step size.
    spec
        All that decides the cell's numbers, as JSON.

    Examples
    --------
    >>> cell = Cell.of(("mine", "ring", "gaussians", "uniform", "printed"), {"seed": 1})
    >>> cell.method, cell.description["seed"]
    ('uniform', 1)
    """

    study: str
    graph: str
    problem: str
    method: str
    step_size: str
    spec: str

    @classmethod
    def of(cls, names: tuple[str, str, str, str, str], description: Mapping[str, Any]) -> Cell:
        """Make a cell from its names and what is run.

        Parameters
        ----------
        names
            Of study, graph, problem, method and step size.
        description
            All that decides the cell's numbers, as plain values.

        Returns
        -------
        Cell
            The description is its `spec`.
        """
        return cls(*names, json.dumps({"format": FORMAT, **description}, sort_keys=True))

    @cached_property
    def description(self) -> dict[str, Any]:
        """What is run, as plain values."""
        described: dict[str, Any] = json.loads(self.spec)
        return described

    @property
    def names(self) -> dict[str, str]:
        """Study, graph, problem, method, step size."""
        keys = ("study", "graph", "problem", "method", "step_size")
        return {key: getattr(self, key) for key in keys}

    @cached_property
    def hash(self) -> str:
        """Names the cell's files: equal for equal names and description."""
        return digest(self.names, self.spec)

    @cached_property
    def graph_hash(self) -> str:
        """Equal for cells on the same graphs."""
        return digest(self.graph, self.description["graph"], self.description["seed"])

    @property
    def tuning_instances(self) -> int:
        """How many instances of their own constants are tried on; 0 where there is one constant."""
        return int(self.description["step_size"].get("tuning_instances", 0))

    @property
    def constants(self) -> list[float]:
        """The step constants to choose from; empty where there is one."""
        return list(self.description["step_size"].get("constants", ()))

    @property
    def tuning_updates(self) -> int:
        """After how many updates constants are compared: at the end, unless sooner is asked."""
        last: int = self.description["updates"]
        return min(last, int(self.description["step_size"].get("tuning_updates", last)))

    @property
    def instances(self) -> int:
        """How many instances the cell is run on."""
        return int(self.description["instances"])

    def __str__(self) -> str:
        return f"{self.study}: {self.graph}, {self.problem}, {self.method}, {self.step_size}"


def digest(*parts: Any) -> str:
    """A short hash of plain values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


class CellError(ValueError):
    """A cell that cannot be run: which, and why."""
