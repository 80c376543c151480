"""f(w) of many models at once: a product of matrices, and the losses of its entries.

Every entry is summed in the same order whatever it is computed together with, so that f of a model
does not depend on who else is looked at: the same bits for any number of cores.
"""

from __future__ import annotations

import numpy as np

from walklearn.simulation.compiled.arithmetic import LOGISTIC, Array, U, exp_of_minus, value_of
from walklearn.simulation.compiled.cached import kernel
from walklearn.simulation.compiled.rows import Data

LANES = 4  # vectors that share a pass over a row
BLOCK_NUMBERS = 2048  # numbers of the models that take turns at a row, within the first-level cache


@kernel
def values(data: Data, vectors: Array, count: int) -> Array:
    """f(w) without its penalty for each of `count` models, one vector per score.

    For dense rows these are the lines of `vectors`, filled up with zeros to a multiple of `LANES`;
    for sparse ones its columns, so that an entry of a row meets all of them in one place.
    """
    width, outputs, nodes = U(data.dimension), data.outputs, data.offsets.size - 1
    rows, columns, starts, flat = data.rows, data.columns, data.starts, vectors.reshape(-1)
    targets, weights, form = data.targets, data.weights, data.form
    loss, parameter, total_vectors = data.loss, data.loss_parameter, vectors.size // data.dimension
    together = LANES * outputs
    block = max(1, BLOCK_NUMBERS // (data.dimension * together)) * together
    if len(form) > 2:
        block = total_vectors
    scores = np.empty(block, dtype=np.float64)
    result = np.zeros(count)
    for begin in range(0, total_vectors, block):
        end = min(total_vectors, begin + block)
        first, last = begin // outputs, min(end // outputs, count)
        for row in range(targets.size):
            if len(form) > 2:
                for v in range(block):
                    scores[U(v)] = 0.0
                for p in range(starts[row], starts[row + 1]):
                    x, base = rows[U(p)], U(columns[U(p)]) * U(block)
                    for v in range(block):
                        scores[U(v)] += x * flat[base + U(v)]
            else:
                base = U(row) * width
                for v in range(begin, end, LANES):
                    at = U(v) * width
                    s0 = s1 = s2 = s3 = 0.0
                    for a in range(width):
                        x = rows[base + U(a)]
                        s0 += x * flat[at + U(a)]
                        s1 += x * flat[at + width + U(a)]
                        s2 += x * flat[at + U(2) * width + U(a)]
                        s3 += x * flat[at + U(3) * width + U(a)]
                    place = U(v - begin)
                    scores[place], scores[place + U(1)] = s0, s1
                    scores[place + U(2)], scores[place + U(3)] = s2, s3
            weight, target = weights[row] / nodes, targets[row]
            if len(form) % 2 == 0:
                for m in range(first, last):
                    own = U((m - first) * outputs)
                    top = scores[own]
                    for c in range(1, outputs):
                        top = max(top, scores[own + U(c)])
                    total = 0.0
                    for c in range(outputs):
                        total += exp_of_minus(top - scores[own + U(c)])
                    result[m] += weight * (
                        np.log(total) + (top - scores[own + U(np.int64(target))])
                    )
            elif loss == LOGISTIC:  # a loop of its own, without a branch: the one to vectorise
                for m in range(last - first):
                    value = value_of(LOGISTIC, parameter, scores[U(m)], target)
                    result[U(first) + U(m)] += weight * value
            else:
                for m in range(last - first):
                    value = value_of(loss, parameter, scores[U(m)], target)
                    result[U(first) + U(m)] += weight * value
    return result
