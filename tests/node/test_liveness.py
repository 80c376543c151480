"""The walk goes on: without its holder, after a cut, and undisturbed where nothing is wrong."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import pytest

from tests.node import network_scenarios
from tests.node.broken_protocols import keep_the_older_final, never_resume
from tests.node.network_scenarios import holder_gone_for_good
from walklearn.node.protocol import handover


def test_a_walk_outlives_its_holder() -> None:
    """Seconds of the simulated clock, on which a message takes 10 ms."""
    seconds = [holder_gone_for_good(seed) for seed in range(5)]
    assert statistics.median(seconds) < 10.0


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "name",
    [
        "undisturbed",
        "newcomer_begins_a_walk",
        "restored_holder",
        "restored_holder_alone",
        "all_restored",
        "two_parts_end",
        "parts_that_went_on_meet",
    ],
)
def test_there_is_one_end(name: str, seed: int) -> None:
    getattr(network_scenarios, name)(seed)


def resume_at_once(patch: pytest.MonkeyPatch) -> None:
    """The patience does not follow what was measured."""
    patch.setattr("walklearn.node.protocol.pace.patience", lambda limits, returns: 0.5)


def renew_no_line(patch: pytest.MonkeyPatch) -> None:
    """A walk under way is as old as at its birth, so the larger fingerprint lives."""
    patch.setattr(handover, "_renewed", lambda token: token)


BROKEN: list[tuple[Callable[[pytest.MonkeyPatch], None], str]] = [
    (never_resume, "holder_gone_for_good"),
    (resume_at_once, "undisturbed"),
    (renew_no_line, "newcomer_begins_a_walk"),
    (keep_the_older_final, "two_parts_end"),
]


@pytest.mark.parametrize(("broken", "name"), BROKEN, ids=lambda it: getattr(it, "__name__", it))
def test_without_the_rule_there_is_not(
    broken: Callable[[pytest.MonkeyPatch], None], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of a few runs shows it."""
    broken(monkeypatch)

    def run() -> None:
        for seed in range(6):
            getattr(network_scenarios, name)(seed)

    with pytest.raises((AssertionError, RuntimeError)):
        run()
