"""What the classifier and the regressor share: parameters, and a call of fit from end to end.

A call goes one way: the problem is posed (rows are clipped, brought to the units to train in and
placed on the network); the nodes release what the walk tells; the step is chosen; the token walks;
and what it brought home becomes attributes, in the units that the rows were given in.
"""

from __future__ import annotations

import math
import os
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from walklearn.estimators.accounts import charge_model, charge_release, ledger_for
from walklearn.estimators.outcome import model_of, trace_of
from walklearn.estimators.parameters import (
    Seeds,
    check_parameters,
    memory_of,
    seeds_of,
    step_of,
)
from walklearn.estimators.protection import Terms, released, walk_of
from walklearn.estimators.rounds import (
    Average,
    Stopping,
    Walked,
    walk_on,
    warn_of_long_draws,
    why_not_settled,
)
from walklearn.estimators.units import Units
from walklearn.files.encoding import Column, Encoding
from walklearn.files.schema import Schema, from_rows_message
from walklearn.files.wording import listed
from walklearn.graphs import Graph, Network, place_rows
from walklearn.model import Model
from walklearn.privacy import Allotment, Ledger, ModelNoise
from walklearn.privacy.ledger import IN_THE_CLEAR
from walklearn.privacy.model_noise import Unit
from walklearn.problem import Problem
from walklearn.problem.domains import Domain
from walklearn.problem.losses import Loss
from walklearn.problem.owned_rows import check_weights
from walklearn.updates.memory import GradientMemory
from walklearn.updates.step_choice import FIRST_LOOK, choose_step, most_steps, public_steps
from walklearn.updates.step_sizes import ConstantStep, StepSize
from walklearn.updates.update import Remembering, Sgd, Update
from walklearn.updates.walk_sgd import Token, WalkSetting
from walklearn.walks import ReleasedWeighted, Walk

Array = NDArray[Any]

# With fewer, the eigenvalues that L_i comes from are found faster by one thread than by several.
MANY_FEATURES = 1000
# By default a walk ends when a doubling changes the loss by this share of what zeros lose, or, with
# memory, when the gradient that is left is this share of the penalty's.
SETTLED, ARRIVED = 3e-3, 1e-4


@dataclass(eq=False)
class State:
    """What a token takes from one call to the next."""

    calls: int = 0
    units: Units | None = None
    network: Network | None = None
    token: Token | None = None
    ledger: Ledger | None = None
    contributions: Array | None = None
    terms: Terms | None = None
    allotted: Allotment | None = None


class Posed(NamedTuple):
    """The problem that a walk trains on, where its rows are, and the units they are in."""

    problem: Problem
    network: Network
    units: Units
    clipped_rows: int | None


