"""Real processes that are killed at random: the short form of `python -m benchmarks.soak`."""

import pytest

from benchmarks.soak import soak

pytestmark = pytest.mark.slow


def test_a_walk_survives_the_death_of_its_nodes(tmp_path):
    """The error may be twice that of the worst of 1,000 undisturbed walks: see `soak`."""
    outcome = soak(
        tmp_path / "network", seconds=2.0, updates=5_000, seed=5, patience=240.0,
        every_seconds=0.4, nodes=6,
    )  # fmt: skip
    assert outcome.failure == ""
    assert outcome.kills >= 3
    assert outcome.updates == 5_000
