"""The protocol under every fault: one token of the newest line, no update twice, always an end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import Phase, seed, settings
from hypothesis.errors import FlakyFailure
from hypothesis.stateful import run_state_machine_as_test

from tests.node.broken_protocols import AMONG_ENEMIES, BROKEN, let_false_progress_stand
from tests.node.enemy_machine import EnemyMachine, SlowEnemyMachine
from tests.node.fault_machine import FaultMachine
from walklearn.node.protocol.tally import FURTHEST, LOSSES

TestFaults = FaultMachine.TestCase
TestFaults.settings = settings(
    max_examples=60, stateful_step_count=100, deadline=None, derandomize=True
)
TestEnemies = EnemyMachine.TestCase
TestEnemies.settings = settings(
    max_examples=12, stateful_step_count=15, deadline=None, derandomize=True, database=None,
    phases=[Phase.generate],  # to make a failure smaller would take many minutes
)  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_broken_protocol_is_found_out(
    broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine would notice: with one thing wrong, some run breaks what must hold."""
    broken(monkeypatch)

    with pytest.raises((AssertionError, RuntimeError, FlakyFailure)):
        search(BROKEN[broken])


def search(first_seed: int) -> None:
    """Try to break what must hold, from several seeds until it succeeds.

    Of two ends of one line the digest decides, which differs from run to run as the numbers of the
    updates do, and hypothesis tries values that it finds in the modules other tests have loaded. So
    one search may miss what it found before.
    """

    class Machine(FaultMachine):
        pass

    searched = settings(
        max_examples=300, stateful_step_count=100, deadline=None, database=None,
        phases=[Phase.generate], print_blob=False,
    )  # fmt: skip
    for attempt in range(5):
        run_state_machine_as_test(seed(first_seed + attempt)(Machine), settings=searched)


@pytest.mark.parametrize("broken", AMONG_ENEMIES, ids=lambda broken: broken.__name__)
def test_a_protocol_that_is_broken_among_enemies_is_found_out(
    broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of the machine that are chosen by hand, for a search would take long."""
    swallows(AMONG_ENEMIES[broken], 1)
    broken(monkeypatch)
    with pytest.raises(AssertionError):
        swallows(AMONG_ENEMIES[broken], 4)


def test_a_token_that_lets_false_progress_stand_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    false_progress(1)
    let_false_progress_stand(monkeypatch)
    with pytest.raises(AssertionError):
        false_progress(6)


def false_progress(runs: int) -> None:
    """The enemy tells its neighbours of too many hops, and does nothing else."""
    for number in range(runs):
        machine = SlowEnemyMachine()
        machine.begin(number)
        machine.go_on(40.0)
        for which in (0, 1, 0, 1):
            machine.lie(which, "hop")
            machine.go_on(7.0)
            machine.progress_that_was_not_made_makes_nobody_resume()
        machine.teardown()


def swallows(claims: int, runs: int) -> None:
    """The enemy keeps every token; each of its neighbours gives it so many, and no more."""
    for number in range(runs):
        machine = EnemyMachine()
        machine.begin(number)
        machine.go_on(0.5)
        machine.swallow(claims)
        machine.go_on(60.0)
        machine.nobody_honest_is_distrusted()
        machine.teardown()
        assert machine.network.taken <= len(machine.around) * (LOSSES + FURTHEST)
