"""Work on several cores at once: threads, since compiled code runs outside the interpreter's lock.

>>> found = []
>>> on_threads(2, [lambda: found.append("a"), lambda: found.append("b")], stop=lambda: None)
>>> sorted(found)
['a', 'b']
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path


def on_threads(
    workers: int, calls: Sequence[Callable[[], object]], stop: Callable[[], object]
) -> None:
    """Make all calls on threads; if one fails, or on Ctrl-C, call `stop` and await the others.

    This thread takes its share: with a new one for each core, two would often begin on the same
    core, since this thread has not left its own yet.
    """
    waiting = iter(calls)  # shared by all threads: each takes the next call

    def work() -> None:
        try:
            for call in waiting:
                call()
        except BaseException:
            list(waiting)  # exhaust it, to stop the other threads
            stop()
            raise

    with ThreadPoolExecutor(max(1, workers - 1)) as pool:
        others = [pool.submit(work) for _ in range(min(workers, len(calls)) - 1)]
        work()
        for each in others:
            each.result()


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
