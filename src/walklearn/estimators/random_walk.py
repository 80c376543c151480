"""Parameters, attributes and methods of both estimators.

A fit goes one way: the parameters become a request (`fitting.request`), the rows a problem and a
plan (`fitting.prepare`), the token walks (`fitting.training`), and the results become attributes
here, in the units of the given rows.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from walklearn.estimators.result import model_of, trace_of
from walklearn.fitting.plan import FitPlan
from walklearn.fitting.prepare import Given, Prepared, prepare
from walklearn.fitting.request import FitRequest
from walklearn.fitting.rounds import Average
from walklearn.fitting.training import Ended, train
from walklearn.fitting.training_state import State
from walklearn.graphs import Graph
from walklearn.models import Model
from walklearn.objectives import Problem
from walklearn.objectives.linear.domains import Domain
from walklearn.objectives.linear.losses import Loss
from walklearn.privacy import ModelNoise
from walklearn.privacy.model_noise import Unit
from walklearn.tables.encoding import Encoding
from walklearn.tables.schema import Schema
from walklearn.updates.step_sizes import StepSize
from walklearn.updates.update import Update
from walklearn.walks import Walk

Array = NDArray[Any]


class Checked(NamedTuple):
    """Checked rows, targets as the loss takes them, the loss, and the labels of a classifier."""

    X: Array
    targets: Array
    loss: Loss
    classes: Array | None = None


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
        paper's; or pass an update such as updates.Saga(). "auto" is Saga, unless something is
        private, or step_size or average is given: then the paper's. With memory the walk only
        chooses the next node, and the last model predicts.
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
        follow from public facts (`privacy.plan_budget`, `budget_plan_`): `schema`, or
        `row_length`, or `feature_bound`.
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
    target_centre, target_spread
        Of a regressor: a typical target and how far targets typically are from it, both public.
        epsilon and model_privacy need them, here or in the schema under the name of y (a column of
        a data frame). Noise on the model is made for targets of spread 1, so a protected model is
        trained on (y − target_centre) / target_spread, cut at ±3, which bounds what an
        extreme target can do. Centre and spread are folded into `coef_` and `intercept_`, and
        predictions are in the units of y; losses in `trace_` are in units of the spread. Without
        protection of the model they change nothing. A centre other than 0 needs an intercept.
    mechanism
        What releases L_i where the model is in the clear: a name in `privacy.MECHANISMS`. None
        chooses the one with the least error, and the uniform walk where none is worth its cost.
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
        The step of the paper's update: a step size, or the constant c of c / k^0.51 (as steps
        fall that are found, and those of `walklearn train --step-constant`). By default it
        follows from the constants L_i, under privacy from what was released and the public
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
        The chance that a walk given by name stays put; any above 0 cures a walk of period 2. None
        chooses it by the spectral gap of the graph.
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
    fit_plan_
        The `FitPlan` that was run: all choices, with their reasons.
    ledger_
        What was published, at what cost.
    budget_plan_
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
    _resumed: Model | None = None
    _predicts_numbers = False

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
        target_centre: float | None = None,
        target_spread: float | None = None,
        mechanism: str | None = "laplace",
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
        laziness: float | None = 0.0,
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
        self.target_centre = target_centre
        self.target_spread = target_spread
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

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        nodes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train on rows, each at the node that owns it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (rows, features)
            The rows.
        y : array-like of shape (rows,)
            The label or the target of each row.
        nodes : array-like of shape (rows,) or None
            The name or number of the node that owns each row. By default every row has a node of
            its own.
        sample_weight : array-like of shape (rows,) or None
            How many rows each one counts as. By default each counts once.

        Returns
        -------
        self
            The fitted estimator.
        """
        return self.run(self.prepare(X, y, nodes, sample_weight))

    def resolve(
        self,
        X: ArrayLike,
        y: ArrayLike,
        nodes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> FitPlan:
        """Return the plan that `fit` would run on these rows, without drawing or spending anything.

        The estimator itself stays as it is. Of a graph that is drawn, the plan has one instance;
        `fit` draws another, unless `random_state` is a number.

        Parameters
        ----------
        X, y, nodes, sample_weight
            As for `fit`.

        Returns
        -------
        FitPlan
            All choices with their reasons.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from walklearn import RandomWalkClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> private = RandomWalkClassifier(epsilon=1.0, delta=1e-5, row_length=2.0)
        >>> plan = private.resolve(X, y)
        >>> plan.walk, plan.stop.steps, plan.noise.max_contributions
        (Uniform(), 6758, 50)
        """
        return self._twin().prepare(X, y, nodes, sample_weight).plan

    def pose(
        self,
        X: ArrayLike,
        y: ArrayLike,
        nodes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> tuple[Problem, Graph]:
        """The problem that `fit` would solve on these rows, and the graph it would walk on.

        Both are what `simulate`, `theory.diagnose` and `advise` take. The estimator itself stays as
        it is.

        Parameters
        ----------
        X, y, nodes, sample_weight
            As for `fit`.

        Returns
        -------
        problem : Problem
            In the units that would be trained in.
        graph : Graph
            With a node for each owner of rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from walklearn import RandomWalkClassifier
        >>> problem, graph = RandomWalkClassifier(graph="ring").pose(*load_iris(return_X_y=True))
        >>> problem.loss, problem.aggregate, graph
        (Softmax(classes=3), 'mean', Graph(150 nodes, 150 edges))
        """
        new = self._twin()
        new.warm_start = False
        here = new.prepare(X, y, nodes, sample_weight).posed
        return here.problem, here.network.graph

    def to_model(
        self, encoding: Encoding | Sequence[str] | None = None, *, target: str = "target"
    ) -> Model:
        """Give the fitted model as a `Model`: kept in a directory without pickle, or as ONNX.

        Parameters
        ----------
        encoding
            How columns became the features: the `encoding` of `read_rows`, or the names of columns
            of numbers; by default those of the data frame that was fitted, else x0, x1, …
        target
            The name of what is predicted.

        Returns
        -------
        Model
            What was learnt, with the ledger.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from walklearn import RandomWalkClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> classifier = RandomWalkClassifier(random_state=1).fit(X, y)
        >>> model = classifier.to_model(target="species")
        >>> (model.predict(X) == classifier.predict(X)).all()
        np.True_
        >>> print(model.claim)
        ε = ∞: nothing is protected
        """
        check_is_fitted(self, "coef_")
        return model_of(self, encoding, target)

    def resume_from(self, model: Model) -> Self:
        """Let the next `fit` begin with a model that was kept, and with the count of its updates.

        With memory the token first collects the gradients of all nodes and then ends at the
        minimiser; the paper's update goes on with the steps that come next. `steps` and `max_steps`
        count from there. Nothing private is gone on with: how often the rows of a node have shown
        in a model is not kept with it. Within one process `warm_start` does the same.

        Parameters
        ----------
        model
            What `to_model` gave for the same columns, classes and parameters, read again by
            `Model.load`.

        Returns
        -------
        The estimator itself.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from walklearn import RandomWalkClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = RandomWalkClassifier(steps=1000, random_state=1).fit(X, y).to_model()
        >>> RandomWalkClassifier(steps=500, random_state=1).resume_from(model).fit(X, y).n_iter_
        1500
        """
        self._resumed = model
        return self

    def prepare(
        self,
        X: ArrayLike,
        y: ArrayLike,
        nodes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Prepared:
        """Prepare a fit for `run`: check the rows and resolve the plan, but draw and spend nothing.

        `walklearn train` charges the owner's record between the two steps. `fit` does both.

        Parameters
        ----------
        X, y, nodes, sample_weight
            As for `fit`.

        Returns
        -------
        Prepared
            The problem, the plan, and the ledger after the run.
        """
        go_on = self.warm_start and hasattr(self, "_state")
        return self._prepare(X, y, nodes, sample_weight, go_on)

    def _twin(self) -> Self:
        """Return a copy that may draw numbers without any effect on this estimator."""
        new = copy(self)
        new.random_state = deepcopy(self.random_state)
        return new

    def run(self, prepared: Prepared) -> Self:
        """Let the token walk as prepared, and keep what was learnt.

        Parameters
        ----------
        prepared
            What `prepare` returned.

        Returns
        -------
        self
            The fitted estimator.
        """
        if prepared.request.predicts_numbers != self._predicts_numbers:
            raise ValueError(f"this fit was prepared by another kind than {type(self).__name__}.")
        ended = train(prepared, self.callback)
        self.n_features_in_ = prepared.given.X.shape[1]
        if prepared.given.names is not None:
            self.feature_names_in_ = prepared.given.names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._state, self._resumed = ended.state, None
        self._set_attributes(ended)
        self.trace_ = trace_of(self, ended)
        fitted = getattr(self.callback, "fitted", None)
        if fitted is not None:
            fitted(self)
        return self

    @abstractmethod
    def _checked(
        self, X: ArrayLike, y: ArrayLike, go_on: bool, classes: Array | None = None
    ) -> Checked:
        """Check rows and targets; `go_on` says that they follow those of the last call."""

    def _prepare(
        self,
        X: ArrayLike,
        y: Any,
        nodes: ArrayLike | None,
        sample_weight: ArrayLike | None,
        go_on: bool,
        classes: Array | None = None,
        partial: bool = False,
    ) -> Prepared:
        """Prepare a call; `partial` says that it is one of partial_fit."""
        new = copy(self)  # so that this estimator stays as it is until the run
        checked = new._checked(X, y, go_on, classes)
        given_names = getattr(new, "feature_names_in_", None)
        names = [] if given_names is None else list(given_names)
        if given_names is None and self.schema is not None:
            names = [f"x{at}" for at in range(new.n_features_in_)]
        target = getattr(y, "name", None)  # under which a schema may declare its scale
        named = self._predicts_numbers and isinstance(target, str)
        request = FitRequest.of(
            self.get_params(deep=False), names, target if named else None,
            self._predicts_numbers,
        )  # fmt: skip
        state = self._state if go_on else State(resumed=self._resumed)
        given = Given(*checked, given_names, nodes, sample_weight)
        return prepare(request, given, state, self.random_state, partial)

    def _set_attributes(self, ended: Ended) -> None:
        """Keep the result of a walk, in the units that the rows were given in."""
        prepared, setting, token = ended.prepared, ended.setting, ended.walked.token
        here, plan = prepared.posed, prepared.plan
        objective, update, arrays = setting.visible, setting.update, token.token.update
        shape = here.problem.model_shape
        self.weights_ = here.units.back(update.model(objective, arrays).reshape(shape))
        self.average_ = here.units.back(update.average_model(objective, arrays).reshape(shape))
        if here.clipped_rows is not None:
            self.clipped_rows_ = here.clipped_rows
        if prepared.given.classes is not None:
            self.classes_ = prepared.given.classes
        self.interrupted_ = ended.walked.interrupted
        self.fit_plan_ = plan
        self.budget_plan_, self.model_noise_ = plan.budget_plan, plan.noise
        self.graph_ = plan.graph
        self.walk_ = setting.walk
        self.update_ = setting.update
        self.step_size_ = getattr(setting.update, "step_size", None)
        self.ledger_ = prepared.ledger
        self.n_iter_ = token.token.updates
        self.loss_ = prepared.given.loss  # in the units of the target that was given
        used = np.atleast_2d(self.weights_ if plan.stop.average == "none" else self.average_)
        intercept = prepared.request.intercept
        coefficients = (used[:, :-1] if intercept else used).copy()
        intercepts = used[:, -1].copy() if intercept else np.zeros(len(used))
        numbers = self._predicts_numbers
        self.coef_ = coefficients[0] if numbers else coefficients
        self.intercept_ = float(intercepts[0]) if numbers else intercepts

    def _scores(self, X: ArrayLike) -> Array:
        check_is_fitted(self, "coef_")
        rows = validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        coefficients = np.atleast_2d(self.coef_)
        units = self._state.units
        cut = rows if units is None else units.cut(rows)
        return np.asarray(cut @ coefficients.T + self.intercept_)
