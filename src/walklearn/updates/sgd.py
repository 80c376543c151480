"""The paper's update: one projected SGD step on the node's own rows.

w ← Π_W(w − γ_k · weight · ∇f_i(w))
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from walklearn.arrays import Array, Arrays, ArraySpec, Specs
from walklearn.checks import check_kind
from walklearn.updates.step_sizes import ConstantStep, PowerStep, StepSize
from walklearn.updates.update import UPDATES, Update, VisitContext, VisitResult


@UPDATES.register
class Sgd(Update):
    """The paper's update: a projected step along the node's gradient, scaled by the walk.

    Parameters
    ----------
    step_size
        γ_k: a `PowerStep` or a `ConstantStep`. `simulate(..., step_size=…)` is its short form.
    average
        True if the token carries Σ γ w beside w, for w̄. Without it a token is half as long, and the
        averages of a run are the models.

    Examples
    --------
    >>> from walklearn import PowerStep, updates
    >>> updates.Sgd(PowerStep(0.1))
    Sgd(step_size=PowerStep(constant=0.1, exponent=0.75))
    """

    name: ClassVar[str] = "sgd"
    compiled: ClassVar[str | None] = "sgd"
    uncounted: ClassVar[tuple[str, ...]] = ("weighted_sum", "step_size_sum")
    label: ClassVar[str] = ""  # the paper's update is not named
    step_size: StepSize
    average: bool = True

    def __post_init__(self) -> None:
        check_kind("step_size", self.step_size, StepSize, "a PowerStep or a ConstantStep")
        check_kind("average", self.average, bool, "True or False")

    @property
    def is_compiled(self) -> bool:
        """True if kernels do exactly what `visit` and the step size do."""
        return super().is_compiled and type(self.step_size) in (PowerStep, ConstantStep)

    def token_arrays(self, objective: Any, tokens: int = 1) -> Specs:
        """The model and, for records, the sums for w̄."""
        model = super().token_arrays(objective, tokens)
        sums = ArraySpec("weighted_sum", (objective.size,)), ArraySpec("step_size_sum")
        return (*model, *sums) if self.average else model

    def visit(self, context: VisitContext, token: Arrays, state: Arrays) -> VisitResult:
        """Step along the gradient, and add to the sums of the average."""
        objective, w = context.objective, token["model"]
        gamma = self.step_size(context.updates + 1)
        gradient = context.weight * (context.gradient(w) + objective.penalty * w)
        new_model = (w - gamma * gradient).astype(w.dtype, copy=False)
        arrays: Arrays = {"model": objective.project(new_model)}
        if self.average:
            arrays["weighted_sum"] = token["weighted_sum"] + gamma * w
            arrays["step_size_sum"] = np.array(token["step_size_sum"] + gamma)
        return VisitResult(arrays)

    def average_model(self, objective: Any, token: Arrays) -> Array:
        """Return w̄ = Σ γ_m w_m / Σ γ_m, or the model before the first update."""
        if not self.average or not token["step_size_sum"]:
            return token["model"]
        return np.asarray(token["weighted_sum"] / token["step_size_sum"])

    def with_average_since(self, before: Arrays, token: Arrays) -> Arrays:
        """Subtract the sums of the earlier copy."""
        names = self.uncounted if self.average else ()
        return token | {name: np.asarray(token[name] - before[name]) for name in names}