class RandomWalk(BaseEstimator):
    """The parameters that both estimators have; `RandomWalkClassifier` explains them."""

    _state: State
    _shifts_targets = False

    def __init__(
        self,
        *,
        graph: Any = "erdos-renyi",
        walk: str | Walk = "auto",
        update: str | Update = "auto",
        loss: str | Loss | None = None,
        penalty: float = 1e-3,
        epsilon: float | None = None,
        delta: float | None = None,
        protect: Unit = "rows",
        model: str | None = None,
        schema: Schema | Mapping[str, Any] | str | os.PathLike[str] | None = None,
        row_length: float | None = None,
        feature_bound: float | None = None,
        max_rows: float | None = None,
        total_rows: float | None = None,
        mechanism: str = "laplace",
        model_privacy: ModelNoise | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        tol: float | None = None,
        step_size: float | StepSize | None = None,
        batch: int | None = None,
        average: Average | Literal["auto"] = "auto",
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
        self.update = update
        self.loss = loss
        self.penalty = penalty
        self.epsilon = epsilon
        self.delta = delta
        self.protect = protect
        self.model = model
        self.schema = schema
        self.row_length = row_length
        self.feature_bound = feature_bound
        self.max_rows = max_rows
        self.total_rows = total_rows
        self.mechanism = mechanism
        self.model_privacy = model_privacy
        self.steps = steps
        self.max_steps = max_steps
        self.tol = tol
        self.step_size = step_size
        self.batch = batch
        self.average = average
        self.fit_intercept = fit_intercept
        self.standardise = standardise
        self.domain = domain
        self.laziness = laziness
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def pose(
        self,
        X: ArrayLike,
        y: ArrayLike,
        nodes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> tuple[Problem, Graph]:
        """The problem that `fit` would solve on these rows, and the graph it would walk on.

        Both are what `simulate`, `theory.diagnose` and `advise` take. The problem is in the units
        that would be trained in. The estimator itself stays as it is.

        >>> from sklearn.datasets import load_iris
        >>> from walklearn import RandomWalkClassifier
        >>> problem, graph = RandomWalkClassifier(graph="ring").pose(*load_iris(return_X_y=True))
        >>> problem.loss, problem.objective, graph
        (Softmax(classes=3), 'mean', Graph(150 nodes, 150 edges))
        """
        new = copy(self)
        check_parameters(new)
        rows, targets, loss = new._taken(X, y)
        seed = seeds_of(self.random_state, 0).graph
        posed = new._posed(rows, targets, loss, nodes, sample_weight, State(), seed)
        return posed.problem, posed.network.graph

    def to_model(
        self, encoding: Encoding | Sequence[str] | None = None, *, target: str = "target"
    ) -> Model:
        """The fitted model as a `Model`: kept in a directory without pickle, exported to ONNX.

        encoding: how columns became the features: the `encoding` of `read_rows`, or the names of
        columns of numbers; by default those of the data frame that was fitted, else x0, x1, …
        target: the name of what is predicted.

        >>> from sklearn.datasets import load_iris
        >>> from walklearn import RandomWalkClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> classifier = RandomWalkClassifier(random_state=1).fit(X, y)
        >>> model = classifier.to_model(target="species")
        >>> (model.predict(X) == classifier.predict(X)).all()
        np.True_
        >>> print(model.privacy["not_protected"][0].partition(".")[0])
        ε = ∞: the model is not protected
        """
        check_is_fitted(self, "coef_")
        return model_of(self, encoding, target)

    @abstractmethod
    def _taken(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Loss]:
        """Rows and targets, checked and as the loss takes them, and the loss."""

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
        state = self._state if go_on else State()
        seeds, terms = seeds_of(self.random_state, state.calls), self._terms()
        walk = walk_of(self.walk, self.laziness, terms.about_constants)
        private = terms.are_private(walk)
        _check_same(state, terms, private)
        with threadpool_limits(1 if X.shape[1] < MANY_FEATURES else None, user_api="blas"):
            posed = self._posed(X, targets, loss, nodes, sample_weight, state, seeds.graph)
            problem, graph = posed.problem, posed.network.graph
            updates = None if one_call else self.steps
            allotted = state.allotted or terms.allotted(walk, problem, updates)
            noise = self.model_privacy if allotted is None else allotted.noise
            drawn = released(terms.applied(walk, problem, allotted), problem, graph, seeds.release)
            memory = None if one_call else memory_of(self, private)
            update = memory or self._sgd(terms, problem, drawn, graph, allotted)
            update.check(problem)
        ledger = self._entered(state, drawn, noise, graph, seeds, terms)
        setting = WalkSetting(problem, graph, drawn, update, self.batch, noise)
        stopping = self._stopping(problem, private, one_call, allotted, update)
        token = _at_home(state.token, graph, problem, update)
        _warn_if_spent(noise, state.contributions)
        real = noise is not None and not seeds.simulated
        if real:
            warn_of_long_draws(setting, stopping)
        walked = walk_on(
            setting, seeds.streams, token, stopping, state.contributions, self.callback, real
        )
        if not (one_call or private or walked.settled) and self.steps is None:
            warnings.warn(why_not_settled(walked, stopping), ConvergenceWarning, stacklevel=4)
        self._state = State(
            state.calls + 1, posed.units, posed.network, walked.token, ledger, walked.contributions,
            terms, allotted,
        )  # fmt: skip
        self.allotment_, self.model_noise_ = allotted, noise
        self._bring_home(setting, walked, posed, ledger)
        self.trace_ = trace_of(self, setting, walked, seeds)
        fitted = getattr(self.callback, "fitted", None)
        if fitted is not None:
            fitted(self)

    def _posed(
        self,
        X: Array,
        targets: Array,
        loss: Loss,
        nodes: ArrayLike | None,
        sample_weight: ArrayLike | None,
        state: State,
        seed: np.random.SeedSequence,
    ) -> Posed:
        """The problem as it is trained on: clipped, in its units, on its network."""
        terms = self._terms()
        private = terms.are_private(walk_of(self.walk, self.laziness, terms.about_constants))
        count = X.shape[0]
        weights, clipped = check_weights(sample_weight, count), None
        units = self._units(X, targets, weights, private, state.units)
        if self.feature_bound is None:
            rows = units.rows(X)
        else:  # in the units that it is trained in: there the claims take it to hold
            rows, clipped = units.clipped(X, self.feature_bound)
        network = place_rows(self.graph, nodes, count, seed, state.network)
        problem = Problem(
            rows, targets - units.target_shift, loss=loss, penalty=self.penalty,
            domain=self.domain, node_of_row=network.owners, nodes=network.graph.node_count,
            objective=terms.objective, empty_nodes="relay", sample_weight=weights,
            total_rows=self.total_rows if terms.objective == "mean" else None, assume_finite=True,
            copy=False,
        )  # fmt: skip
        return Posed(problem, network, units, clipped)

    def _terms(self) -> Terms:
        length, bound = self.row_length, self.feature_bound
        if self.schema is not None:
            encoding = Encoding(tuple(self._columns()))
            bound = bound or (encoding.longest if math.isfinite(encoding.longest) else None)
            length = length or encoding.typical_length
        return Terms(
            self.epsilon,
            self.delta,
            self.protect,
            self.model == IN_THE_CLEAR,
            self.mechanism,
            length,
            bound,
            self.max_rows,
            self.total_rows,
            bool(self.fit_intercept),
            self.model_privacy,
        )

    def _columns(self) -> list[Column]:
        """The columns of X as the schema declares them, or as they are."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"x{at}" for at in range(self.n_features_in_)]
        schema = Schema.of(self.schema)
        if schema.categories:
            raise ValueError(
                f"the schema declares categories of {listed(list(schema.categories))}, and X has "
                "numbers only: encode columns of text first (files.read_rows(..., schema=...))."
            )
        if schema.from_rows and (self.epsilon or self.model_privacy):
            raise ValueError(from_rows_message(schema))
        return list(schema.applied(Encoding.of_numbers(names)).columns)

    def _units(
        self, X: Array, targets: Array, weights: Array, private: bool, known: Units | None
    ) -> Units:
        """The units of the first call, which later ones keep."""
        if private and self.standardise is True:
            raise ValueError(
                "standardise=True takes the scale of every column from the rows, which would leak. "
                "Declare public scales (schema=...), and leave standardise out."
            )
        if private and known is not None and known.from_rows:
            raise ValueError(
                "earlier rows were standardised by their own scale, which what is private now "
                "would rest on: begin with a new estimator."
            )
        if known is not None:
            return known
        if self.schema is not None:
            if self.standardise is True:
                raise ValueError(
                    "standardise=True takes the scale of columns from the rows, and the schema "
                    "declares it: leave one of them out."
                )
            return Units.declared(self._columns(), bool(self.fit_intercept))
        if private or self.standardise is False:
            return Units.given(X.shape[1], bool(self.fit_intercept))
        if not weights.all():
            counted = weights > 0
            X, targets, weights = X[counted], targets[counted], weights[counted]
        shifted = targets if self._shifts_targets else None
        return Units.standard(X, weights, bool(self.fit_intercept), shifted)

    def _sgd(
        self,
        terms: Terms,
        problem: Problem,
        walk: Walk,
        graph: Graph,
        allotted: Allotment | None,
    ) -> Sgd:
        """The paper's update, with the step size that is given or follows."""
        if isinstance(self.update, Sgd):
            return self.update
        return Sgd(self._step(terms, problem, walk, graph, allotted))

    def _step(
        self,
        terms: Terms,
        problem: Problem,
        walk: Walk,
        graph: Graph,
        allotted: Allotment | None,
    ) -> StepSize:
        given = step_of(self.step_size)
        if given is not None:
            return given
        if allotted is not None:
            return ConstantStep(allotted.step)
        if terms.are_private(walk) or isinstance(walk.innermost, ReleasedWeighted):
            return terms.step(problem, graph, walk)
        return choose_step(problem, graph, walk, self.batch)

    def _stopping(
        self,
        problem: Problem,
        private: bool,
        one_call: bool,
        allotted: Allotment | None,
        update: Update,
    ) -> Stopping:
        """How long to walk; where something is private, by public numbers alone."""
        nodes, remembers = problem.node_count, isinstance(update, Remembering)
        steps, most = self.steps, self.max_steps or most_steps(nodes, remembers)
        default = ARRIVED if remembers else SETTLED
        if one_call:
            with_rows = int(np.count_nonzero(np.diff(problem.offsets)))
            steps = steps or (nodes if private else with_rows)
        elif allotted is not None:
            steps = steps or min(allotted.updates, most)
        elif private and steps is None:
            steps = public_steps(nodes, most)
            if self.model_privacy is not None:  # what comes after the caps is noise only
                steps = min(steps, self.model_privacy.max_contributions * nodes)
        return Stopping(
            steps=steps,
            most=most,
            first=max(FIRST_LOOK, nodes),
            tolerance=default if self.tol is None else self.tol,
            average=self._average_of(update),
            go_on=one_call,
        )

    def _entered(
        self,
        state: State,
        walk: Walk,
        noise: ModelNoise | None,
        graph: Graph,
        seeds: Seeds,
        terms: Terms,
    ) -> Ledger:
        """The ledger with what this call will publish; past the budget nothing is published."""
        budget = None
        if self.epsilon is not None and self.delta is not None and not terms.in_the_clear:
            budget = (self.epsilon, self.delta)
        ledger = ledger_for(graph, state.ledger, seeds.simulated, budget)
        charge_release(ledger, walk)
        charge_model(ledger, noise, 0 if state.ledger is None else state.ledger.nodes)
        return ledger

    def _bring_home(
        self, setting: WalkSetting, walked: Walked, posed: Posed, ledger: Ledger
    ) -> None:
        shape = setting.problem.model_shape
        self.weights_ = posed.units.back(walked.token.model.reshape(shape))
        self.average_ = posed.units.back(walked.token.average.reshape(shape))
        if posed.clipped_rows is not None:
            self.clipped_rows_ = posed.clipped_rows
        self.loss_ = setting.problem.loss
        self.graph_ = setting.graph
        self.walk_ = setting.walk
        self.update_ = setting.update
        self.step_size_ = setting.update.step_size
        self.ledger_ = ledger
        self.n_iter_ = walked.token.updates

    @property
    def _used(self) -> Array:
        """The model that predicts, in given units, one row per score, the intercept last."""
        return np.atleast_2d(self.weights_ if self._averages == "none" else self.average_)

    @property
    def _averages(self) -> Average:
        """What predicts."""
        return self._average_of(self.update_)

    def _average_of(self, update: Update) -> Average:
        """What predicts. Steps that ε has chosen are short, and an average would lag behind."""
        if not (isinstance(update, Sgd) and update.average):
            return "none"
        if self.average != "auto":
            return self.average
        return "tail" if self.epsilon is None or self.model == IN_THE_CLEAR else "none"

    def _split(self) -> tuple[Array, Array]:
        """Coefficients and intercepts of the model that predicts."""
        used = self._used
        if self.fit_intercept:
            return used[:, :-1].copy(), used[:, -1].copy()
        return used.copy(), np.zeros(len(used))

    def _scores(self, X: ArrayLike) -> Array:
        check_is_fitted(self, "coef_")
        rows = validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        coefficients = np.atleast_2d(self.coef_)
        units = self._state.units
        cut = rows if units is None else units.cut(rows)
        return np.asarray(cut @ coefficients.T + self.intercept_)


def _check_same(state: State, terms: Terms, private: bool) -> None:
    """What was claimed of earlier calls rests on terms that must not change."""
    if state.terms is None or state.terms == terms:
        return
    if private or state.terms.epsilon is not None or state.terms.model_privacy is not None:
        raise ValueError(
            "what is protected, and the public facts that it rests on, must stay as they were in "
            "the first call: begin with a new estimator."
        )


def _warn_if_spent(noise: ModelNoise | None, contributions: Array | None) -> None:
    if noise is None or contributions is None:
        return
    if len(contributions) and int(contributions.min()) >= noise.max_contributions:
        warnings.warn(
            f"every node has added to the model {noise.max_contributions} times, as often as ε "
            "allows: from here on there is noise only. Begin with a new estimator, which pays "
            "anew.",
            stacklevel=5,
        )


def _at_home(token: Token | None, graph: Graph, problem: Problem, update: Update) -> Token | None:
    """The token, at a node that the graph has; what it remembers of other rows is forgotten."""
    if token is None:
        return None
    memory = update.begin(problem) if isinstance(update, Remembering) else None
    if isinstance(memory, GradientMemory):
        memory = memory._replace(collects=True)
    return token._replace(node=token.node % graph.node_count, previous=-1, memory=memory)
