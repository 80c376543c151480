"""What `diagnose` says of updates: what they cost, and what does not apply to them."""

from __future__ import annotations

import numpy as np

import walklearn as wl
from walklearn import updates, walks

GRAPH = wl.graphs.star(6)
PROBLEM = wl.Problem(np.eye(6), [1.0, -1.0, 1.0, 1.0, -1.0, 1.0], penalty=1.0)


def test_memory_has_no_bias_and_no_constant() -> None:
    plain = wl.theory.diagnose(GRAPH, PROBLEM, walks.Simple(laziness=0.1))
    assert any("another sum" in each for each in plain.warnings)
    remembered = wl.theory.diagnose(
        GRAPH, PROBLEM, walks.Simple(laziness=0.1), update=updates.Saga()
    )
    assert remembered.constant is None
    assert not any("another sum" in each for each in remembered.warnings)
    assert any("curvature" in each for each in remembered.warnings)
    assert remembered.message_bytes == 8 * (6 + 6 + 4)
    assert remembered.node_bytes == 8 * 2
    assert "Saga()" in str(remembered)


def test_the_step_of_sgd_is_looked_at() -> None:
    long = updates.Sgd(wl.ConstantStep(100.0))
    diagnosis = wl.theory.diagnose(GRAPH, PROBLEM, walks.Uniform(), update=long)
    assert diagnosis.warnings == wl.theory.diagnose(
        GRAPH, PROBLEM, walks.Uniform(), wl.ConstantStep(100.0)
    ).warnings  # fmt: skip
    assert diagnosis.message_bytes == 8 * PROBLEM.size
