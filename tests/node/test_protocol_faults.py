"""The protocol under every fault: one token of the newest line, no update twice, always an end."""

from __future__ import annotations

import os
from collections.abc import Callable

import broken_protocols
import pytest
from fault_machine import FaultMachine
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

TestFaults = FaultMachine.TestCase
TestFaults.settings = settings(
    max_examples=100, stateful_step_count=100, deadline=None, derandomize=True
)

# The others take longer to be found out: WALKLEARN_ALL_FAULTS=1 runs them too.
QUICK = [
    broken_protocols.send_before_commit,
    broken_protocols.forget_before_acknowledgement,
    broken_protocols.take_a_handover_twice,
    broken_protocols.reclaim_the_same_line,
    broken_protocols.offer_again_under_the_same_mark,
    broken_protocols.charge_afterwards,
    broken_protocols.forget_what_was_seen,
]
ALL = broken_protocols.BROKEN if os.environ.get("WALKLEARN_ALL_FAULTS") else QUICK


@pytest.mark.parametrize("broken", ALL, ids=lambda broken: broken.__name__)
def test_a_broken_protocol_is_found_out(
    broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine would notice: with one thing wrong, some run breaks what must hold."""
    broken(monkeypatch)
    searched = settings(
        max_examples=300, stateful_step_count=100, deadline=None, derandomize=True, database=None,
        phases=[Phase.generate], print_blob=False,
    )  # fmt: skip
    with pytest.raises((AssertionError, RuntimeError)):
        run_state_machine_as_test(FaultMachine, settings=searched)
