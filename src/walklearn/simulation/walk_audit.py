"""Audit of a whole walk: a lower bound on the ε of a neighbour's view, and tests of the noise.

`privacy.audit` tests a single release. This audit runs the walk between two nodes, so that one of
them sees every model before and after the visits to the other. The audited node holds four rows.
The gradient of one of them, the canary, lies along the first axis and is clipped; the second data
set holds the opposite row. This is the largest possible difference: every contribution changes by
2C. The observer inverts the step,

    (w − w') / (γ c_i)  =  clipped sum + noise,

and sums the component along the axis over the visits: over the first T, which is the best test of
an honest walk, and over all visits. Many walks on each data set give a lower bound on ε, as in
`privacy.auditing`.

Further tests do not depend on ε. The observer knows the rows, so it can subtract the clipped sum.
The rest must be as large as the claimed noise, must not repeat, and must have fair signs that are
independent between coordinates, successive visits and successive walks (`privacy.noise_test`).
Honest noise fails any of these tests with probability below 1e-9. After T contributions the model
must stay the same.

>>> from walklearn.privacy import ModelNoise
>>> noise = ModelNoise.calibrate(epsilon=1.0, delta=1e-5, clip=1.0, max_contributions=3)
>>> audit = audit_walk(noise, delta=1e-5, walks=50, confidence=1 - 1e-9)
>>> audit.verdict, audit.draws, audit.noise_releases
('consistent', 'real', 300)
>>> audit_walk(ModelNoise(1.0, 0.01, 3), delta=1e-5, epsilon=1.0, walks=500, seed=1).verdict
'VIOLATED'
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from walklearn.checks import check_number, check_whole
from walklearn.graphs import complete
from walklearn.objectives import Problem
from walklearn.privacy import noise_test
from walklearn.privacy.accounting import special
from walklearn.privacy.accounting.printing import format_lower, format_upper
from walklearn.privacy.auditing import AuditResult, epsilon_lower_bound, largest_refutable
from walklearn.privacy.limits import check_delta, check_epsilon
from walklearn.privacy.model_noise import ModelNoise
from walklearn.simulation.arguments import Seed, root_of
from walklearn.simulation.batches import Position, ReferenceWalks, ReleasedWalks, WalkBatch
from walklearn.simulation.compiled_batches import CompiledWalks
from walklearn.streams import generators, replicate_seed
from walklearn.updates.sgd import Sgd
from walklearn.updates.step_sizes import ConstantStep
from walklearn.visit import Setting, init_token
from walklearn.walks import Uniform

Array = NDArray[np.float64]
#: Visit node 0: (problem, noise, step size, visits, walks) → the models before and after each
#: visit, both of shape (walks, visits, size). Every walk starts at w = 0.
ObserveVisits = Callable[[Problem, ModelNoise, float, int, int], tuple[Array, Array]]

# Copies that differ by less than this share of the deviation count as repeated.
_NEAR_COPY_SHARE = 2.0**-20
_CANARY_LENGTH = 200.0  # length of the canary in clips; at w = 0 its gradient is half as long
_DIMENSION, _ROWS = 3, 4
# The steps are so short that the canary's margin stays below this, and its gradient is clipped.
_MAX_MARGIN = 1e-3
_CHANGE_PAST_CAP = "the model changes after the last contribution"

# The batches of each engine, and the walks by default.
_ENGINES: dict[str, tuple[type[WalkBatch], int]] = {
    "compiled": (CompiledWalks, 20_000),
    "reference": (ReferenceWalks, 500),
    "released": (ReleasedWalks, 1_000),
}


@dataclass(frozen=True)
class WalkAudit(AuditResult):
    """Claim of a walk and the evidence against it.

    Parameters
    ----------
    noise
        The audited noise.
    epsilon, delta
        The claim.
    epsilon_lower, confidence
        A lower bound on ε at this δ, and the probability that it is true.
    walks, visits
        The number of walks on each data set, and of the visits of each walk to the node.
    engine, draws
        The name of the audited code, and "real" for noise from the system's entropy or "simulated".
    largest_refutable_epsilon
        The largest `epsilon_lower` that this many walks can give at this confidence.
    noise_releases, faults
        The number of contributions whose noise was tested, and the faults of the noise or the cap;
        an honest walk has a fault with probability below 1e-9.
    """

    noise: str
    walks: int
    visits: int
    engine: str

    @property
    def violated(self) -> bool:
        """True if the claim is refuted."""
        return self.epsilon_lower > self.epsilon or bool(self.faults)

    def __str__(self) -> str:
        return (
            f"{self.verdict}: a walk with {self.noise} claims ε = "
            f"{format_upper(self.epsilon, 4)} at δ = {format_upper(self.delta)}. Lower bound: "
            f"ε ≥ {format_lower(self.epsilon_lower, 4)} (engine "
            f"{self.engine}, {self.draws} noise, {self.walks} walks on each of two data sets, "
            f"{self.visits} visits each, confidence {self.confidence:g}). {self._limits}"
        )


def audit_walk(
    noise: ModelNoise,
    *,
    delta: float,
    epsilon: float | None = None,
    walks: int | None = None,
    revisits: int = 2,
    confidence: float = 0.999,
    seed: Seed = None,
    engine: Literal["released", "compiled", "reference"] | ObserveVisits | None = None,
) -> WalkAudit:
    """Test the claim that all contributions of a node to the model are (ε, δ) private.

    Parameters
    ----------
    noise, delta, epsilon
        The noise of the walk, and the claim: by default the ε of `noise` at this δ.
    walks, revisits
        The number of walks on each data set, by default 1,000 with real noise, 20,000 for
        "compiled" and 500 for "reference"; a walk visits the node `revisits` times its cap.
    confidence, seed
        The probability that the bound is true, and a number that makes noise simulated and the
        result reproducible.
    engine
        The code that runs the walks: "released" draws exact noise from the system's entropy, as
        real fits do; "compiled" and "reference" simulate. By default "released", with a seed
        "compiled". A function (problem, noise, step size, visits, walks) returns the models before
        and after each visit to node 0: `walklearn.node.observe_visits` audits a node of a network.

    Returns
    -------
    WalkAudit
        The claim beside a lower bound on ε, and the faults of the noise. A bound above the claim,
        or a fault, refutes it.
    """
    delta = check_delta(delta)
    claimed = noise.epsilon(delta) if epsilon is None else check_epsilon(epsilon)
    engine = engine or ("released" if seed is None else "compiled")
    observers = _observers(engine, seed)
    name = engine if isinstance(engine, str) else getattr(engine, "__name__", "function")
    if walks is None:
        walks = _ENGINES.get(name, _ENGINES["released"])[1]
    check_whole("walks", walks, minimum=4)
    check_number("confidence", confidence, above=0.0, below=1.0)
    cap = noise.max_contributions
    visits = cap * check_whole("revisits", revisits)
    observations = [
        _observe(_problem(noise.clip * sign), noise, visits, walks, observe)
        for sign, observe in zip((1.0, -1.0), observers, strict=True)
    ]
    moves, noises = zip(*observations, strict=True)
    first_moves, second_moves = (each[:, :, 0] for each in moves)
    failure_probability = (1.0 - confidence) / 2
    bounds = [
        epsilon_lower_bound(
            first_moves[:, :visit_count].sum(axis=1),
            second_moves[:, :visit_count].sum(axis=1),
            delta,
            failure_probability,
        )
        for visit_count in (cap, visits)
    ]
    all_noise = np.concatenate(noises)
    faults = _noise_faults(all_noise, noise)
    if any(each[:, cap:].any() for each in moves):
        faults += (_CHANGE_PAST_CAP,)
    return WalkAudit(
        noise=repr(noise),
        epsilon=claimed,
        delta=delta,
        epsilon_lower=max(bounds),
        walks=walks,
        visits=visits,
        confidence=confidence,
        engine=name,
        draws="simulated" if engine in ("compiled", "reference") else "real",
        largest_refutable_epsilon=largest_refutable(walks, delta, failure_probability / 8),
        noise_releases=all_noise[..., 0].size,
        faults=faults,
    )


def _problem(canary: float) -> Problem:
    """Return the problem of two nodes; the first row of node 0 is the canary, the rest is fixed."""
    X = np.random.default_rng(0).standard_normal((_ROWS + 1, _DIMENSION))
    X[0] = 0.0
    X[0, 0] = _CANARY_LENGTH * canary
    y = np.ones(_ROWS + 1)
    return Problem(X, y, aggregate="mean", node_of_row=[0] * _ROWS + [1])


def _observe(
    problem: Problem, noise: ModelNoise, visits: int, walks: int, observe: ObserveVisits
) -> tuple[Array, Array]:
    """Return the moves, (walks, visits, size), and the noise of contributions in grid steps."""
    reach = problem.row_factor(0) * noise.clip * (noise.noise_multiplier + _ROWS) * visits
    step = _MAX_MARGIN / (reach * _CANARY_LENGTH * noise.clip)
    before, after = observe(problem, noise, step, visits, walks)
    moves = (before - after) / step / noise.factor(problem, 0)
    cap = noise.max_contributions
    tested_walks = min(walks, -(-noise_test.RELEASES // cap))
    models = before[:tested_walks, :cap].reshape(-1, problem.size)
    sums = np.array([noise.clipped_on_grid(problem, 0, model) for model in models])
    noise_values = moves[:tested_walks, :cap].reshape(-1, problem.size) / noise.clip_step - sums
    return moves, np.rint(noise_values).reshape(tested_walks, cap, problem.size)


def _noise_faults(noise_values: Array, noise: ModelNoise) -> tuple[str, ...]:
    sizes = np.abs(noise_values)
    deviation = noise.standard_deviation / noise.clip_step
    # Rounding moves each row by less than a step, and the sum by half a step.
    rounding = _ROWS + 1.0
    probabilities = special.erf((sizes.ravel() + rounding) / (math.sqrt(2.0) * deviation))
    signs = np.where(sizes > rounding, np.sign(noise_values), 0.0)
    columns = range(noise_values.shape[-1])
    products = [signs[..., i] * signs[..., j] for i in columns for j in columns if i < j]
    for earlier, later in ((signs[:, :-1], signs[:, 1:]), (signs[:-1], signs[1:])):
        products += [earlier[..., i] * later[..., j] for i in columns for j in columns]
    return noise_test.faults(
        {
            noise_test.TOO_SMALL: [noise_test.small_noise_p_value(probabilities)],
            noise_test.REPEATED: [
                _repetition_p_value(sizes.ravel(), deviation, width)
                for width in (1.0, max(1.0, math.floor(_NEAR_COPY_SHARE * deviation)))
            ],
            noise_test.ONE_SIDED: [noise_test.sign_p_value(signs[..., i]) for i in columns],
            noise_test.DEPENDENT: [noise_test.sign_p_value(product) for product in products],
        }
    )


def _repetition_p_value(sizes: Array, deviation: float, width: float) -> float:
    """Return the p-value of repetitions of |noise| in cells of `width` steps."""
    # The density is largest at 0. A size stands for two numbers, to find reuse with a changed sign.
    max_probability = min(1.0, 2.0 * width / (math.sqrt(2.0 * math.pi) * deviation))
    return noise_test.repetition_p_value(sizes // width, np.full(sizes.size, max_probability))


def _observers(engine: str | ObserveVisits, seed: Seed) -> list[ObserveVisits]:
    """Return the functions that make the visits on each of the two data sets."""
    if not isinstance(engine, str):
        if seed is not None:
            raise ValueError(
                "this engine draws real noise, which takes no seed. Leave the seed out, or use "
                "engine 'compiled'."
            )
        return [engine, engine]
    if engine not in _ENGINES:
        raise ValueError(
            f"there is no engine {engine!r}. Choose one of {', '.join(_ENGINES)}; for a node of a "
            "network pass the function walklearn.node.observe_visits."
        )
    return [partial(_walk, _ENGINES[engine][0], root) for root in root_of(seed).spawn(2)]


def _walk(
    batch_class: type[WalkBatch],
    root: np.random.SeedSequence,
    problem: Problem,
    noise: ModelNoise,
    step: float,
    visits: int,
    walks: int,
) -> tuple[Array, Array]:
    """Return the models before and after each visit to node 0 of simulated walks."""
    setting = Setting(problem, Uniform(), Sgd(ConstantStep(step)), privacy=noise)
    streams = [generators(replicate_seed(root, number)) for number in range(walks)]
    start = Position(0, init_token(setting, np.zeros(problem.size)))
    batch: Any = batch_class(setting, complete(2), streams, [start] * walks)
    # On two nodes the token alternates: node 0 has it at every other step.
    models = batch.advance(2 * visits, after=range(1, 2 * visits + 1)).models[:, :, 0]
    after = models.swapaxes(0, 1)
    before = np.concatenate([np.zeros((walks, 1, problem.size)), after[:, 1:-1:2]], axis=1)
    return before, after[:, ::2]
