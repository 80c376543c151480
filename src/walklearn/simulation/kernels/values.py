"""f(w) of many models at once: a matrix product, and the losses of its entries.

`LANES` rows are processed together, transposed, so that one feature of all of them is contiguous.
A logistic loss is max(0, −m) + ln(1 + t) with t = e^(−|m|), and many rows need one logarithm,

    Σ ln(1 + t_r) = ln Π (1 + t_r) = ln(1 + p)      with p ← p + t (1 + p), starting at 0,

in which small t keep all their digits. The loss of softmax is such a sum, too, over the other
classes. The order of each sum is fixed, so f of a model has the same bits for any number of cores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walklearn.simulation.kernels.arithmetic import Array, U, exp_of_minus
from walklearn.simulation.kernels.compilation import by_type, exact_helper, inlined, kernel
from walklearn.simulation.kernels.losses import (
    LOGISTIC,
    BuiltIn,
    FromFunctions,
    Rescaled,
    Softmax,
    outputs_of,
    value_of,
)
from walklearn.simulation.kernels.rows import DenseRows, SparseRows

LANES = 32  # rows that are processed together
TOGETHER = 4  # models that are processed together, and vectors that are interleaved
BLOCK = 64  # models for which rows are transposed once
MAX_POWER = 1000  # the largest exponent of 2 that a product may reach


class Space(NamedTuple):
    """Work space of `values`."""

    transposed: Array  # rows side by side
    scores: Array
    sums: Array  # of losses, by model and lane
    products: Array
    max_scores: Array  # largest scores
    exponential_sums: Array  # sums of exponentials


@by_type
def find_scores(rows, first, lanes, vectors, model, lines, space):
    """Compute the scores of some lines of `vectors`, those of a few models, for some rows."""


@by_type
def transpose(rows, first, lanes, space):
    """Store rows side by side if they are dense."""


@transpose.version(DenseRows)
def _transpose_dense(rows, first, lanes, space):
    for r in range(lanes):
        base = U(first + r) * U(rows.width)
        for a in range(U(rows.width)):
            space.transposed[U(a) * U(LANES) + U(r)] = rows.entries[base + U(a)]


@transpose.version(SparseRows)
def _transpose_nothing(rows, first, lanes, space):
    pass


@find_scores.version(DenseRows)
def _multiply(rows, first, lanes, vectors, line, lines, space):
    x, scores, width = space.transposed, space.scores, U(rows.width)
    unrolled_width = width - width % U(4)
    for pair in range(0, lines, 2):
        offset, out = U(line + pair) * width, U(pair * LANES)
        other, next_vector = out + U(LANES), offset + width
        for r in range(2 * LANES):
            scores[out + U(r)] = 0.0
        for step in range(U(0), unrolled_width, U(4)):
            v, w, c = offset + U(step), next_vector + U(step), U(step) * U(LANES)
            v0, v1, v2, v3 = vectors[v], vectors[v + U(1)], vectors[v + U(2)], vectors[v + U(3)]
            w0, w1, w2, w3 = vectors[w], vectors[w + U(1)], vectors[w + U(2)], vectors[w + U(3)]
            for r in range(LANES):
                x0, x1 = x[c + U(r)], x[c + U(LANES + r)]
                x2, x3 = x[c + U(2 * LANES + r)], x[c + U(3 * LANES + r)]
                scores[out + U(r)] += v0 * x0 + v1 * x1 + v2 * x2 + v3 * x3
                scores[other + U(r)] += w0 * x0 + w1 * x1 + w2 * x2 + w3 * x3
        for a in range(unrolled_width, width):
            v0, w0, c = vectors[offset + U(a)], vectors[next_vector + U(a)], U(a) * U(LANES)
            for r in range(LANES):
                scores[out + U(r)] += v0 * x[c + U(r)]
                scores[other + U(r)] += w0 * x[c + U(r)]


@exact_helper
def _gather_four(rows, first, lanes, vectors, offset, scores, out):
    """Compute the scores of four vectors, interleaved from vectors[offset] on, for sparse rows."""
    for r in range(lanes):
        s0 = s1 = s2 = s3 = 0.0
        for p in range(U(rows.starts[U(first + r)]), U(rows.starts[U(first + r + 1)])):
            x, v = rows.entries[U(p)], offset + U(4) * U(rows.columns[U(p)])
            s0 += x * vectors[v]
            s1 += x * vectors[v + U(1)]
            s2 += x * vectors[v + U(2)]
            s3 += x * vectors[v + U(3)]
        scores[out + U(r)], scores[out + U(LANES + r)] = s0, s1
        scores[out + U(2 * LANES + r)], scores[out + U(3 * LANES + r)] = s2, s3


@exact_helper
def _gather_one(rows, first, lanes, vectors, offset, scores, out):
    """Compute the scores of one vector for sparse rows, summed in the order of `_gather_four`."""
    for r in range(lanes):
        score = 0.0
        for p in range(U(rows.starts[U(first + r)]), U(rows.starts[U(first + r + 1)])):
            score += rows.entries[U(p)] * vectors[offset + U(rows.columns[U(p)])]
        scores[out + U(r)] = score


@find_scores.version(SparseRows)
def _gather(rows, first, lanes, vectors, line, lines, space):
    fours = lines // 4 * 4
    for each in range(0, fours, 4):
        offset = U(line + each) * U(rows.width)
        _gather_four(rows, first, lanes, vectors, offset, space.scores, U(each * LANES))
    for each in range(fours, lines):
        offset = U(line + each) * U(rows.width)
        _gather_one(rows, first, lanes, vectors, offset, space.scores, U(each * LANES))


@by_type
def add_losses(loss, offset, targets, first, lanes, space, out):
    """Add the losses of some rows to the sums and the products of one model."""


@add_losses.version(BuiltIn, FromFunctions, Rescaled)
def _add_values(loss, offset, targets, first, lanes, space, out):
    scores, sums, products = space.scores, space.sums, space.products
    if loss.code == LOGISTIC:  # a separate loop without a branch, which vectorises
        for r in range(lanes):
            margin = targets[U(first + r)] * scores[offset + U(r)]
            size = abs(margin)
            sums[out + U(r)] += 0.5 * (size - margin)
            products[out + U(r)] += exp_of_minus(size) * (1.0 + products[out + U(r)])
    else:
        for r in range(lanes):
            sums[out + U(r)] += value_of(loss, scores[offset + U(r)], targets[U(first + r)])


@add_losses.version(Softmax)
def _add_softmax(loss, offset, targets, first, lanes, space, out):
    scores, max_scores, exponential_sums, products = (
        space.scores,
        space.max_scores,
        space.exponential_sums,
        space.products,
    )
    max_scores[:], exponential_sums[:] = -np.inf, 0.0
    for c in range(loss.classes):
        score = offset + U(c * LANES)
        for r in range(lanes):
            max_scores[U(r)] = max(max_scores[U(r)], scores[score + U(r)])
    for c in range(loss.classes):
        score = offset + U(c * LANES)
        for r in range(lanes):
            exponential_sums[U(r)] += exp_of_minus(max_scores[U(r)] - scores[score + U(r)])
    for r in range(lanes):
        target_score = offset + U(np.int64(targets[U(first + r)]) * LANES + r)
        space.sums[out + U(r)] += max_scores[U(r)] - scores[target_score]
        products[out + U(r)] += (exponential_sums[U(r)] - 1.0) * (1.0 + products[out + U(r)])


@inlined
def _total(weights, first, lanes, are_equal, space, out):
    """Return the sum of the losses of one model, and start a new sum."""
    sums, products, total, product = space.sums, space.products, 0.0, 0.0
    if are_equal:
        for r in range(LANES):
            total += sums[out + U(r)]
            product += products[out + U(r)] * (1.0 + product)
        total = weights[U(first)] * (total + np.log1p(product))
    else:
        for r in range(lanes):
            logarithm = np.log1p(products[out + U(r)])
            total += weights[U(first + r)] * (sums[out + U(r)] + logarithm)
    for r in range(LANES):
        sums[out + U(r)], products[out + U(r)] = 0.0, 0.0
    return total


@inlined
def _are_equal(weights, first, last):
    result = True
    for r in range(first, min(last, weights.size)):
        result = result and weights[U(r)] == weights[U(first)]
    return result


@kernel
def values(data, vectors, result, space):
    """Compute f(w) without its penalty for each of `result.size` models, one vector per score.

    For dense rows `vectors` has a line for each, plus one if their number is odd. For sparse rows
    every four of them interleave; the rest follow one after the other.
    """
    outputs, weights, count = outputs_of(data.loss), data.weights, data.targets.size
    max_turns = MAX_POWER // int(LANES * np.ceil(np.log2(max(outputs, 2))))
    for begin in range(0, result.size, BLOCK):
        end, turns = min(result.size, begin + BLOCK), 0
        for first in range(0, count, LANES):
            lanes = min(LANES, count - first)
            transpose(data.rows, first, lanes, space)
            for model in range(begin, end, TOGETHER):
                models = min(TOGETHER, end - model)
                find_scores(
                    data.rows, first, lanes, vectors, model * outputs, models * outputs, space
                )
                for m in range(models):
                    offset, out = U(m * outputs * LANES), U((model + m - begin) * LANES)
                    add_losses(data.loss, offset, data.targets, first, lanes, space, out)
            turns += 1
            are_equal = _are_equal(weights, first, first + LANES)
            if not (
                turns < max_turns
                and first + LANES < count
                and _are_equal(weights, first, first + 2 * LANES)
            ):
                turns = 0
                for m in range(begin, end):
                    out = U((m - begin) * LANES)
                    result[m] += _total(weights, first, lanes, are_equal, space, out)
    for m in range(result.size):
        result[m] /= data.offsets.size - 1
