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
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import ThreadpoolController

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
from walklearn.privacy import Allotment, Ledger, Mechanism, ModelNoise
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
from walklearn.updates.walk_sgd import Token, WalkSetting, token_at
from walklearn.walks import Walk
from walklearn.walks.disclosure import mechanism_of

Array = NDArray[Any]

# With fewer, the eigenvalues that L_i comes from are found faster by one thread than by several.
MANY_FEATURES = 1000
# By default a walk ends when a doubling changes the loss by this share of what zeros lose, or, with
# memory, when the gradient that is left is this share of the penalty's.
SETTLED, ARRIVED = 3e-3, 1e-4
# Updates for each node with new rows in a call of partial_fit: as many would see 63 % of them.
VISITS = 5


@dataclass(eq=False)
class State:
    """What a token takes from one call to the next.

    mechanism: the one that the walk brought itself. interrupted: whether any call was, by hand.
    """

    calls: int = 0
    units: Units | None = None
    network: Network | None = None
    token: Token | None = None
    ledger: Ledger | None = None
    contributions: Array | None = None
    terms: Terms | None = None
    mechanism: Mechanism | None = None
    allotted: Allotment | None = None
    marks: list[Token] = field(default_factory=list)
    interrupted: bool = False


class Posed(NamedTuple):
    """The problem that a walk trains on, where its rows are, and the units they are in."""

    problem: Problem
    network: Network
    units: Units
    clipped_rows: int | None


