"""Does a whole walk keep its word? A lower bound on the ε of what a neighbour sees of it.

`privacy.audit` tests a single release. Here the token walks for real: between two neighbours, so
that one of them sees every model before and after the other's visits. The other holds a few rows,
and one of them is the canary: long enough that its gradient is clipped, along the first axis, and
in the second data set the same row the other way round. That is as far apart as two data sets can
be: every contribution moves by 2C. The observer undoes the step,

    ((w − w')/γ − λw) / c_i  =  the clipped sum + noise,

takes the part along the axis, and adds it up over the visits: over the first T, which is the best
test of an honest walk, and over all, since a walk that does not keep its cap goes on telling. From
many walks on each data set follows a bound that ε exceeds, as in `privacy.auditing`. It finds
noise that is missing, a clip that comes after the noise, and a cap that is not kept. It lies below
the claim of an honest walk, and how far depends on the number of walks.

>>> from walklearn.privacy import ModelNoise
>>> noise = ModelNoise.calibrate(epsilon=1.0, delta=1e-5, clip=1.0, max_contributions=3)
>>> audit_walk(noise, delta=1e-5, walks=500, seed=1).verdict
'consistent'
>>> audit_walk(ModelNoise(1.0, 0.01, 3), delta=1e-5, epsilon=1.0, walks=500, seed=1).verdict
'VIOLATED'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from walklearn.graphs import complete
from walklearn.privacy.arguments import check_delta, check_epsilon
from walklearn.privacy.auditing import Finding, epsilon_shown
from walklearn.privacy.model_noise import ModelNoise
from walklearn.problem import Problem
from walklearn.simulation.arguments import Seed, root_of
from walklearn.simulation.batches import WalkBatch
from walklearn.simulation.compiled_batches import CompiledWalks
from walklearn.simulation.reference_batches import ReferenceWalks, ReleasedWalks
from walklearn.updates.random_streams import generators, replicate_seed
from walklearn.updates.step_sizes import ConstantStep
from walklearn.updates.update import Sgd
from walklearn.updates.walk_sgd import WalkSetting, token_at
from walklearn.walks import Uniform

_CANARY = 200.0  # its length in clips: half of it is its gradient at w = 0
_DIMENSION, _ROWS = 3, 4
# The model hardly moves, so that the canary's gradient stays clipped: its margin stays below this.
_LARGEST_MARGIN = 1e-3


_ENGINES: dict[str, type[WalkBatch]] = {
    "compiled": CompiledWalks,
    "reference": ReferenceWalks,
    "released": ReleasedWalks,
}


@dataclass(frozen=True)
class WalkAudit(Finding):
    """What was claimed of a walk and what was found.

    Parameters
    ----------
    noise
        What was audited.
    epsilon
        The claimed ε.
    delta
        The claimed δ.
    epsilon_lower
        A lower bound on ε at this δ, true with probability `confidence`.
    walks
        How many walks were made on each of the two data sets.
    visits
        How often each walk visited the node.
    confidence
        The probability that the bound is true.

    Examples
    --------
    >>> from walklearn.privacy import ModelNoise
    >>> noise = ModelNoise.calibrate(epsilon=1.0, delta=1e-5, clip=1.0, max_contributions=3)
    >>> found = audit_walk(noise, delta=1e-5, epsilon=1.0, walks=2000, seed=1)
    >>> found.verdict, found.epsilon_lower <= found.epsilon
    ('consistent', True)
    """

    noise: str
    epsilon: float
    delta: float
    epsilon_lower: float
    walks: int
    visits: int
    confidence: float

    @property
    def violated(self) -> bool:
        """True where the claim is refuted."""
        return self.epsilon_lower > self.epsilon

    def __str__(self) -> str:
        return (
            f"{self.verdict}: a walk with {self.noise} claims ε = {self.epsilon:.4g} at "
            f"δ = {self.delta:g}; its neighbour shows that ε is at least {self.epsilon_lower:.4g} "
            f"({self.walks} walks on each of two data sets, {self.visits} visits each, confidence "
            f"{self.confidence:g})."
        )


def audit_walk(
    noise: ModelNoise,
    *,
    delta: float,
    epsilon: float | None = None,
    walks: int = 20_000,
    revisits: int = 10,
    confidence: float = 0.999,
    seed: Seed = None,
    engine: Literal["compiled", "reference", "released"] = "compiled",
) -> WalkAudit:
    """Test the claim that all contributions of a node to the model are (ε, δ) private.

    Parameters
    ----------
    noise : ModelNoise
        What the walk uses.
    delta, epsilon : float
        The claim; by default the ε that the noise claims itself at this δ.
    walks : int
        How many walks to make on each of the two data sets.
    revisits : int
        The walk goes on until it has visited the node this many times its cap.
    confidence : float
        The probability with which the bound found is true.
    seed : int
        A number makes the result reproducible.
    engine : str
        What runs the walks: "compiled", its "reference", or "released", the exact noise from
        the system's entropy on whole numbers of a grid, as real fits draw it.

    Returns
    -------
    WalkAudit
        The claim beside a lower bound on ε; a bound above the claim refutes it.

    Examples
    --------
    >>> from walklearn.privacy import ModelNoise
    >>> noise = ModelNoise(clip=1.0, noise_multiplier=2.0, max_contributions=1)
    >>> audit_walk(noise, delta=1e-3, walks=1_000, seed=1).violated
    False
    """
    delta = check_delta(delta)
    claimed = noise.epsilon(delta) if epsilon is None else check_epsilon(epsilon)
    if walks < 4 or revisits < 1 or not 0 < confidence < 1:
        raise ValueError(
            "an audit needs at least 4 walks, 1 revisit and a confidence within (0, 1)."
        )
    visits = noise.max_contributions * revisits
    roots = root_of(seed).spawn(2)
    one, other = (
        _seen(_problem(noise.clip * way), noise, visits, walks, root, _ENGINES[engine])
        for way, root in zip((1.0, -1.0), roots, strict=True)
    )
    risk = (1.0 - confidence) / 2
    shown = [
        epsilon_shown(one[:, :counted].sum(axis=1), other[:, :counted].sum(axis=1), delta, risk)
        for counted in (noise.max_contributions, visits)
    ]
    return WalkAudit(repr(noise), claimed, delta, max(shown), walks, visits, confidence)


def _problem(canary: float) -> Problem:
    """Pose two nodes, of which the first node's first row is the canary and all else is fixed."""
    X = np.random.default_rng(0).standard_normal((_ROWS + 1, _DIMENSION))
    X[0] = 0.0
    X[0, 0] = _CANARY * canary
    y = np.ones(_ROWS + 1)
    return Problem(X, y, objective="mean", node_of_row=[0] * _ROWS + [1])


def _seen(
    problem: Problem,
    noise: ModelNoise,
    visits: int,
    walks: int,
    root: np.random.SeedSequence,
    batch_class: type[WalkBatch],
) -> NDArray[np.float64]:
    """What the neighbour makes of each visit to node 0, along the canary: (walks, visits)."""
    factor = problem.row_factor(0)
    reach = factor * noise.clip * (noise.noise_multiplier + _ROWS) * visits
    step = _LARGEST_MARGIN / (reach * _CANARY * noise.clip)
    update = Sgd(ConstantStep(step))
    setting = WalkSetting(problem, complete(2), Uniform(), update, model_noise=noise)
    streams = [generators(replicate_seed(root, number)) for number in range(walks)]
    start = np.zeros(problem.size)
    batch: Any = batch_class(setting, streams, [token_at(0, start)] * walks)
    # On two nodes the token goes to and fro: node 0 has it at every other step.
    steps = 2 * visits
    along = batch.advance(steps, after=range(1, steps + 1)).models[:, :, 0, 0].T
    before = np.hstack([np.zeros((walks, 1)), along[:, 1:-1:2]])
    return np.asarray((before - along[:, ::2]) / step / noise.factor(problem, 0))
