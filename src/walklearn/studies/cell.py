"""A cell of a study: one graph, problem, method and step size, run on all its instances.

A cell is a plain description that can be sent to a worker. Its hash covers its names and everything
that determines its numbers, but nothing of other cells.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

FORMAT = 2  # of the tables; part of every cell's hash


@dataclass(frozen=True)
class Cell:
    """The smallest part of a study: one graph, problem, method and step size.

    Parameters
    ----------
    study
        Name of the study.
    graph, problem, method, step_size
        Names in its grid.
    spec
        Everything that determines the cell's numbers, as JSON.
    """

    study: str
    graph: str
    problem: str
    method: str
    step_size: str
    spec: str

    @classmethod
    def of(cls, names: tuple[str, str, str, str, str], description: Mapping[str, Any]) -> Cell:
        """Make a cell from its names (in the order of its fields) and its description."""
        return cls(*names, json.dumps({"format": FORMAT, **description}, sort_keys=True))

    @cached_property
    def description(self) -> dict[str, Any]:
        """The parsed `spec`."""
        described: dict[str, Any] = json.loads(self.spec)
        return described

    @property
    def names(self) -> dict[str, str]:
        """Names of study, graph, problem, method and step size."""
        keys = ("study", "graph", "problem", "method", "step_size")
        return {key: getattr(self, key) for key in keys}

    @cached_property
    def hash(self) -> str:
        """Name of the cell's files: equal for equal names and description."""
        return digest(self.names, self.spec)

    @cached_property
    def graph_hash(self) -> str:
        """Name of the file of edges: equal for cells on the same graphs."""
        return digest(self.graph, self.description["graph"], self.description["seed"])

    @property
    def tuning_instances(self) -> int:
        """Number of instances for tuning; 0 if the step constant is given."""
        return int(self.description["step_size"].get("tuning_instances", 0))

    @property
    def candidates(self) -> list[tuple[float, float]]:
        """Pairs of step constant and exponent to choose from; empty if the constant is given."""
        steps = self.description["step_size"]
        exponents = steps.get("exponents", [self.exponent])
        return [(c, q) for q in exponents for c in steps.get("constants", ())]

    @property
    def exponent(self) -> float:
        """The exponent of the step size, unless it is chosen from several."""
        return float(self.description["step_size"].get("exponent", 0.75))

    @property
    def tuning_updates(self) -> int:
        """Number of updates after which candidates are compared."""
        last: int = self.description["updates"]
        return min(last, int(self.description["step_size"].get("tuning_updates", last)))

    @property
    def instances(self) -> int:
        """Number of instances that are run."""
        return int(self.description["instances"])

    def __str__(self) -> str:
        return f"{self.study}: {self.graph}, {self.problem}, {self.method}, {self.step_size}"


def digest(*parts: Any) -> str:
    """Hash plain values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


class CellError(ValueError):
    """A cell cannot be run."""
