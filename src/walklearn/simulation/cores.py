"""The number of cores that a process may use."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path


def usable_cores() -> int:
    """Return the number of cores for this process, by its affinity and its container's quota."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = map(int, Path("/sys/fs/cgroup/cpu.max").read_text().split())
        cores = min(cores, math.ceil(quota / period))
    return cores
