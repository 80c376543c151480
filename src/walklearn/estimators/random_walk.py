"""What the classifier and the regressor share: parameters, and a call of fit from end to end.

A call goes one way: rows are clipped and brought to the units to train in; the network is placed;
the problem is set up; the nodes release what the walk tells; the step is chosen; the token walks;
and what it brought home becomes attributes, in the units that the rows were given in.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from walklearn.domains import Domain
from walklearn.estimators.network import Network, place
from walklearn.estimators.parameters import step_of
from walklearn.estimators.protection import (
    charge,
    ledger_for,
    public_bounds,
    walk_of,
    with_privacy,
)
from walklearn.estimators.recorded import trace_of
from walklearn.estimators.seeds import Seeds, seeds_of
from walklearn.estimators.training import Average, Plan, Walked, walk_on
from walklearn.estimators.units import Units
from walklearn.losses import Loss
from walklearn.owned_rows import check_weights
from walklearn.privacy import Ledger, ModelNoise, clip_features
from walklearn.problem import Problem
from walklearn.run_arguments import check_protectable
from walklearn.step_choice import FIRST_LOOK, choose_step, most_steps, public_step, public_steps
from walklearn.step_sizes import StepSize
from walklearn.walk_sgd import Token, WalkSetting
from walklearn.walks import ReleasedWeighted, Uniform, Walk, Weighted

Array = NDArray[Any]


@dataclass(eq=False)
class State:
    """What a token takes from one call to the next."""

    calls: int = 0
    units: Units | None = None
    network: Network | None = None
    token: Token | None = None
    ledger: Ledger | None = None
    contributions: Array | None = None


class RandomWalk(BaseEstimator):
    """The parameters that both estimators have; `RandomWalkClassifier` explains them."""

    _state: State
    _shifts_targets = False

    def __init__(
        self,
        *,
        graph: Any = "erdos-renyi",
        walk: str | Walk = "weighted",
        loss: str | Loss | None = None,
        penalty: float = 1e-3,
        epsilon: float | None = None,
        delta: float | None = None,
        feature_bound: float | None = None,
        max_rows: float | None = None,
        mechanism: str = "laplace",
        model_privacy: ModelNoise | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        tol: float = 3e-3,
        step_size: float | StepSize | None = None,
        average: Average = "tail",
        fit_intercept: bool = True,
        standardise: bool | str = "auto",
        domain: Domain | None = None,
        laziness: float = 0.0,
        warm_start: bool = False,
        random_state: Any = None,
        callback: Callable[[int, float], object] | None = None,
    ) -> None:
        self.graph = graph
        self.walk = walk
        self.loss = loss
        self.penalty = penalty
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bound = feature_bound
        self.max_rows = max_rows
        self.mechanism = mechanism
        self.model_privacy = model_privacy
        self.steps = steps
        self.max_steps = max_steps
        self.tol = tol
        self.step_size = step_size
        self.average = average
        self.fit_intercept = fit_intercept
        self.standardise = standardise
        self.domain = domain
        self.laziness = laziness
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback

    def _walk(
        self,
        X: Array,
        targets: Array,
        loss: Loss,
        nodes: ArrayLike | None,
        sample_weight: ArrayLike | None,
        go_on: bool,
        one_call: bool,
    ) -> None:
        """Let the token walk over these rows.

        go_on: with the token of the last call. one_call: a call of partial_fit.
        """
        weights = check_weights(sample_weight, len(X))
        state = self._state if go_on else State()
        seeds = seeds_of(self.random_state, state.calls)
        walk = walk_of(self.walk, self.laziness)
        private = self._is_private(walk)

        if self.feature_bound is not None:
            X, self.clipped_rows_ = clip_features(X, self.feature_bound)
        units = state.units or self._units(X, targets, weights, private)
        network, owners = place(self.graph, nodes, len(X), seeds.graph, state.network)
        problem = Problem(
            units.rows(X), targets - units.target_shift, loss=loss, penalty=self.penalty,
            domain=self.domain, node_of_row=owners, nodes=network.graph.node_count,
            objective="mean", empty_nodes="relay", sample_weight=weights,
        )  # fmt: skip
        walk, step_size = self._released(walk, problem, network, seeds, private)
        setting = WalkSetting(
            problem, network.graph, walk, step_size, model_noise=self.model_privacy
        )
        walked = walk_on(
            setting, seeds.streams, _at_home(state.token, network),
            self._plan(problem, private, one_call), state.contributions, self.callback,
        )  # fmt: skip
        self._check_finite(walked.token)
        if not one_call:
            self._warn(walked, private)
        ledger = ledger_for(network.graph, state.ledger, self._simulated(seeds))
        self._charge(ledger, walk, state.contributions, walked.contributions)
        self._state = State(
            state.calls + 1, units, network, walked.token, ledger, walked.contributions
        )
        self._bring_home(setting, walked, units, seeds)

    def _is_private(self, walk: Walk) -> bool:
        """Whether nothing may be computed from the rows but what is released; checked."""
        private = self.epsilon is not None or self.model_privacy is not None or walk.is_private
        if not private:
            return False
        if self.standardise is True:
            raise ValueError(
                "standardise=True takes the scale of every column from the rows, which would leak. "
                "Scale the columns by public numbers before, and leave standardise out."
            )
        inner = walk.innermost
        if isinstance(inner, Uniform) and inner.normalise:
            raise ValueError("Uniform(normalise=True) scales steps by the true L_i: use Uniform().")
        if isinstance(inner, Weighted) and inner.reweight == "as-printed":
            raise ValueError(
                'reweight="as-printed" scales steps by the true L_i: use reweight="released".'
            )
        return True

    def _units(self, X: Array, targets: Array, weights: Array, private: bool) -> Units:
        standardise = self.standardise is True or (self.standardise == "auto" and not private)
        if not standardise:
            return Units.given(X.shape[1], bool(self.fit_intercept))
        counted = weights > 0
        return Units.standard(
            X[counted],
            weights[counted],
            bool(self.fit_intercept),
            targets[counted] if self._shifts_targets else None,
        )

    def _released(
        self, walk: Walk, problem: Problem, network: Network, seeds: Seeds, private: bool
    ) -> tuple[Walk, StepSize]:
        """The walk after its releases, and the step size."""
        bounds = None
        if self.feature_bound is not None and private:
            intercept = bool(self.fit_intercept)
            bounds = public_bounds(problem, self.feature_bound, intercept, self.max_rows)
        if self.epsilon is not None and self.delta is not None and bounds is not None:
            walk = with_privacy(walk, self.epsilon, self.delta, self.mechanism, bounds)
        if self.model_privacy is not None:
            check_protectable(walk, self.model_privacy)
        if walk.is_private:
            walk = walk.realise(network.graph, problem, seeds.release)
        given = step_of(self.step_size)
        if given is not None:
            return walk, given
        if not private:
            return walk, choose_step(problem, network.graph, walk)
        inner = walk.innermost
        if isinstance(inner, ReleasedWeighted):
            bounds = inner.mechanism.bounds
        if bounds is None:
            raise ValueError(
                "a step size that follows from the rows would leak: pass feature_bound, from which "
                "one follows that does not, or step_size."
            )
        step = public_step(problem.loss, problem.penalty, network.graph, walk, bounds)
        return walk, step

    def _plan(self, problem: Problem, private: bool, one_call: bool) -> Plan:
        with_rows = int(np.count_nonzero(np.diff(problem.offsets)))
        steps, most = self.steps, self.max_steps or most_steps(problem.node_count)
        if one_call:
            steps = steps or with_rows
        elif private and steps is None:
            steps = public_steps(problem.node_count, most)
        return Plan(
            steps=steps,
            most=most,
            first=max(FIRST_LOOK, problem.node_count),
            tolerance=self.tol,
            average=self.average,
            go_on=one_call,
        )

    def _check_finite(self, token: Token) -> None:
        if not (np.isfinite(token.model).all() and np.isfinite(token.average).all()):
            raise ValueError(
                "the model diverged to infinity: the steps are too long. Leave step_size out, take "
                "a smaller one, or pass a bounded domain such as domains.Ball(10.0)."
            )

    def _warn(self, walked: Walked, private: bool) -> None:
        if private or self.steps is not None or walked.settled:
            return
        losses = walked.values if self.average == "none" else walked.average_values
        fell = losses[-2] - losses[-1] if len(losses) > 1 else math.nan
        warnings.warn(
            f"after {walked.updates[-1]} updates the loss was {losses[-1]:.4g} and still "
            f"falling, by {fell:.2g} in the last half of them. Raise max_steps or tol, take a "
            "larger penalty, or say steps=... if so many are enough.",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _simulated(self, seeds: Seeds) -> bool:
        """Noise on the model is drawn as in a simulation, whoever seeds it."""
        return seeds.simulated or self.model_privacy is not None

    def _charge(
        self, ledger: Ledger, walk: Walk, before: Array | None, after: Array | None
    ) -> None:
        added = after
        if after is not None and before is not None:
            added = after - np.pad(before, (0, len(after) - len(before)))
        charge(ledger, walk, self.model_privacy, added)

    def _bring_home(self, setting: WalkSetting, walked: Walked, units: Units, seeds: Seeds) -> None:
        shape = setting.problem.model_shape
        assert self._state.ledger is not None
        self.weights_ = units.back(walked.token.model.reshape(shape))
        self.average_ = units.back(walked.token.average.reshape(shape))
        self.graph_ = setting.graph
        self.walk_ = setting.walk
        self.step_size_ = setting.step_size
        self.ledger_ = self._state.ledger
        self.n_iter_ = walked.token.updates
        self.trace_ = trace_of(self, setting, walked, seeds)

    @property
    def _used(self) -> Array:
        """The model that predicts, in given units, one row per score, the intercept last."""
        return np.atleast_2d(self.weights_ if self.average == "none" else self.average_)

    def _split(self) -> tuple[Array, Array]:
        """Coefficients and intercepts of the model that predicts."""
        used = self._used
        if self.fit_intercept:
            return used[:, :-1].copy(), used[:, -1].copy()
        return used.copy(), np.zeros(len(used))

    def _scores(self, X: ArrayLike) -> Array:
        check_is_fitted(self, "coef_")
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        coefficients = np.atleast_2d(self.coef_)
        return np.asarray(rows @ coefficients.T + self.intercept_)


def _at_home(token: Token | None, network: Network) -> Token | None:
    """The token, at a node that the network has."""
    if token is None:
        return None
    return token._replace(node=token.node % network.graph.node_count, previous=-1)
