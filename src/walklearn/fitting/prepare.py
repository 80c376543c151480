"""How the rows of a call become the problem that a walk trains on.

The rows are brought to the units to train in, shortened where a public length is given, and placed
on the network. What is to be protected decides which of that may depend on the rows themselves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.fitting.parameters import target_of
from walklearn.fitting.terms import Terms, walk_of
from walklearn.fitting.training_state import State
from walklearn.fitting.units import AS_GIVEN, Units
from walklearn.graphs import Network, place_rows
from walklearn.objectives import Problem
from walklearn.objectives.linear.losses import Loss
from walklearn.objectives.linear.rows import check_weights
from walklearn.privacy.accounting.public_rows import RowLength
from walklearn.privacy.mechanisms.description import IN_THE_CLEAR
from walklearn.tables.encoding import Column, Encoding
from walklearn.tables.schema import Schema, from_rows_message
from walklearn.wording import listed

if TYPE_CHECKING:
    from walklearn.estimators.random_walk import RandomWalk

Array = NDArray[Any]


class Given(NamedTuple):
    """What a call brings: checked rows, targets as the loss takes them, owners and weights."""

    X: Array
    targets: Array
    loss: Loss
    nodes: ArrayLike | None
    sample_weight: ArrayLike | None


class Posed(NamedTuple):
    """The problem that a walk trains on, where its rows are, and the units they are in."""

    problem: Problem
    network: Network
    units: Units
    clipped_rows: int | None


def posed(
    estimator: RandomWalk, given: Given, terms: Terms, state: State, seed: np.random.SeedSequence
) -> Posed:
    """The problem of these rows; units and nodes that an earlier call knew stay as they were."""
    weights, clipped = check_weights(given.sample_weight, given.X.shape[0]), None
    units = _units(estimator, given, terms, weights, state.units)
    if estimator.feature_bound is None:
        rows = units.rows(given.X)
    else:  # in the units that it is trained in: there the claims take it to hold
        rows, clipped = units.clipped(given.X, estimator.feature_bound)
    network = place_rows(estimator.graph, given.nodes, given.X.shape[0], seed, state.network)
    problem = Problem(
        rows, units.target.to_training(given.targets),
        loss=given.loss.rescaled(units.target.spread), penalty=estimator.penalty,
        domain=estimator.domain, node_of_row=network.owners, nodes=network.graph.node_count,
        aggregate=terms.aggregate, empty_nodes="relay", sample_weight=weights,
        total_rows=estimator.total_rows if terms.aggregate == "mean" else None,
        assume_finite=True, copy=False,
    )  # fmt: skip
    return Posed(problem, network, units, clipped)


def terms_of(estimator: RandomWalk) -> Terms:
    """What the parameters ask to be protected, and the public facts that they and a schema say."""
    declared = estimator.schema is not None
    encoding = Encoding(tuple(declared_columns(estimator))) if declared else None
    length = RowLength.declared(encoding, estimator.row_length, estimator.feature_bound)
    if declared and estimator.epsilon is not None and length == RowLength():
        _check_all_declared(estimator)
    return Terms(
        epsilon=estimator.epsilon,
        delta=estimator.delta,
        protect=estimator.protect,
        in_the_clear=estimator.model == IN_THE_CLEAR,
        mechanism=estimator.mechanism,
        row_length=length.typical,
        feature_bound=length.bound,
        max_rows=estimator.max_rows,
        total_rows=estimator.total_rows,
        intercept=bool(estimator.fit_intercept),
        model_privacy=estimator.model_privacy,
        target=target_of(estimator),
    )


def _names_of_columns(estimator: RandomWalk) -> list[str]:
    """What the columns of X are called; those of an array x0, x1, …"""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{at}" for at in range(estimator.n_features_in_)] if names is None else list(names)


def _check_all_declared(estimator: RandomWalk) -> None:
    """Raise where ε needs the scale of a column that the schema says nothing of."""
    undeclared = Schema.of(estimator.schema).undeclared(_names_of_columns(estimator))
    if undeclared:
        raise ValueError(
            f"epsilon = {estimator.epsilon:g} needs a public scale of every column, and the schema "
            f"declares none of {listed(undeclared)}: add a centre and spread, or a range, known "
            "without looking at the rows ('*' stands for all that are not named)."
        )


def declared_columns(estimator: RandomWalk) -> list[Column]:
    """The columns of X as the schema declares them; a column it does not know is as it is."""
    names = _names_of_columns(estimator)
    schema = Schema.of(estimator.schema)
    target = estimator._target_name
    if target is not None and target not in names:
        schema = schema.without(target)
    if schema.categories:
        raise ValueError(
            f"the schema declares categories of {listed(list(schema.categories))}, and X has "
            "numbers only: encode columns of text first (files.read_rows(..., schema=...))."
        )
    return list(schema.applied(Encoding.of_numbers(names)).columns)


def _units(
    estimator: RandomWalk, given: Given, terms: Terms, weights: Array, known: Units | None
) -> Units:
    """The units of the first call, which later ones keep."""
    walk = walk_of(estimator.walk, estimator.laziness, terms.about_constants)
    private, intercept = terms.are_private(walk), bool(estimator.fit_intercept)
    _check_standardise(estimator, private, known)
    if known is not None:
        return known
    # A public scale of the target is for noise on the model: without any, it changes nothing.
    target = terms.target if terms.protects_model and terms.target is not None else AS_GIVEN
    if estimator.schema is not None:
        return replace(Units.declared(declared_columns(estimator), intercept), target=target)
    if private or estimator.standardise is False:
        return replace(Units.given(given.X.shape[1], intercept), target=target)
    counted = slice(None) if weights.all() else weights > 0
    targets = given.targets[counted] if estimator._predicts_numbers else None
    return Units.standard(given.X[counted], weights[counted], intercept, targets)


def _check_standardise(estimator: RandomWalk, private: bool, known: Units | None) -> None:
    """Refuse scales that come from the rows where that would leak, or a schema declares them."""
    if private and estimator.standardise is True:
        raise ValueError(
            "standardise=True takes the scale of every column from the rows, which would leak. "
            "Declare public scales (schema=...), and leave standardise out."
        )
    if private and estimator.schema is not None and Schema.of(estimator.schema).from_rows:
        raise ValueError(from_rows_message(Schema.of(estimator.schema)))
    if private and known is not None and known.from_rows:
        raise ValueError(
            "earlier rows were standardised by their own scale, which what is private now "
            "would rest on: begin with a new estimator."
        )
    if known is None and estimator.schema is not None and estimator.standardise is True:
        raise ValueError(
            "standardise=True takes the scale of columns from the rows, and the schema declares "
            "it: leave one of them out."
        )
