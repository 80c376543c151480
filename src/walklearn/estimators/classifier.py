"""`RandomWalkClassifier`: logistic or multinomial regression over a network."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from walklearn.estimators.parameters import check_parameters, loss_of
from walklearn.estimators.random_walk import RandomWalk
from walklearn.problem.losses import LOSSES, Loss, Softmax

Array = NDArray[Any]


def _has_probabilities(estimator: RandomWalkClassifier) -> bool:
    loss: Any = estimator.loss
    known = LOSSES.get(loss or "logistic") if isinstance(loss, str | None) else loss
    if getattr(known, "gives_probabilities", False):
        return True
    raise AttributeError(f"there are no probabilities with loss={estimator.loss!r}.")


class RandomWalkClassifier(ClassifierMixin, RandomWalk):
    """A linear classifier trained by a model that walks over a graph.

    Two classes are told apart by the logistic loss, more by softmax. The objective is the mean
    loss over all rows plus (penalty/2)‖w‖², the intercept included. Rows may be sparse (any of
    SciPy's kinds) and stay so: an update then costs their entries that are not 0 (in a `Box` all).

    graph: who can talk to whom: a name ("erdos-renyi", …), a `Graph`, a networkx or igraph graph,
    a SciPy adjacency, or the path of an edge list. A graph that is named is drawn with a node
    for each name in `nodes`.
    walk: "uniform" (nodes tell neighbours only their degrees), "weighted" (visits, and the steps of
    the paper's update, follow L_i, which the nodes tell), "simple", or a walk such as
    walks.Jumping(...). "auto" is uniform, and weighted only where ε is about L_i alone.
    update: what a visit does. "saga" remembers gradients and ends at the minimiser; "sgd" is the
    paper's; "sag" and "newton" are others, or pass an update such as updates.Saga(). "auto" is
    Saga, unless something is private, or step_size or average is given: then the paper's. With
    memory the walk says only who is next, and the last model predicts.
    loss: "logistic", "squared-hinge" (two classes, no probabilities) or a loss.
    epsilon, delta: the total for everything that leaves a node because of its rows, the model
    included. Clip, noise, number of contributions, steps and length of the walk follow from public
    facts (`privacy.allot`, `allotment_`): `schema`, or `row_length`, or `feature_bound`.
    protect: what ε is about: one row of a node is replaced ("rows"), or all of them ("node").
    model: "in the clear" leaves the model unprotected: ε is then about the L_i of a weighted walk
    alone, released by `mechanism`, and the total is ε = ∞.
    schema: public scales of the columns, a `files.Schema`, the path of its file or its content,
    such as {"*": {"centre": 0, "spread": 1}}. Columns of arrays are x0, x1, … What is beyond 3
    spreads, or a range, is cut off, also of rows to predict.
    row_length: how long rows typically are, where they come in units of a typical spread.
    feature_bound: a public length, in the units that are trained in (those of the schema, where
    there is one); longer rows are shortened to it and counted in `clipped_rows_`
    (those to predict are taken as they are). What was scaled by the rows' own numbers before
    (a StandardScaler) leaks.
    max_rows: a public cap on the rows of a node (on their total weight, where they have weights),
    for the bounds of L_i. How many rows a node has counts as public, cap or not, unless
    protect="node": then it does not show.
    total_rows: M, a public number; without it, with protect="node", every node counts the same.
    model_privacy: a `ModelNoise` made by hand: clipping, noise and a cap on what each node adds to
    the model. Not together with epsilon, from which one follows; its ε is told at `delta`, or 1e-5.
    steps: how many updates; by default, with memory, until the gradient that the token knows is at
    most `tol` · penalty · ‖w‖ (`tol` is 1e-4, and so close are the coefficients), and stays
    so for a whole round of the network. With the paper's update: until doubling the walk changes
    the loss by less than `tol` (then 3e-3) times what a model of zeros loses. At most `max_steps`:
    by default a million or 50 per node, with memory 20 times that. Under privacy the loss is not
    looked at, and the length follows from public numbers.
    step_size: of the paper's update: a step size, or the constant c of c / k^0.75; by default from
    the constants L_i, under privacy from what was released and the public bounds.
    batch: how many of its rows, picked at random, a node looks at in an update; by default all.
    For big nodes: a few dozen are nearly as good as hundreds, and cost less.
    average: of the paper's update, the model that predicts: "tail" is the average over the
    last half of the walk, "all" the paper's over all of it, "none" the last model. "auto"
    is "tail", but "none" where epsilon protects the model, and with memory.
    standardise: train in units in which columns have mean 0 and deviation 1 (penalty and domain
    apply there). "auto" does unless something is private, for the units come from the rows.
    Columns of sparse rows are not shifted, only divided by their largest entry.
    domain: the set that the model is kept in, such as domains.Ball(10.0).
    laziness: the chance that a walk given by name stays put; cures a walk of period 2.
    warm_start: fit goes on with the token of the last fit; what was remembered of its rows is
    forgotten, the model is not.
    random_state: a number makes everything repeatable, releases too: these then protect nobody,
    and the ledger says "simulated". None draws noise exactly, from the operating system's entropy
    (the extra `privacy`), which takes some 40 µs a number.
    callback: called as callback(updates, loss) at the end of each round; `MlflowCallback()` logs
    every fit to MLflow.

    After fit: `coef_`, `intercept_`, `classes_`, `n_iter_` (updates), `trace_` (losses and
    messages on the way), `ledger_` (what was published, at what cost), `allotment_` (what became of
    ε), `model_noise_`, `graph_`, `walk_`, `update_`, `step_size_` (None where it found itself),
    `weights_` and `average_` (last model and average, the intercept last). Trace and counts of
    clipped rows are computed from the rows: they are for you, not for publishing.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> classifier = RandomWalkClassifier(random_state=0).fit(X, y)
    >>> classifier.score(X, y) > 0.97
    True
    """

    classes_: Array

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        nodes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train on rows X with labels y; `nodes` names the owner of each row.

        By default every row has a node of its own. sample_weight: how many rows each counts as.
        """
        check_parameters(self)
        go_on = self.warm_start and hasattr(self, "_state")
        rows, labels = self._checked(X, y, go_on)
        classes = np.unique(labels)
        if go_on and not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"with warm_start the classes must stay: they were {self.classes_}, now {classes}."
            )
        return self._learn(rows, labels, classes, nodes, sample_weight, go_on, one_call=False)

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        nodes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Let the token walk on over new rows by the paper's update: it keeps w, w̄ and k.

        Parameters
        ----------
        classes
            All labels there will be, needed in the first call. It makes `steps` updates, by
            default as many as there are nodes with new rows. What the nodes release of the new
            rows is charged in the ledger once more.
        """
        check_parameters(self)
        go_on = hasattr(self, "_state")
        rows, labels = self._checked(X, y, go_on)
        if not go_on and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        known = self.classes_ if go_on else np.unique(np.asarray(classes))
        if classes is not None and not np.array_equal(known, np.unique(np.asarray(classes))):
            raise ValueError(f"classes must be the same in every call: they were {known}.")
        unknown = np.setdiff1d(labels, known)
        if unknown.size:
            raise ValueError(f"y has labels {unknown} that are not among the classes {known}.")
        return self._learn(rows, labels, known, nodes, sample_weight, go_on, one_call=True)

    def _checked(self, X: ArrayLike, y: ArrayLike, go_on: bool) -> tuple[Array, Array]:
        rows, labels = validate_data(
            self, X, y, dtype=np.float64, accept_sparse="csr", reset=not go_on
        )
        check_classification_targets(labels)
        return rows, labels

    def _learn(
        self,
        X: Array,
        y: Array,
        classes: Array,
        nodes: ArrayLike | None,
        sample_weight: ArrayLike | None,
        go_on: bool,
        one_call: bool,
    ) -> Self:
        targets, loss = self._coded(y, classes)
        self._walk(X, targets, loss, nodes, sample_weight, go_on, one_call)
        self.classes_ = classes
        self.coef_, self.intercept_ = self._split()
        return self

    def _taken(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Loss]:
        rows, labels = self._checked(X, y, go_on=False)
        return rows, *self._coded(labels, np.unique(labels))

    def _coded(self, labels: Array, classes: Array) -> tuple[Array, Loss]:
        """The labels as the loss takes them, and the loss."""
        if len(classes) < 2:
            raise ValueError(f"a classifier needs at least 2 classes, y has 1 class: {classes}.")
        loss, codes = self._loss(len(classes)), np.searchsorted(classes, labels)
        return (codes if loss.takes == "class" else 2 * codes - 1).astype(float), loss

    def _loss(self, classes: int) -> Loss:
        loss = loss_of(self.loss, "classifier", "logistic")
        if classes > 2 and self.loss in (None, "logistic"):
            loss = Softmax()
        if (classes > 2) != (loss.takes == "class"):
            raise ValueError(
                f"{loss!r} does not tell {classes} classes apart: use loss='logistic', which is "
                "softmax for more than two."
            )
        return loss.for_classes(classes)

    def decision_function(self, X: ArrayLike) -> Array:
        """Scores: above 0 for the second of two classes; one per class for more."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: ArrayLike) -> Array:
        """The most likely class of each row."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    @available_if(_has_probabilities)
    def predict_proba(self, X: ArrayLike) -> Array:
        """The probability of each class, in the order of `classes_`."""
        from scipy.special import expit, softmax

        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: ArrayLike) -> Array:
        """The logarithms of the probabilities."""
        from scipy.special import log_expit, log_softmax

        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return np.asarray(log_softmax(scores, axis=1))
