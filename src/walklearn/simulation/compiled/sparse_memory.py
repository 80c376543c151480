"""Updates that remember gradients over sparse rows, at the cost of their entries that are not 0.

A step of Saga changes all of w, by the penalty and by s, the sum of what is remembered. But
s itself changes where the row has entries only. So both are kept as factors: w = a·v − b·s, and

    w ← keep·w − push·x − pull·s,  s += change·x

becomes a ← keep·a,  b ← keep·b + pull,  v += ((b·change − push) / a)·x. As in `sparse`, v takes its
factors in now and then. The same column of v and s is side by side: an entry of a row that is not
0 then misses the cache once.
"""

from __future__ import annotations

import numpy as np

from walklearn.simulation.compiled.arithmetic import Array, Index, U, prefetch, slope_of
from walklearn.simulation.compiled.cached import inlined, kernel
from walklearn.simulation.compiled.found_step import SHARE, decayed, pace_of, raised_curvature
from walklearn.simulation.compiled.memory import Memory
from walklearn.simulation.compiled.paths import Records, Tokens
from walklearn.simulation.compiled.rows import Data
from walklearn.simulation.compiled.sparse import LARGEST, SETTLE_EVERY, SMALLEST, ask_for
from walklearn.simulation.compiled.walks import AHEAD


@inlined
def _settle(pairs: Array, at: Index, size: Index, a: float, b: float) -> None:
    """v becomes w."""
    for each in range(size):
        place = at + U(2) * U(each)
        pairs[place] = a * pairs[place] - b * pairs[place + U(1)]


@kernel
def remember_sparse(
    path: Array, data: Data, tokens: Tokens, memory: Memory, done: int, records: Records,
    shares: Array, pairs: Array,
) -> None:  # fmt: skip
    """Let every node of a path update the model, where each has one sparse row and one score.

    The tokens' `shrink` is a; shares: b; pairs: v and s, (tokens · size · 2,), flat.
    """
    steps, size, nodes = U(path.shape[1] - 1), U(data.dimension), U(data.offsets.size - 1)
    rows, columns, starts = data.rows, data.columns, data.starts
    targets, weights, offsets = data.targets, data.weights, data.offsets
    penalty, loss, parameter = data.penalty, data.loss, data.loss_parameter
    shrink, visits = tokens.shrink, tokens.visits
    seen, ages, squared_ages = memory.nodes, memory.ages, memory.squared_ages
    curvatures, wait, kept, squares = memory.curvatures, memory.wait, memory.kept, memory.squares
    given, after, kept_models = memory.step, records.after, records.models
    decay = np.log(2.0) / nodes
    settle_every = max(SETTLE_EVERY, data.dimension)
    for token in range(path.shape[0]):
        r = U(token)
        at, record = U(2) * r * size, 0
        for t in range(steps):
            k = U(t)
            i, number = U(path[r, k]), done + np.int64(t) + 1
            now = np.float64(number)
            ask_for(path, r, k, steps, offsets, starts, rows, columns, targets, weights)
            later = U(path[r, min(k + U(AHEAD), steps)])
            prefetch(visits, later)
            prefetch(squares, later)
            prefetch(kept, U(2) * (r * nodes + later))
            visits[i] += 1
            place = U(2) * (r * nodes + i)
            before, last = kept[place], kept[place + U(1)]
            a, b, target, weight = shrink[r], shares[r], targets[i], weights[i]
            of_v = of_s = 0.0
            for p in range(U(starts[i]), U(starts[i + U(1)])):
                x, column = rows[U(p)], at + U(2) * U(columns[U(p)])
                of_v += x * pairs[column]
                of_s += x * pairs[column + U(1)]
            score = a * of_v - b * of_s
            slope = slope_of(loss, parameter, score, target)
            kept[place], kept[place + U(1)] = slope, now
            first = last == 0.0
            if first:
                before = 0.0
                seen[r] += 1.0
            else:
                ages[r] += now - last
                squared_ages[r] += (now - last) * (now - last)
            gamma = given
            if given == 0.0:
                pace = pace_of(seen[r], ages[r], squared_ages[r])
                curvatures[r] = raised_curvature(
                    decayed(curvatures[r], pace, decay), loss, parameter, score, target, slope,
                    weight, squares[i],
                )  # fmt: skip
                total = curvatures[r] + penalty
                gamma = pace * SHARE / total if total > 0.0 else 0.0
            if seen[r] < wait[r]:
                gamma = 0.0
            change = weight * (slope - before)
            push, pull = gamma * change, 0.0 if first else gamma / seen[r]
            keep = 1.0 - gamma * penalty
            a, b = keep * a, keep * b + pull
            if not SMALLEST < abs(a) < LARGEST or number % settle_every == 0:
                _settle(pairs, at, size, a, b)
                a, b = 1.0, 0.0
            along = (b * change - push) / a
            for p in range(U(starts[i]), U(starts[i + U(1)])):
                x, column = rows[U(p)], at + U(2) * U(columns[U(p)])
                pairs[column] += along * x
                pairs[column + U(1)] += change * x
            shrink[r], shares[r] = a, b
            if record < after.size and after[record] == t + 1:
                for each in range(size):
                    column = at + U(2) * U(each)
                    kept_models[record, token, each] = a * pairs[column] - b * pairs[column + U(1)]
                record += 1
