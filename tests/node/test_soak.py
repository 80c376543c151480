"""Real processes that are killed at random: the short form of `python -m benchmarks.soak`."""

from benchmarks.soak import soak


def test_a_walk_survives_the_death_of_its_nodes(tmp_path):
    """The error may be twice that of the worst of 1,000 undisturbed walks: see `soak`."""
    outcome = soak(
        tmp_path / "network", seconds=4.0, updates=7_000, seed=5, patience=240.0, every_seconds=0.5
    )
    assert outcome.failure == ""
    assert outcome.kills >= 5
    assert outcome.updates == 7_000
