"""The walk in plain Python and NumPy, for one row per node."""

from __future__ import annotations

import math

import numpy as np

from walklearn.graphs import Graph
from walklearn.updates import draw_start
from walklearn.visit import Setting


class NumpyWalk:
    """One token in plain Python and NumPy, written with care.

    Scalars live in lists, which Python reads faster than arrays; random numbers and step
    sizes come in blocks; every array operation writes in place.
    """

    BLOCK = 8192

    def __init__(self, setting: Setting, graph: Graph, generator: np.random.Generator) -> None:
        problem, walk = setting.objective, setting.walk
        self.setting, self.generator = setting, generator
        self.node, self.model = draw_start(problem, generator)
        self.sum = np.zeros_like(self.model)
        self.updates = self.messages = 0
        self.visits = [0] * problem.nodes
        self.rows, self.targets = list(problem.X), problem.y.tolist()
        self.weights = problem.row_weights.tolist()
        self.score = walk.announcements(graph, problem)[:, 0].tolist()
        self.scale = walk.gradient_scale(graph, problem).tolist()
        self.neighbours = [graph.neighbours(i).tolist() for i in range(graph.node_count)]

    def run(self, hops: int) -> None:
        """Go on by that many hops."""
        while hops > 0:
            count = min(hops, self.BLOCK)
            numbers = np.arange(self.updates + 1, self.updates + count + 1)
            gammas = self.setting.update.step_size(numbers).tolist()
            self._hops(gammas, self.generator.random(count).tolist())
            self.updates += count
            hops -= count

    def _hops(self, gammas: list[float], uniforms: list[float]) -> None:
        i, w, total, messages = self.node, self.model, self.sum, 0
        rows, targets, weights = self.rows, self.targets, self.weights
        score, scale, neighbours, visits = self.score, self.scale, self.neighbours, self.visits
        penalty, radius = self.setting.objective.penalty, self.setting.objective.domain.radius
        squared_radius, scratch = radius * radius, np.empty_like(w)
        dot, multiply, add, subtract, exp = w.dot, np.multiply, np.add, np.subtract, math.exp
        for gamma, u in zip(gammas, uniforms, strict=True):
            visits[i] += 1
            x, y = rows[i], targets[i]
            margin = y * float(dot(x))
            slope = -y / (1.0 + exp(margin)) if margin < 700.0 else 0.0
            step = gamma * scale[i]
            multiply(w, gamma, scratch)
            add(total, scratch, total)
            multiply(w, 1.0 - step * penalty, w)
            multiply(x, step * weights[i] * slope, scratch)
            subtract(w, scratch, w)
            squared_norm = float(dot(w))
            if squared_norm > squared_radius:
                multiply(w, radius / math.sqrt(squared_norm), w)
            nearby = neighbours[i]
            stretched = u * len(nearby)
            place = int(stretched)
            j = nearby[place]
            if (stretched - place) * score[i] <= score[j]:
                i = j
                messages += 1
        self.node = i
        self.messages += messages
