"""The weighted walk (Algorithm 2), and its release of the importance (Algorithm 3)."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from walklearn.arrays import Vector
from walklearn.checks import check_choice, check_kind, check_length
from walklearn.graphs import Graph
from walklearn.objectives.linear.smoothness import check_exact
from walklearn.walks.disclosure import Disclosure
from walklearn.walks.metropolis import (
    NEEDS_SMOOTHNESS,
    Metropolis,
    checked_importance,
    has_row_smoothness,
    smoothness_of_nodes,
)
from walklearn.walks.walk import WALKS, Generators

if TYPE_CHECKING:
    from walklearn.privacy.mechanisms.mechanism import Mechanism

Reweight = Literal["released", "as-printed"]


@WALKS.register
class Weighted(Metropolis):
    """Algorithm 2: nodes are visited in proportion to their importance.

    Parameters
    ----------
    importance
        Any positive number per node; by default L_i, the smoothness of f_i. The gradient is
        divided by it, which keeps the estimate unbiased.
    privacy
        A mechanism that releases the importance (Algorithm 3). Each node draws its R_i once and
        discloses it to its neighbours, and the walk follows R. `sample_release` makes that draw.
    reweight
        "released" divides the gradient by R_i, which is unbiased for every draw. "as-printed"
        divides by the true importance, as in the paper, which for one draw minimises
        Σ (R_i / L_i) f_i instead.
    shrink
        True to move released values towards the midpoint of the bounds, farther if there is more
        noise (`privacy.shrink_release`). It costs no privacy, and avoids long steps at nodes whose
        R_i is small because of noise.
    bounds
        The agreed public bounds; a mechanism made for other bounds is refused.
    public
        True to declare that a given importance does not depend on the nodes' rows. Otherwise no
        privacy is claimed for a walk that discloses it.
    laziness
        The probability of staying before anything is proposed, in [0, 1).

    Examples
    --------
    >>> from walklearn import graphs
    >>> Weighted(importance=[1.0, 2.0, 3.0]).stationary(graphs.ring(3)).round(3)
    array([0.167, 0.333, 0.5  ])
    """

    name: ClassVar[str] = "weighted"
    importance: Vector | None = None
    privacy: Mechanism | None = field(default=None, kw_only=True)
    reweight: Reweight = field(default="released", kw_only=True)
    shrink: bool = field(default=False, kw_only=True)
    bounds: tuple[float, float] | None = field(default=None, kw_only=True)
    public: bool = field(default=False, kw_only=True)
    declared_sent_length: ClassVar[int | None] = 2  # the degree and the importance
    min_announcement_length: ClassVar[int] = 2
    # Bound by `sample_release`: the mechanism that released the importance. The true values are
    # bound only for weights as printed, for which no privacy is claimed.
    mechanism: ClassVar[Mechanism | None] = None
    true_importance: ClassVar[Vector | None] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.importance is not None:
            object.__setattr__(
                self, "importance", checked_importance(np.array(self.importance, float))
            )
        check_choice("reweight", self.reweight, Reweight)
        if self.privacy is not None:
            _check_mechanism(self.privacy, self.bounds)
        elif self.bounds or self.shrink or self.reweight != "released":
            raise ValueError("bounds, shrink and reweight need a release. Pass privacy=... too.")
        if self.public and (self.importance is None or self.privacy is not None):
            raise ValueError(
                "public=True needs an importance that no mechanism releases. Pass importance=..."
            )

    @property
    def needs(self) -> dict[str, str]:
        """L_i, unless an importance is given."""
        return NEEDS_SMOOTHNESS if self.importance is None else {}

    @property
    def disclosure(self) -> Disclosure | None:
        """The importance, unless it is public; by the mechanism, if there is one."""
        mechanism = self.privacy or self.mechanism
        scaled_by = 'reweight="as-printed"' if self.reweight == "as-printed" else ""
        return Disclosure(not self.public, mechanism, scaled_by, remedy='reweight="released"')

    def visit_weight(self, importance: Any, degree: Any) -> Any:
        """Return the importance."""
        return importance

    def announcement(self, importance: Any, degree: Any) -> tuple[Any, ...]:
        """Return the score and v_i."""
        (score,) = super().announcement(importance, degree)
        return score, self.visit_weight(importance, np.maximum(degree, 1))

    def _own_importance(self, objective: Any, node: int, rng: np.random.Generator | None) -> float:
        """Return the importance, released by the mechanism if there is one."""
        values = self.importance
        value = float(objective.smoothness(node) if values is None else values[node])
        return value if self.privacy is None else float(self.privacy.release(value, rng))

    def _importance(self, graph: Graph, objective: Any) -> Vector:
        if self.importance is None:
            return smoothness_of_nodes(graph, objective, "Weighted()")
        check_length("importance", self.importance, graph.node_count, "nodes of the graph")
        return self.importance

    def _announce_all(self, graph: Graph, objective: Any, rng: Generators | None) -> Vector:
        if self.is_private:
            raise TypeError(
                "the releases that this walk follows are not drawn yet. Draw them with "
                "walk.sample_release(graph, objective, generator)."
            )
        return super()._announce_all(graph, objective, rng)

    def divisor(self, node: Any, degree: Any, announcement: Any) -> Any:
        """Return v_i as it was announced; the true importance if weights are as printed."""
        return announcement[1] if self.true_importance is None else self.true_importance[node]

    def bind(self, graph: Graph, objective: Any, mean: str = "exact") -> Self:
        """Return the bound walk; a token cannot estimate the mean of L_i from releases."""
        if self.reweight == "as-printed" and mean == "estimated":
            raise ValueError(
                'the token knows only released values, but reweight="as-printed" scales by the '
                'true L_i. Use reweight="released", or mean_importance="exact".'
            )
        return super().bind(graph, objective, mean)

    @property
    def is_private(self) -> bool:
        """True if the importance is still to be released; see `sample_release`."""
        return self.privacy is not None

    @property
    def release(self) -> Vector | None:
        """R, shrunk if the walk shrinks it; None before the draw."""
        return None if self.mechanism is None else self.importance

    def sample_release(
        self, graph: Graph, objective: Any, generator: Generators | None = None
    ) -> Metropolis:
        """Return the walk after every node has released its importance once.

        Without a generator the noise comes from the operating system's entropy. A list has one
        generator per node.
        """
        if self.privacy is None:
            return self
        true_values = self._importance(graph, objective)
        protects_rows = getattr(self.privacy, "protect", "node") == "rows"
        if self.importance is None and has_row_smoothness(objective):
            # A relay has no L_i. Releasing that of another node again would cost privacy.
            row_counts = np.diff(objective.offsets)
            if objective.is_sparse and protects_rows:
                check_exact(int(row_counts.max()), objective.dimension)
            true_values = np.where(
                row_counts == 0, self.privacy.bounds[0], objective.exact_smoothness
            )
        elif protects_rows:
            raise ValueError(
                f"the sensitivity of {self.privacy!r} holds for L_i of a Problem, not for another "
                "importance. Use a mechanism with bounds, such as Laplace(scale, bounds)."
            )
        released = _draw_release(self.privacy, true_values, generator)
        if self.shrink:
            from walklearn.privacy.mechanisms.comparison import shrink_release

            released = shrink_release(self.privacy, released)
        return self.bound(
            importance=checked_importance(np.array(released, float)),
            privacy=None, mechanism=self.privacy,
            true_importance=true_values if self.reweight == "as-printed" else None,
            out_of_bounds=self.privacy.count_out_of_bounds(true_values),
        )  # fmt: skip

    def without_release(self) -> Self:
        """Return the walk with its mechanism, before the draw."""
        if self.mechanism is None:
            return self
        unbound = dict.fromkeys(("importance", "mechanism", "true_importance", "table"))
        return self.bound(**unbound, out_of_bounds=0, privacy=self.mechanism)


def _draw_release(mechanism: Mechanism, values: Vector, generator: Generators | None) -> Vector:
    if generator is None or isinstance(generator, np.random.Generator):
        return mechanism.release(values, generator)
    pairs = zip(values, generator, strict=True)
    return np.array([mechanism.release(value, source) for value, source in pairs])


def _check_mechanism(mechanism: Mechanism, bounds: tuple[float, float] | None) -> None:
    from walklearn.privacy.mechanisms.mechanism import Mechanism

    wanted = "a mechanism, such as privacy.calibrate(...) gives"
    check_kind("privacy", mechanism, Mechanism, wanted)
    if bounds is not None and tuple(bounds) != tuple(mechanism.bounds):
        raise ValueError(
            f"the mechanism is made for values in {mechanism.bounds}, but the walk's public bounds "
            f"are {tuple(bounds)}. Calibrate the mechanism for the walk's bounds."
        )
    if mechanism.clamp is None and not mechanism.is_positive:
        raise ValueError(
            f"an unclamped {mechanism.name} mechanism can release values of 0 or less, which a "
            "walk cannot follow. Leave its clamp at the public bounds."
        )
