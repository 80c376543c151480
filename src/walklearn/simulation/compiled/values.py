"""f(w) of many models at once: a product of matrices, and the losses of its entries.

`LANES` rows are looked at together, turned so that the same feature of all of them is in one place,
for all models one after the other. A logistic loss is max(0, −m) + ln(1 + t) with t = e^(−|m|), and

    Σ ln(1 + t_r) = ln Π (1 + t_r) = ln(1 + p)      with p ← p + t (1 + p), beginning at 0,

so that there is one logarithm for many rows. Small t keep all their digits that way. The loss of
softmax is such a sum as well, over the other classes.

Every entry is summed in the same order whatever it is computed together with, so that f of a model
does not depend on who else is looked at: the same bits for any number of cores.
"""

from __future__ import annotations

import numpy as np

from walklearn.simulation.compiled.arithmetic import (
    LOGISTIC,
    Array,
    Index,
    U,
    exp_of_minus,
    value_of,
)
from walklearn.simulation.compiled.cached import exact_helper, inlined, kernel
from walklearn.simulation.compiled.rows import Data

LANES = 32  # rows that are looked at together
TOGETHER = 4  # models that are looked at together, and vectors that take turns
BLOCK = 64  # models for which rows are turned once
LARGEST_POWER = 1000  # of 2 that a product may reach


@inlined
def _turn(rows: Array, first: int, here: int, width: Index, turned: Array) -> None:
    """Rows side by side: turned[a, r]."""
    for r in range(here):
        base = U(first + r) * width
        for a in range(width):
            turned[U(a) * U(LANES) + U(r)] = rows[base + U(a)]


@inlined
def _multiply(
    turned: Array, vectors: Array, at: Index, width: Index, scores: Array, to: Index
) -> None:
    """The scores of two vectors, from vectors[at] on, for the rows that are turned."""
    other, following = to + U(LANES), at + width
    for r in range(2 * LANES):
        scores[to + U(r)] = 0.0
    whole = width - width % U(4)
    for step in range(U(0), whole, U(4)):
        v, w, x = at + U(step), following + U(step), U(step) * U(LANES)
        v0, v1, v2, v3 = (
            vectors[v], vectors[v + U(1)], vectors[v + U(2)], vectors[v + U(3)],
        )  # fmt: skip
        w0, w1, w2, w3 = (
            vectors[w], vectors[w + U(1)], vectors[w + U(2)], vectors[w + U(3)],
        )  # fmt: skip
        for r in range(LANES):
            x0, x1 = turned[x + U(r)], turned[x + U(LANES + r)]
            x2, x3 = turned[x + U(2 * LANES + r)], turned[x + U(3 * LANES + r)]
            scores[to + U(r)] += v0 * x0 + v1 * x1 + v2 * x2 + v3 * x3
            scores[other + U(r)] += w0 * x0 + w1 * x1 + w2 * x2 + w3 * x3
    for a in range(whole, width):
        v0, w0, x = vectors[at + U(a)], vectors[following + U(a)], U(a) * U(LANES)
        for r in range(LANES):
            scores[to + U(r)] += v0 * turned[x + U(r)]
            scores[other + U(r)] += w0 * turned[x + U(r)]


@exact_helper
def _gather_four(
    rows: Array, columns: Array, starts: Array, first: int, here: int, vectors: Array, at: Index,
    scores: Array, to: Index,
) -> None:  # fmt: skip
    """The scores of four vectors for sparse rows; from vectors[at] on these take turns."""
    for r in range(here):
        s0 = s1 = s2 = s3 = 0.0
        for p in range(U(starts[U(first + r)]), U(starts[U(first + r + 1)])):
            x, v = rows[U(p)], at + U(4) * U(columns[U(p)])
            s0 += x * vectors[v]
            s1 += x * vectors[v + U(1)]
            s2 += x * vectors[v + U(2)]
            s3 += x * vectors[v + U(3)]
        scores[to + U(r)], scores[to + U(LANES + r)] = s0, s1
        scores[to + U(2 * LANES + r)], scores[to + U(3 * LANES + r)] = s2, s3


@exact_helper
def _gather_one(
    rows: Array, columns: Array, starts: Array, first: int, here: int, vectors: Array, at: Index,
    scores: Array, to: Index,
) -> None:  # fmt: skip
    """The scores of one vector for sparse rows, each summed as if there were four."""
    for r in range(here):
        score = 0.0
        for p in range(U(starts[U(first + r)]), U(starts[U(first + r + 1)])):
            score += rows[U(p)] * vectors[at + U(columns[U(p)])]
        scores[to + U(r)] = score


