"""What a node does to a model: one projected SGD step on its own rows.

    w ← Π_W(w − γ · scale · ∇f_i(w))

Walks, gossip and real nodes all call `update`; they differ in who is next and in the scale.

>>> import numpy as np
>>> from walklearn.problem import Problem
>>> from walklearn.problem.losses import Squared
>>> problem = Problem([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0], loss=Squared())
>>> model, gradient = update(problem, 0, np.zeros(2), step=0.5)
>>> model, gradient
(array([3., 0.]), array([-6.,  0.]))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.problem import Problem

Array = NDArray[Any]
#: In place of `Problem.gradient`: the same, clipped and noisy (`privacy.ModelNoise`), or None
#: if the node has spent its contributions and must leave the model unchanged.
Protect = Callable[[Problem, int, Array, Array], "Array | None"]


def start(problem: Problem, generator: np.random.Generator) -> tuple[int, Array]:
    """Draw a uniform node and a model uniform over W: the same for every method on one stream."""
    node = int(generator.random() * problem.nodes)
    model = problem.domain.sample(problem.size, generator)
    return node, model.astype(problem.dtype)


def update(
    problem: Problem,
    node: int,
    model: Array,
    step: float,
    scale: float = 1.0,
    uniforms: Array | None = None,
    protect: Protect | None = None,
) -> tuple[Array, Array]:
    """The model after the node's step, and the gradient estimate ĝ = scale · ∇f_i that made it.

    uniforms: one number for each row of a mini-batch; None or empty for all rows.
    protect: what makes the part of ∇f_i that depends on the rows, where it has to be clipped and
    noisy before it shows; the penalty's part depends on the model alone. If it returns None, the
    model stays unchanged and the gradient is 0.
    """
    draws = np.empty(0) if uniforms is None else uniforms
    from_rows: Array | None
    if protect is None:
        from_rows = problem.gradient(node, model, draws)
    else:
        from_rows = protect(problem, node, model, draws)
    if from_rows is None:
        return model, np.zeros_like(model)
    gradient = scale * (from_rows + problem.penalty * model)
    moved = (model - step * gradient).astype(model.dtype, copy=False)
    return problem.domain.project(moved), gradient
