"""Real processes that are killed at random: the short form of `python -m benchmarks.soak`."""

import pytest

from benchmarks.soak import soak

pytestmark = pytest.mark.slow


def test_a_walk_survives_the_death_of_its_nodes(tmp_path):
    """The error may be twice that of the worst of 1,000 undisturbed walks: see `soak`.

    While nodes are down the walk learns from the others alone. On a fast machine that is up to
    4,000 updates, so the walk is long enough to recover from them before its error is measured.
    """
    updates = 15_000
    outcome = soak(
        tmp_path / "network", seconds=2.0, updates=updates, seed=5, patience=240.0,
        every_seconds=0.4, nodes=6,
    )  # fmt: skip
    assert outcome.failure == ""
    assert outcome.kills >= 3
    assert outcome.updates == updates