@inlined
def _lose(
    loss: int, parameter: float, form: tuple[int, ...], outputs: int, scores: Array, at: Index,
    targets: Array, first: int, here: int, sums: Array, products: Array, to: Index, tops: Array,
    others: Array,
) -> None:  # fmt: skip
    """Add the losses of some rows to what is summed, and to the products, of one model."""
    if len(form) % 2 == 0:
        tops[:], others[:] = -np.inf, 0.0
        for c in range(outputs):
            score = at + U(c * LANES)
            for r in range(here):
                tops[U(r)] = max(tops[U(r)], scores[score + U(r)])
        for c in range(outputs):
            score = at + U(c * LANES)
            for r in range(here):
                others[U(r)] += exp_of_minus(tops[U(r)] - scores[score + U(r)])
        for r in range(here):
            own = at + U(np.int64(targets[U(first + r)]) * LANES + r)
            sums[to + U(r)] += tops[U(r)] - scores[own]
            products[to + U(r)] += (others[U(r)] - 1.0) * (1.0 + products[to + U(r)])
    elif loss == LOGISTIC:  # a loop of its own, without a branch: the one to vectorise
        for r in range(here):
            margin = targets[U(first + r)] * scores[at + U(r)]
            size = abs(margin)
            sums[to + U(r)] += 0.5 * (size - margin)
            products[to + U(r)] += exp_of_minus(size) * (1.0 + products[to + U(r)])
    else:
        for r in range(here):
            score = scores[at + U(r)]
            sums[to + U(r)] += value_of(loss, parameter, score, targets[U(first + r)])


@inlined
def _total(
    weights: Array, first: int, here: int, alike: bool, sums: Array, products: Array, to: Index
) -> float:
    """What was summed and multiplied of one model, which begins anew."""
    total, product, weight = 0.0, 0.0, weights[U(first)]
    if alike:
        for r in range(LANES):
            total += sums[to + U(r)]
            product += products[to + U(r)] * (1.0 + product)
        total = weight * (total + np.log1p(product))
    else:
        for r in range(here):
            logarithm = np.log1p(products[to + U(r)])
            total += weights[U(first + r)] * (sums[to + U(r)] + logarithm)
    for r in range(LANES):
        sums[to + U(r)], products[to + U(r)] = 0.0, 0.0
    return total


@kernel
def values(data: Data, vectors: Array, count: int) -> Array:
    """f(w) without its penalty for each of `count` models, one vector per score.

    For dense rows these are the lines of `vectors`, and there is one more where they are odd. For
    sparse ones every four of them take turns, number by number, so that an entry of a row meets all
    in one place; those that are left follow one after the other.
    """
    width, outputs, nodes = U(data.dimension), data.outputs, data.offsets.size - 1
    rows, columns, starts, flat = data.rows, data.columns, data.starts, vectors.reshape(-1)
    targets, weights, form = data.targets, data.weights, data.form
    loss, parameter, row_count = data.loss, data.loss_parameter, targets.size
    sparse = len(form) > 2
    at_once = LARGEST_POWER // int(LANES * np.ceil(np.log2(max(outputs, 2))))  # turns of rows
    turned = np.zeros(0 if sparse else LANES * data.dimension)
    scores = np.zeros((TOGETHER * outputs + 1) * LANES)
    sums, products = np.zeros(BLOCK * LANES), np.zeros(BLOCK * LANES)
    tops, others = np.empty(LANES), np.empty(LANES)
    result = np.zeros(count)
    for begin in range(0, count, BLOCK):
        end, turns = min(count, begin + BLOCK), 0
        for first in range(0, row_count, LANES):
            here = min(LANES, row_count - first)
            if not sparse:
                _turn(rows, first, here, width, turned)
            for model in range(begin, end, TOGETHER):
                models = min(TOGETHER, end - model)
                lines = models * outputs
                fours = lines // 4 * 4 if sparse else 0
                for line in range(0, fours, 4):
                    at, to = U(model * outputs + line) * width, U(line * LANES)
                    _gather_four(rows, columns, starts, first, here, flat, at, scores, to)
                for line in range(fours, lines, 1 if sparse else 2):
                    at, to = U(model * outputs + line) * width, U(line * LANES)
                    if sparse:
                        _gather_one(rows, columns, starts, first, here, flat, at, scores, to)
                    else:
                        _multiply(turned, flat, at, width, scores, to)
                for m in range(models):
                    at, to = U(m * outputs * LANES), U((model + m - begin) * LANES)
                    _lose(
                        loss, parameter, form, outputs, scores, at, targets, first, here, sums,
                        products, to, tops, others,
                    )  # fmt: skip
            turns += 1
            following, alike = min(row_count, first + 2 * LANES), True
            for r in range(first, min(row_count, first + LANES)):
                alike = alike and weights[U(r)] == weights[U(first)]
            goes_on = alike and turns < at_once and first + LANES < row_count
            for r in range(first + LANES, following):
                goes_on = goes_on and weights[U(r)] == weights[U(first)]
            if not goes_on:
                turns = 0
                for m in range(begin, end):
                    to = U((m - begin) * LANES)
                    result[m] += _total(weights, first, here, alike, sums, products, to)
    return result / nodes
