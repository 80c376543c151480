"""What protecting the model costs in time: `python -m benchmarks.protected`.

An update of a node with 500 rows of 50 features in the compiled engine: with each row clipped, with
their sum clipped, and as it is, in turns; the noise is drawn beforehand.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.measurement import Measurement, main
from walklearn import PowerStep, Problem, graphs, walks
from walklearn.privacy import ModelNoise
from walklearn.privacy.protection import Protection
from walklearn.simulation.compiled_batches import CompiledWalks
from walklearn.streams import generators
from walklearn.updates import Sgd
from walklearn.visit import Setting

NODES, ROWS, DIMENSION = 20, 500, 50
TARGET = 1.5


class Prepared(CompiledWalks):
    """A walk whose noise was drawn before it is timed."""

    drawn: Any = None

    def _normals(self, visited: Any) -> Any:
        if self.drawn is None:
            self.drawn = super()._normals(visited)
        return self.drawn


def prepared(problem: Problem, noise: ModelNoise | None, updates: int) -> Prepared:
    graph = graphs.complete(NODES)
    privacy = noise or Protection()
    setting = Setting(problem, walks.Uniform(), Sgd(PowerStep(0.1)), privacy=privacy)
    walk = Prepared(setting, graph, [generators(np.random.SeedSequence(1))])
    walk.advance(updates)  # compiled, and the noise drawn
    return walk


def measurements(quick: bool) -> Iterator[Measurement]:
    """The best of many short turns each, so that what else the machine does falls out."""
    updates, turns = (20, 2) if quick else (50, 400)
    generator = np.random.default_rng(0)
    X = generator.standard_normal((NODES * ROWS, DIMENSION))
    y = np.where(X @ generator.standard_normal(DIMENSION) > 0, 1.0, -1.0)
    owners = np.arange(len(X)) % NODES
    problem = Problem(X, y, node_of_row=owners, aggregate="mean", penalty=1e-3)
    noises: dict[str, ModelNoise | None] = {
        "as it is": None,
        "each row clipped": ModelNoise(1.0, 0.01, 10**9),
        "their sum clipped": ModelNoise(1.0, 0.01, 10**9, "node"),
    }
    contestants = {name: prepared(problem, noise, updates) for name, noise in noises.items()}
    best = dict.fromkeys(contestants, np.inf)
    for _ in range(turns):
        for name, walk in contestants.items():
            begun = time.perf_counter()
            walk.advance(updates)
            best[name] = min(best[name], (time.perf_counter() - begun) / updates)
    plain = best.pop("as it is")
    note = f"{ROWS} rows × {DIMENSION}, as it is {1e6 * plain:.1f} µs"
    for name, seconds in best.items():
        yield Measurement(f"an update, {name}", seconds / plain, "times", TARGET, note=note)


if __name__ == "__main__":
    main(measurements, __doc__)
