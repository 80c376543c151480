"""Parameters, attributes and methods of the estimators.

`fitting.request` reads the parameters, and `fitting.training` makes a problem and a plan and runs
the walk. The results become attributes of the estimator, in the units of the given rows.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from walklearn.estimators.result import model_of, trace_of
from walklearn.fitting.plan import FitPlan
from walklearn.fitting.request import FitRequest
from walklearn.fitting.rounds import Average
from walklearn.fitting.training import FitInput, FitResult, PreparedFit, prepare, train
from walklearn.fitting.training_state import TrainingState
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


@dataclass(kw_only=True, eq=False, repr=False)
class RandomWalk(BaseEstimator):
    """Base of the estimators: a linear model, updated at each node that its token visits.

    Rows may be sparse (any SciPy format) and stay sparse: an update of "saga" or "sgd" then costs
    as many operations as its rows have nonzero entries (in a `Box` all). `trace_` and
    `clipped_rows_` are computed from the rows: do not publish them.

    Parameters
    ----------
    graph
        Communication graph: the name of a family ("erdos-renyi", …), from which a graph is drawn
        with one node per distinct value in `nodes`; a `Graph`; a networkx or igraph graph; a SciPy
        adjacency matrix; or the path of an edge list.
    walk
        "uniform" (nodes disclose only their degrees to neighbours), "weighted" (visits, and steps
        of "sgd", follow L_i, which the nodes disclose), "simple", "oldest-first" and "tour" (every
        node again after a bounded number of hops), or a walk such as walks.Jumping(...). "auto" is
        "tour" with "finito" and without `laziness`, "weighted" if ε is about L_i alone, and
        otherwise "uniform".
    update
        "saga" and "finito" store gradients and converge to the minimiser; "sgd" is the paper's
        update; or an update such as updates.Saga(). "auto" is "finito"; "saga" if rows are sparse,
        if batch is given, or if the nodes would store points of more than 50 million numbers; "sgd"
        if something is private, if step_size or average is given, or if the walk is
        walks.Simple("gap"). With "saga" and "finito" the last model predicts.
    loss
        A loss, such as losses.Huber(10.0), whose threshold is in the units of y, or its name:
        "logistic" (default; softmax for more than two classes) or "squared-hinge" (two classes, no
        probabilities) for a classifier, "squared" (default) or "huber" for a regressor.
    penalty
        The factor of ½‖w‖² in the objective, the intercept included.
    epsilon, delta
        The total for everything that leaves a node because of its rows, the model included. Clip,
        noise, number of contributions, steps and length of the walk follow from public facts
        (`privacy.plan_budget`, `budget_plan_`): `schema`, `row_length` or `feature_bound`.
    protect
        The unit of ε: one row of a node is replaced ("rows"), or all of them ("node").
    model
        "in the clear" leaves the model unprotected: ε is then about the L_i of a weighted walk
        alone, released by `mechanism`, and the total is ε = ∞.
    schema
        Public scales of the columns: a `files.Schema`, the path of its file, or its content, such
        as {"*": {"centre": 0, "spread": 1}}. Columns of arrays are x0, x1, … Values beyond 3
        spreads, or beyond a range, are cut off, also in rows to predict.
    row_length
        The typical length of a row, in units of a typical spread.
    feature_bound
        A public length, in units of training. Longer rows are shortened to it and counted in
        `clipped_rows_`; rows to predict are not. A StandardScaler on the rows would leak.
    max_rows
        A public cap on the rows of a node (on their total weight), for the bounds of L_i. The
        number of rows of a node counts as public, with or without a cap, unless protect="node".
    total_rows
        The number M of all rows, if it is public. Without it and with protect="node" every node
        counts the same.
    target_centre, target_spread
        A regressor's public typical target, and the typical deviation from it. A protected model
        needs them, here or in the schema under the name of y (a column of a data frame). It is
        trained on (y − target_centre) / target_spread, cut off at ±3, and losses in `trace_` are in
        these units; `coef_` and `intercept_` predict y itself.
    mechanism
        The mechanism for L_i if model="in the clear": a name in `privacy.MECHANISMS`. None
        chooses the one with the smallest error, and the uniform walk if none is worth its cost.
    model_privacy
        Your own `ModelNoise`: clip, noise and a cap on the contributions of a node. Leave epsilon
        out then. Its ε is reported at `delta`, or at 1e-5.
    steps
        The number of updates. By default "saga" and "finito" continue until the known gradient is
        at most `tol` · penalty · ‖w‖ for a whole round of the network, and "sgd" until doubling
        the walk changes the loss by less than `tol` times the loss of a model of zeros. Under
        privacy the length follows from public numbers.
    max_steps
        The maximum of updates without `steps`: by default a million or 50 per node, with "saga" and
        "finito" 20 times that.
    tol
        The tolerance of a walk without `steps`: by default 1e-4 with "saga" and "finito", the
        relative distance from the minimiser, else 3e-3.
    step_size
        The step of "sgd": a step size, or the constant c of c / k^0.51 (also `walklearn train
        --step-constant`). By default it follows from the constants L_i; under privacy from what
        was released and the public bounds.
    batch
        The number of randomly chosen rows of a node in an update; by default all.
    average
        The model of "sgd" that predicts: "tail" is the average over the last half of the walk,
        "all" the average over all of it, "none" the last model. "auto" is "tail", but "none" if
        epsilon protects the model, and with "saga" and "finito".
    fit_intercept
        True if the model has an intercept.
    standardise
        True to train in units in which columns have mean 0 and deviation 1 (penalty and domain
        apply there); sparse columns are only divided by their largest entry. "auto" does so unless
        something is private, because the units are computed from the rows.
    domain
        The set that contains the model, such as domains.Ball(10.0).
    laziness
        The probability that a walk given by name stays put; any above 0 removes a period of 2.
        None chooses it by the spectral gap of the graph. Covering walks have none: above 0, the
        walk "auto" is uniform.
    warm_start
        True if fit continues with the token of the last fit: the model stays, and what nodes store
        is dropped. With "finito" the model stays unchanged until every node was visited.
    random_state
        A number makes everything repeatable, also releases, which then protect nobody: the ledger
        says "simulated". None draws noise exactly, from the operating system's entropy (the extra
        `privacy`), at about 40 µs a number.
    callback
        A function that is called as callback(updates, loss) after each round; `MlflowCallback()`
        logs every fit to MLflow.

    Attributes
    ----------
    coef_, intercept_, classes_
        The model that predicts, and the labels of a classifier.
    weights_, average_
        The last model and the average, the intercept last.
    n_iter_, trace_
        The number of updates, and losses and messages during the fit.
    fit_plan_, graph_, walk_, update_, step_size_
        The `FitPlan` with all choices and reasons, and the parts of the run.
    ledger_, budget_plan_, model_noise_
        The releases and their cost, the split of ε and δ, and clip, noise and cap of the model.
    """

    graph: Any = "erdos-renyi"
    walk: str | Walk = "auto"
    update: str | Update = "auto"
    loss: str | Loss | None = None
    penalty: float = 1e-3
    epsilon: float | None = None
    delta: float | None = None
    protect: Unit = "rows"
    model: str | None = None
    schema: Schema | Mapping[str, Any] | str | os.PathLike[str] | None = None
    row_length: float | None = None
    feature_bound: float | None = None
    max_rows: float | None = None
    total_rows: float | None = None
    target_centre: float | None = None
    target_spread: float | None = None
    mechanism: str | None = "laplace"
    model_privacy: ModelNoise | None = None
    steps: int | None = None
    max_steps: int | None = None
    tol: float | None = None
    step_size: float | StepSize | None = None
    batch: int | None = None
    average: Average | Literal["auto"] = "auto"
    fit_intercept: bool = True
    standardise: bool | str = "auto"
    domain: Domain | None = None
    laziness: float | None = 0.0
    warm_start: bool = False
    random_state: Any = None
    callback: Callable[[int, float], object] | None = None
    _predicts_numbers: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Add the shared parameters to the docstring of an estimator."""
        super().__init_subclass__(**options)
        if cls.__doc__ and RandomWalk.__doc__:
            shared = RandomWalk.__doc__[RandomWalk.__doc__.index("    Parameters\n") :].rstrip()
            head, mark, examples = cls.__doc__.partition("    Examples\n")
            cls.__doc__ = f"{head}{shared}\n\n{mark}{examples}"

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
            The name or number of the node that owns each row. By default each row has a node.
        sample_weight : array-like of shape (rows,) or None
            The weight of each row; 1 by default.

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

        The estimator stays unchanged. If the graph is drawn, the plan has one instance; `fit` draws
        another, unless `random_state` is a number.

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
        return self._copy().prepare(X, y, nodes, sample_weight).plan

    def prepare_problem(
        self,
        X: ArrayLike,
        y: ArrayLike,
        nodes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> tuple[Problem, Graph]:
        """Return the problem that `fit` would solve, in units of training, and its graph.

        `simulate`, `theory.diagnose` and `advise` take both. The estimator stays unchanged.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from walklearn import RandomWalkClassifier
        >>> rows = load_iris(return_X_y=True)
        >>> problem, graph = RandomWalkClassifier(graph="ring").prepare_problem(*rows)
        >>> problem.loss, problem.aggregate, graph
        (Softmax(classes=3), 'mean', Graph(150 nodes, 150 edges))
        """
        new = self._copy()
        new.warm_start = False
        prepared = new.prepare(X, y, nodes, sample_weight)
        return prepared.problem, prepared.plan.graph

    def to_model(
        self, encoding: Encoding | Sequence[str] | None = None, *, target: str = "target"
    ) -> Model:
        """Return the fitted model as a `Model`, to save without pickle or to export as ONNX.

        Parameters
        ----------
        encoding
            The encoding of the columns: the `encoding` of `read_rows`, or the names of columns of
            numbers; by default those of the data frame that was fitted, else x0, x1, …
        target
            The name of the predicted column.

        Returns
        -------
        Model
            The model, with the ledger.

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
        """Let the next `fit` start from a saved model and its number of updates.

        The model must come from the same columns, classes and parameters. `steps` and `max_steps`
        count only the new updates. A private training cannot be resumed, because a model does not
        store the contributions of each node. Within one process, use `warm_start` instead.

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
    ) -> PreparedFit:
        """Check the rows and resolve the plan of a fit, without drawing or spending anything.

        `run` runs the prepared fit. `walklearn train` charges the owner's record in between.
        """
        resumes = self.warm_start and hasattr(self, "_state")
        return self._prepare(X, y, nodes, sample_weight, resumes)

    def _copy(self) -> Self:
        """Return a copy that may draw numbers without any effect on this estimator."""
        new = copy(self)
        new.random_state = deepcopy(self.random_state)
        return new

    def run(self, prepared: PreparedFit) -> Self:
        """Run the walk of a prepared fit, and set the fitted attributes."""
        if prepared.request.predicts_numbers != self._predicts_numbers:
            raise ValueError(f"this fit was prepared by another class than {type(self).__name__}.")
        result = train(prepared, self.callback)
        self.n_features_in_ = prepared.rows.X.shape[1]
        if prepared.rows.names is not None:
            self.feature_names_in_ = prepared.rows.names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._state = result.state
        self.__dict__.pop("_resumed", None)
        self._set_attributes(result)
        self.trace_ = trace_of(self, result)
        fitted = getattr(self.callback, "fitted", None)
        if fitted is not None:
            fitted(self)
        return self

    @abstractmethod
    def _checked(
        self, X: ArrayLike, y: ArrayLike, resumes: bool, classes: Array | None = None
    ) -> FitInput:
        """Check rows and targets; resumes: True if they follow those of the last call."""

    def _prepare(
        self,
        X: ArrayLike,
        y: Any,
        nodes: ArrayLike | None,
        sample_weight: ArrayLike | None,
        resumes: bool,
        classes: Array | None = None,
        partial: bool = False,
    ) -> PreparedFit:
        """Prepare a call; partial: True for a call of partial_fit."""
        new = copy(self)  # this estimator stays unchanged until the run
        rows = new._checked(X, y, resumes, classes)
        names = getattr(new, "feature_names_in_", None)
        columns = [f"x{at}" for at in range(new.n_features_in_)] if names is None else list(names)
        target = getattr(y, "name", None)  # under which a schema may declare its scale
        named = self._predicts_numbers and isinstance(target, str)
        request = FitRequest.of(
            self.get_params(deep=False), columns, target if named else None, self._predicts_numbers
        )
        resumed = getattr(self, "_resumed", None)
        state = self._state if resumes else TrainingState(resumed=resumed)
        rows = rows._replace(names=names, nodes=nodes, sample_weight=sample_weight)
        return prepare(request, rows, state, self.random_state, partial)

    def _set_attributes(self, result: FitResult) -> None:
        """Set the fitted attributes, in the units of the given rows."""
        prepared, setting, token = result.prepared, result.setting, result.walk.token.token
        assert prepared.plan.encoding is not None
        plan, update, units = prepared.plan, setting.update, prepared.plan.encoding
        self.weights_, self.average_ = (
            units.to_original(
                model(setting.objective_view, token.update).reshape(prepared.problem.model_shape)
            )
            for model in (update.model, update.average_model)
        )
        if prepared.clipped_rows is not None:
            self.clipped_rows_ = prepared.clipped_rows
        if prepared.rows.classes is not None:
            self.classes_ = prepared.rows.classes
        self.interrupted_ = result.walk.interrupted
        self.fit_plan_, self.ledger_ = plan, prepared.ledger
        self.budget_plan_, self.model_noise_ = plan.budget_plan, plan.noise
        self.graph_, self.walk_, self.update_ = plan.graph, setting.walk, update
        self.step_size_ = getattr(update, "step_size", None)
        self.n_iter_ = token.updates
        self.loss_ = prepared.rows.loss  # in the units of the target that was given
        used = np.atleast_2d(self.weights_ if plan.stop.average == "none" else self.average_)
        coefficients = (used[:, :-1] if plan.intercept else used).copy()
        intercepts = used[:, -1].copy() if plan.intercept else np.zeros(len(used))
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
