"""The protocol under every fault: one token of the newest line, no update twice, always an end."""

from __future__ import annotations

from fault_machine import FaultMachine
from hypothesis import settings

TestFaults = FaultMachine.TestCase
TestFaults.settings = settings(
    max_examples=100, stateful_step_count=60, deadline=None, derandomize=True
)
