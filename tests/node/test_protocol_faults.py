"""The protocol under every fault: one token of the newest line, no update twice, always an end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import Phase, seed, settings
from hypothesis.errors import FlakyFailure
from hypothesis.stateful import run_state_machine_as_test

from tests.node.broken_protocols import BROKEN
from tests.node.fault_machine import FaultMachine

TestFaults = FaultMachine.TestCase
TestFaults.settings = settings(
    max_examples=60, stateful_step_count=100, deadline=None, derandomize=True
)


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