class RandomWalk(BaseEstimator):
    """A linear model that walks over a graph and learns at every node; the estimators build on it.

    Rows may be sparse (any of SciPy's kinds) and stay so: an update then costs their entries that
    are not 0 (in a `Box` all). The trace and the counts of clipped rows are computed from the rows:
    they are for you, not for publishing.

    Parameters
    ----------
    graph
        Who can talk to whom: a name ("erdos-renyi", …), a `Graph`, a networkx or igraph graph,
        a SciPy adjacency, or the path of an edge list. A graph that is named is drawn with a
        node for each name in `nodes`.
    walk
        "uniform" (nodes tell neighbours only their degrees), "weighted" (visits, and the steps
        of the paper's update, follow L_i, which the nodes tell), "simple", or a walk such as
        walks.Jumping(...). "auto" is uniform, and weighted only where ε is about L_i alone.
    update
        What a visit does. "saga" remembers gradients and ends at the minimiser; "sgd" is the
        paper's; "sag" and "newton" are others, or pass an update such as updates.Saga(). "auto"
        is Saga, unless something is private, or step_size or average is given: then the
        paper's. With memory the walk says only who is next, and the last model predicts.
    loss
        A loss, or its name: "logistic" or "squared-hinge" (two classes, no probabilities) for a
        classifier, "squared" or "huber" for a regressor, such as losses.Huber(10.0), whose
        threshold is in the units of y. By default "logistic" for two classes, softmax for more,
        and "squared" for numbers.
    penalty
        The factor of ½‖w‖² in the objective, the intercept included.
    epsilon, delta
        The total for everything that leaves a node because of its rows, the model included. The
        clip, the noise, the number of contributions, the steps and the length of the walk
        follow from public facts (`privacy.allot`, `allotment_`): `schema`, or `row_length`, or
        `feature_bound`.
    protect
        What ε is about: one row of a node is replaced ("rows"), or all of them ("node").
    model
        "in the clear" leaves the model unprotected: ε is then about the L_i of a weighted walk
        alone, released by `mechanism`, and the total is ε = ∞.
    schema
        Public scales of the columns, a `files.Schema`, the path of its file or its content,
        such as {"*": {"centre": 0, "spread": 1}}. Columns of arrays are x0, x1, … What is
        beyond 3 spreads, or a range, is cut off, also of rows to predict.
    row_length
        How long rows typically are, where they come in units of a typical spread.
    feature_bound
        A public length, in the units that are trained in (those of the schema, where there is
        one); longer rows are shortened to it and counted in `clipped_rows_` (those to predict
        are taken as they are). What was scaled by the rows' own numbers before (a
        StandardScaler) leaks.
    max_rows
        A public cap on the rows of a node (on their total weight, where they have weights), for
        the bounds of L_i. How many rows a node has counts as public, cap or not, unless
        protect="node": then it does not show.
    total_rows
        The number M of all rows, where it is public. Without it and with protect="node" every
        node counts the same.
    mechanism
        What releases L_i where the model is in the clear: a name in `privacy.MECHANISMS`.
    model_privacy
        A `ModelNoise` made by hand: clipping, noise and a cap on what each node adds to the
        model. It cannot be given together with epsilon, from which one follows; its ε is told
        at `delta`, or 1e-5.
    steps
        How many updates to make. By default a walk with memory goes on until the gradient that
        the token knows is at most `tol` · penalty · ‖w‖ and stays so for a whole round of the
        network; one with the paper's update until doubling the walk changes the loss by less
        than `tol` times what a model of zeros loses. Under privacy the loss is not looked at,
        and the length follows from public numbers.
    max_steps
        The most updates a walk without `steps` makes: by default a million or 50 per node, with
        memory 20 times that.
    tol
        When a walk without `steps` stops; by default 1e-4 with memory, and so close are the
        coefficients to the minimiser, else 3e-3.
    step_size
        The step of the paper's update: a step size, or the constant c of c / k^0.75. By default
        it follows from the constants L_i, under privacy from what was released and the public
        bounds.
    batch
        How many of its rows, picked at random, a node looks at in an update; by default all.
        Where nodes are big a few dozen are nearly as good as hundreds, and cost less.
    average
        Which model of the paper's update predicts: "tail" is the average over the last half of
        the walk, "all" the paper's over all of it, "none" the last model. "auto" is "tail", but
        "none" where epsilon protects the model, and with memory.
    fit_intercept
        Whether the model has an intercept.
    standardise
        Whether to train in units in which columns have mean 0 and deviation 1 (penalty and
        domain apply there). "auto" does unless something is private, for the units come from
        the rows. Columns of sparse rows are not shifted, only divided by their largest entry.
    domain
        The set that the model is kept in, such as domains.Ball(10.0).
    laziness
        The chance that a walk given by name stays put; any above 0 cures a walk of period 2.
    warm_start
        Whether fit goes on with the token of the last fit; what was remembered of its rows is
        forgotten, the model is not.
    random_state
        A number makes everything repeatable, releases too, which then protect nobody, and the
        ledger says "simulated". None draws noise exactly, from the operating system's entropy
        (the extra `privacy`), which takes some 40 µs a number.
    callback
        A function that is called as callback(updates, loss) at the end of each round;
        `MlflowCallback()` logs every fit to MLflow.

    Attributes
    ----------
    coef_, intercept_
        The model that predicts.
    classes_
        The labels, of a classifier.
    n_iter_
        How many updates were made.
    trace_
        Losses and messages on the way.
    ledger_
        What was published, at what cost.
    allotment_
        What became of ε and δ.
    model_noise_
        The clipping, noise and cap that protected the model.
    graph_, walk_, update_
        What was walked on, who was next, and what a visit did.
    step_size_
        The step of the paper's update; None where an update found its own.
    weights_, average_
        The last model and the average, the intercept last.
    """

    _state: State
    _begun: Model
    _shifts_targets = False

    def __init_subclass__(cls, **options: Any) -> None:
        """An estimator's docstring explains all parameters, which are written here once."""
        super().__init_subclass__(**options)
        if cls.__doc__ and RandomWalk.__doc__:
            shared = RandomWalk.__doc__[RandomWalk.__doc__.index("    Parameters\n") :].rstrip()
            head, mark, examples = cls.__doc__.partition("    Examples\n")
            cls.__doc__ = f"{head}{shared}\n\n{mark}{examples}"

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
        _check_same(state, terms, mechanism_of(walk), private)
        threads = 1 if X.shape[1] < MANY_FEATURES else None
        with _pools().limit(limits=threads, user_api="blas"):
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
        token = _at_home(state.token or self._begun_with(posed), graph, problem, update)
        _warn_if_spent(noise, state.contributions)
        real = noise is not None and not seeds.simulated
        if real:
            warn_of_long_draws(setting, stopping)
        walked = walk_on(
            setting, seeds.streams, token, stopping, state.contributions, self.callback, real,
            state.marks,
        )  # fmt: skip
        self.interrupted_ = walked.interrupted
        if walked.interrupted:
            warnings.warn(
                f"interrupted after {walked.token.updates} updates: the model so far is kept. With "
                "warm_start=True another fit goes on from it.",
                stacklevel=4,
            )
        elif not (one_call or private or walked.settled) and self.steps is None:
            warnings.warn(why_not_settled(walked, stopping), ConvergenceWarning, stacklevel=4)
        self._state = State(
            state.calls + 1, posed.units, posed.network, walked.carried, ledger,
            walked.contributions, terms, mechanism_of(walk), allotted,
            walked.marks if one_call else [], state.interrupted or walked.interrupted,
        )  # fmt: skip
        self.allotment_, self.model_noise_ = allotted, noise
        self._bring_home(setting, walked, posed, ledger)
        self.trace_ = trace_of(self, setting, walked, seeds)
        fitted = getattr(self.callback, "fitted", None)
        if fitted is not None:
            fitted(self)

    def _begun_with(self, posed: Posed) -> Token | None:
        """The token that carried the model `_begun`, if the estimator was given one."""
        model: Model | None = getattr(self, "_begun", None)
        if model is None:
            return None
        weights = posed.units.forth(model.weights).reshape(-1)
        token = token_at(0, weights.astype(posed.problem.X.dtype, copy=False))
        return token._replace(updates=model.updates, messages=int(model.details["messages"]))

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
        if private and self.schema is not None and Schema.of(self.schema).from_rows:
            raise ValueError(from_rows_message(Schema.of(self.schema)))
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
        if terms.are_private(walk):
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
            steps = steps or (nodes if private else VISITS * with_rows)
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


@cache
def _pools() -> ThreadpoolController:
    """The pools of threads of this process; to look for them takes 6 ms."""
    return ThreadpoolController()


def _check_same(state: State, terms: Terms, mechanism: Mechanism | None, private: bool) -> None:
    """What was claimed of earlier calls rests on terms that must not change.

    mechanism: the one that the walk brings itself.
    """
    before = state.terms
    if before is None or (before, state.mechanism) == (terms, mechanism):
        return
    claimed = before.epsilon is not None or before.model_privacy is not None
    if private or claimed or state.mechanism is not None:
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
