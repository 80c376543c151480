"""A neighbour that sends tokens on purpose, and guesses a row from what comes back.

It sends a model that the row in question moves as far as the clip allows, more often than the node
may contribute, and adds up what came back. Clopper and Pearson's bounds on how often that tells two
data sets apart give a lower bound on ε, which is above the true one with probability 1e-3 at most.
The noise is drawn as for a real token, but from a seed, so that every run is the same.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.node.made_tokens import changed
from walklearn.node.agreement.plan import Plan
from walklearn.node.protocol.learner import Draws, Learner
from walklearn.node.protocol.tokens import Line
from walklearn.privacy.auditing import epsilon_lower_bound
from walklearn.privacy.model_noise import ModelNoise, Unit

PLAN = Plan.from_text("""
name = "attacked"
nodes = 4
features = ["a"]
target = "y"
loss = "squared"
step_size = { constant = 0.01, exponent = 0.6 }
updates = 1000
""")
LINE = Line(0, 1, "ab" * 32, "cd" * 16)
SAMPLES, DELTA = 600, 0.05


class SeededBits:
    """Random bytes that can be had again."""

    def __init__(self, seed: int) -> None:
        self.read = np.random.default_rng(seed).bytes


def seen(target: float, noise: ModelNoise, visits: int, is_counted: bool) -> np.ndarray:
    """What the tokens that came back tell of a row with this target, once for each try."""
    learner = Learner.of_plan(PLAN, [[0.5], [9.0], [-0.5]], [0.0, target, 0.0], noise=noise)
    sent, found = learner.first_token(LINE, np.zeros(1)), np.zeros(SAMPLES)
    drawn = noise.draw(SAMPLES * visits, SeededBits(7 if target > 0 else 8))
    for attempt, steps in enumerate(drawn.reshape(SAMPLES, visits, 1)):
        contributions = 0
        for number in range(visits):
            token, draws = changed(sent, updates=number), Draws(np.array([0.5]), steps[number])
            back, contributions, *_ = learner.visit(
                token, draws, contributions if is_counted else 0
            )
            found[attempt] -= back.model[0] / learner.plan.step_size(number + 1)
    return found


def shown(noise: ModelNoise, visits: int, is_counted: bool = True) -> float:
    """A lower bound on the ε that the attack shows."""
    one, other = (seen(target, noise, visits, is_counted) for target in (1.0, -1.0))
    return epsilon_lower_bound(one, other, DELTA, 1e-3)


@pytest.mark.parametrize("unit", ["rows", "node"])
def test_no_neighbour_tells_a_row_better_than_is_claimed(unit: Unit) -> None:
    noise = ModelNoise(clip=1.0, noise_multiplier=2.0, max_contributions=1, protect=unit)
    assert 0.1 < shown(noise, visits=1) <= noise.epsilon(DELTA)


def test_tokens_past_the_cap_tell_nothing_more() -> None:
    noise = ModelNoise(clip=1.0, noise_multiplier=2.5, max_contributions=1)
    assert shown(noise, visits=3) <= noise.epsilon(DELTA)
    # A cap that begins anew with every token would be found.
    assert shown(noise, visits=8, is_counted=False) > 1.2 * noise.epsilon(DELTA)
