"""Updates of tokens on their way.

With one row per node, and all rows in the cache, hops and updates are one loop: `walk_short_rows`,
`walk_long_rows`. Else paths are found first (`paths`): `update_one_row` asks for their rows before
they are needed, and `update_rows` is for any rows, picked or not, protected or not. Tokens of a
group take turns, so that what one waits for overlaps with what another calculates.

Nothing in here raises; arguments are checked before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walklearn.simulation.compiled.arithmetic import (
    Array,
    Index,
    U,
    next_uniform,
    prefetch,
    slope_of,
)
from walklearn.simulation.compiled.cached import inlined, kernel
from walklearn.simulation.compiled.paths import Chain, Records, Tokens, hop
from walklearn.simulation.compiled.rows import Data, descend, find_gradient

SHORT = 24  # a row of fewer numbers is summed sooner than the slope before it is known
AHEAD = 2  # visits between asking for a row and looking at it


class Noise(NamedTuple):
    """What protects the model; see `privacy.ModelNoise`. A clip of 0 stands for no protection."""

    clip: float
    by_row: bool  # each row is clipped, or their sum
    deviation: float
    most: int  # contributions per node
    factors: Array  # of clip and noise at each node
    lengths: Array  # ‖x‖ of each row, where these are clipped
    normals: Array  # (tokens, visits, size)
    contributions: Array  # (tokens, nodes), changed in place


@inlined
def _short_step(
    models: Array, sums: Array, at: Index, rows: Array, row: Index, following: Index, size: Index,
    keep: float, push: float, share: float,
) -> tuple[float, float]:  # fmt: skip
    """Let a short row move w, to keep·w − push·x: ‖w‖², and the score of the next row.

    The next row x' is known, so its score is summed in the same pass, as x'·(keep·w₀ − push·x) from
    the old w₀, which need not wait for the slope.
    """
    squared_norm, score, overlap = 0.0, 0.0, 0.0
    for a in range(size):
        w, x, later = models[at + U(a)], rows[row + U(a)], rows[following + U(a)]
        sums[at + U(a)] += share * w
        score += later * w
        overlap += later * x
        w = keep * w - push * x
        models[at + U(a)] = w
        squared_norm += w * w
    return squared_norm, keep * score - push * overlap


@inlined
def _long_step(
    models: Array, sums: Array, at: Index, rows: Array, row: Index, following: Index, size: Index,
    keep: float, push: float, share: float, low: float, high: float,
) -> tuple[float, float]:  # fmt: skip
    """What `_short_step` does, within a box, with the next score from the new w."""
    squared_norm, score = 0.0, 0.0
    boxed = low > -np.inf
    for a in range(size):
        w = models[at + U(a)]
        sums[at + U(a)] += share * w
        w = keep * w - push * rows[row + U(a)]
        if boxed:
            w = min(max(w, low), high)
        models[at + U(a)] = w
        squared_norm += w * w
        score += w * rows[following + U(a)]
    return squared_norm, score


@kernel
def walk_short_rows(
    chain: Chain, uniforms: Array, streams: Array, inverses: Array, data: Data, tokens: Tokens,
    gammas: Array, done: int, records: Records,
) -> None:  # fmt: skip
    """Let every token hop, and every node it comes to update it by its one short row.

    A hop does not wait for the update before it, so the processor works on both at once, and one
    token takes no longer than those of a group that take turns. For rows that fit the cache.
    """
    count, steps, draws = uniforms.shape
    indptr, indices, score = chain.indptr, chain.indices, chain.score.reshape(-1)
    kind, laziness, jumping = len(chain.kind), chain.laziness, chain.jump_probability
    stops, counts, alpha = chain.jump_stops, tokens.counts, chain.alpha
    nodes, own, estimated = U(chain.score.shape[1]), streams.size > 0, inverses.size > 0
    of_token = nodes if chain.score.shape[0] > 1 else U(0)
    factors = chain.scale.reshape(-1)
    rows, targets, weights, size = data.rows, data.targets, data.weights, U(data.dimension)
    penalty, radius = data.penalty, data.radius
    loss, parameter = data.loss, data.loss_parameter
    models, sums, visits = tokens.models, tokens.sums, tokens.visits
    after, kept_models, kept_sums = records.after, records.models, records.sums
    sent_by, asked_by = records.messages, records.questions
    for token in range(count):
        b = U(token)
        at, line, record = b * size, b * of_token, 0
        # What each update hands to the next stays in registers.
        i, previous, margin = U(tokens.nodes[b]), U(tokens.previous[b]), tokens.scores[b]
        shrink, messages, questions = tokens.shrink[b], tokens.messages[b], tokens.questions[b]
        for t in range(steps):
            k = U(t)
            for d in range(draws if own else 0):
                uniforms[b, k, d] = next_uniform(streams[b, i])
            j, sent, asked = hop(
                kind, indptr, indices, score, line, nodes, i, previous, uniforms, b, k, jumping,
                laziness, stops, counts, alpha,
            )  # fmt: skip
            messages += sent
            questions += asked
            visits[i] += 1
            factor, gamma = factors[line + i], gammas[k]
            if estimated:
                inverses[b] += factor
                factor *= (done + t + 1) / inverses[b]
            step_length = gamma * factor
            push = step_length * weights[i] * slope_of(loss, parameter, margin, targets[i])
            keep, share = (1.0 - step_length * penalty) * shrink, gamma * shrink
            squared_norm, margin = _short_step(
                models, sums, at, rows, i * size, j * size, size, keep, push, share
            )
            shrink = 1.0
            if squared_norm > radius * radius:
                shrink = radius / np.sqrt(squared_norm)
            margin *= shrink
            previous = i if j != i else previous
            i = j
            if record < after.size and after[record] == t + 1:
                sent_by[record, b], asked_by[record, b] = messages, questions
                for a in range(size):
                    kept_models[record, b, a] = shrink * models[at + U(a)]
                    kept_sums[record, b, a] = sums[at + U(a)]
                record += 1
        tokens.nodes[b], tokens.previous[b], tokens.scores[b] = i, previous, margin
        tokens.shrink[b], tokens.messages[b], tokens.questions[b] = shrink, messages, questions


@kernel
def walk_long_rows(
    chain: Chain, uniforms: Array, streams: Array, inverses: Array, data: Data, tokens: Tokens,
    gammas: Array, done: int, records: Records, group: int,
) -> None:  # fmt: skip
    """What `walk_short_rows` does, for longer rows, and in a box.

    Tokens of a group take turns: what one is waiting for is longer than a hop. The models of a
    group should fit the first-level cache.
    """
    count, steps, draws = uniforms.shape
    indptr, indices, law = chain.indptr, chain.indices, chain.score.reshape(-1)
    kind, laziness, jumping = len(chain.kind), chain.laziness, chain.jump_probability
    stops, counts, alpha = chain.jump_stops, tokens.counts, chain.alpha
    nodes, own, estimated = U(chain.score.shape[1]), streams.size > 0, inverses.size > 0
    of_token = nodes if chain.score.shape[0] > 1 else U(0)
    factors = chain.scale.reshape(-1)
    rows, targets, weights, size = data.rows, data.targets, data.weights, U(data.dimension)
    penalty, low, high, radius = data.penalty, data.low, data.high, data.radius
    loss, parameter = data.loss, data.loss_parameter
    here, previous, scores, shrink = tokens.nodes, tokens.previous, tokens.scores, tokens.shrink
    messages, questions, visits = tokens.messages, tokens.questions, tokens.visits
    models, sums = tokens.models, tokens.sums
    after, kept_models, kept_sums = records.after, records.models, records.sums
    sent_by, asked_by = records.messages, records.questions
    for begin in range(0, count, group):
        end, record = min(count, begin + group), 0
        for t in range(steps):
            k, gamma = U(t), gammas[U(t)]
            for token in range(begin, end):
                b = U(token)
                at, line, i = b * size, b * of_token, U(here[b])
                for d in range(draws if own else 0):
                    uniforms[b, k, d] = next_uniform(streams[b, i])
                j, sent, asked = hop(
                    kind, indptr, indices, law, line, nodes, i, U(previous[b]), uniforms, b, k,
                    jumping, laziness, stops, counts, alpha,
                )  # fmt: skip
                messages[b] += sent
                questions[b] += asked
                visits[i] += 1
                factor = factors[line + i]
                if estimated:
                    inverses[b] += factor
                    factor *= (done + t + 1) / inverses[b]
                step_length = gamma * factor
                push = step_length * weights[i] * slope_of(loss, parameter, scores[b], targets[i])
                keep, share = (1.0 - step_length * penalty) * shrink[b], gamma * shrink[b]
                squared_norm, score = _long_step(
                    models, sums, at, rows, i * size, j * size, size, keep, push, share, low, high
                )
                inside = 1.0
                if squared_norm > radius * radius:
                    inside = radius / np.sqrt(squared_norm)
                shrink[b], scores[b] = inside, score * inside
                # Last: written before the row is read they take 7 of 45 ns.
                previous[b] = np.int64(i) if j != i else previous[b]
                here[b] = j
            if record < after.size and after[record] == t + 1:
                for each in range(begin, end):
                    at = U(each) * size
                    sent_by[record, each], asked_by[record, each] = messages[each], questions[each]
                    for a in range(size):
                        kept_models[record, each, a] = shrink[each] * models[at + U(a)]
                        kept_sums[record, each, a] = sums[at + U(a)]
                record += 1


@kernel
def update_one_row(
    path: Array, scale: Array, inverses: Array, data: Data, tokens: Tokens, gammas: Array,
    done: int, records: Records, group: int,
) -> None:  # fmt: skip
    """Let every node of a path update the model, where each has one row and one score.

    For rows that do not fit the cache, and are asked for ahead. group: how many tokens take turns;
    their models should fit the first-level cache.
    """
    count, steps, size = path.shape[0], gammas.size, U(data.dimension)
    rows, targets, weights = data.rows, data.targets, data.weights
    models, sums, scores, shrink = tokens.models, tokens.sums, tokens.scores, tokens.shrink
    visits, after = tokens.visits, records.after
    kept_models, kept_sums = records.models, records.sums
    penalty, loss, parameter = data.penalty, data.loss, data.loss_parameter
    low, high, radius = data.low, data.high, data.radius
    short = size < U(SHORT) and low == -np.inf
    factors = scale.reshape(-1)
    of_token = U(scale.shape[1] if scale.shape[0] > 1 else 0)
    estimated = inverses.size > 0
    slopes = np.empty(group)
    for begin in range(0, count, group):
        end = min(count, begin + group)
        record = 0
        for t in range(steps):
            gamma = gammas[U(t)]
            for token in range(begin + 1, end):  # side by side; the first need not wait for them
                b = U(token)
                target = targets[U(path[b, U(t)])]
                slopes[U(token - begin)] = slope_of(loss, parameter, scores[b], target)
            for token in range(begin, end):
                b = U(token)
                i, j = U(path[b, U(t)]), U(path[b, U(t + 1)])
                ahead = U(path[b, U(min(t + AHEAD, steps))])
                prefetch(targets, ahead)
                prefetch(visits, ahead)
                prefetch(weights, ahead)
                prefetch(factors, b * of_token + ahead)
                prefetch(rows, ahead * size)
                prefetch(rows, ahead * size + U(8))  # the rest is fetched once two are seen
                visits[i] += 1
                factor = factors[b * of_token + i]
                if estimated:
                    inverses[b] += factor
                    factor *= (done + t + 1) / inverses[b]
                step_length = gamma * factor
                if token > begin:
                    slope = slopes[U(token - begin)]
                else:
                    slope = slope_of(loss, parameter, scores[b], targets[i])
                push = step_length * weights[i] * slope
                keep, share = (1.0 - step_length * penalty) * shrink[b], gamma * shrink[b]
                at, row, following = b * size, i * size, j * size
                if short:
                    squared_norm, score = _short_step(
                        models, sums, at, rows, row, following, size, keep, push, share
                    )
                else:
                    squared_norm, score = _long_step(
                        models, sums, at, rows, row, following, size, keep, push, share, low, high
                    )
                inside = 1.0
                if squared_norm > radius * radius:
                    inside = radius / np.sqrt(squared_norm)
                shrink[b], scores[b] = inside, score * inside
            if record < after.size and after[record] == t + 1:
                for each in range(begin, end):
                    at = U(each) * size
                    for a in range(size):
                        kept_models[record, each, a] = shrink[each] * models[at + U(a)]
                        kept_sums[record, each, a] = sums[at + U(a)]
                record += 1


@inlined
def _protect(
    clip: float, deviation: float, shows: bool, normals: Array, b: Index, t: Index, gradient: Array
) -> None:
    """Clip the gradient and add noise, or set it to 0 if the node has spent its contributions.

    A clip of 0 leaves the gradient unclipped, because its rows were clipped. A gradient that is not
    finite counts as 0.
    """
    squared_norm = 0.0
    for a in range(gradient.size):
        squared_norm += gradient[U(a)] * gradient[U(a)]
    factor = clip / max(np.sqrt(squared_norm), clip) if clip > 0.0 else 1.0
    finite = np.isfinite(squared_norm)
    for a in range(gradient.size):
        kept = factor * gradient[U(a)] if finite else 0.0
        gradient[U(a)] = kept + deviation * normals[b, t, U(a)] if shows else 0.0


@kernel
def update_rows(
    path: Array, scale: Array, inverses: Array, data: Data, tokens: Tokens, gammas: Array,
    done: int, records: Records, uniforms: Array, walk_draws: int, noise: Noise,
) -> None:  # fmt: skip
    """Let every node of a path update the model.

    walk_draws: how many of a visit's uniforms were the walk's; the others pick rows.
    """
    steps, width, outputs = gammas.size, U(data.dimension), data.outputs
    size = width * U(outputs)
    rows, columns, starts = data.rows, data.columns, data.starts
    targets, weights, offsets = data.targets, data.weights, data.offsets
    batch, loss, parameter, penalty = data.batch, data.loss, data.loss_parameter, data.penalty
    form = data.form
    low, high, radius = data.low, data.high, data.radius
    models, sums, visits = tokens.models, tokens.sums, tokens.visits
    after, kept_models, kept_sums = records.after, records.models, records.sums
    by_row, most, lengths = noise.by_row, noise.most, noise.lengths
    clip, deviation, noise_factors = noise.clip, noise.deviation, noise.factors
    normals, contributions = noise.normals, noise.contributions
    factors = scale.reshape(-1)
    of_token = U(scale.shape[1] if scale.shape[0] > 1 else 0)
    gradient = np.empty(data.dimension * outputs, dtype=np.float64)
    scores = np.empty(outputs, dtype=np.float64)
    drawn, draws, skipped = uniforms.reshape(-1), U(uniforms.shape[2]), U(walk_draws)
    for token in range(path.shape[0]):
        b = U(token)
        at, record = b * size, 0
        for t in range(steps):
            k = U(t)
            i = U(path[b, k])
            visits[i] += 1
            unit = noise_factors[i] if clip > 0.0 else 0.0
            row_clip, node_clip = (unit * clip, 0.0) if by_row else (0.0, unit * clip)
            find_gradient(
                rows, columns, starts, targets, weights, offsets, i, drawn,
                (b * U(steps) + k) * draws + skipped, batch, loss, parameter, width, outputs, form,
                models, at, gradient, scores, lengths, row_clip,
            )  # fmt: skip
            factor = factors[b * of_token + i]
            if inverses.size:
                inverses[b] += factor
                factor *= (done + t + 1) / inverses[b]
            if clip > 0.0:
                shows = contributions[b, i] < most
                contributions[b, i] += shows
                _protect(node_clip, unit * deviation, shows, normals, b, k, gradient)
                factor = factor if shows else 0.0  # a step of length 0 leaves w unchanged
            descend(
                gammas[k], gammas[k] * factor, penalty, low, high, radius, size, models, sums, at,
                gradient,
            )  # fmt: skip
            if record < after.size and after[record] == t + 1:
                for a in range(size):
                    kept_models[record, token, a] = models[at + U(a)]
                    kept_sums[record, token, a] = sums[at + U(a)]
                record += 1
