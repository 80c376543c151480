"""The clock of a node: it never jumps, and stands still while the machine sleeps.

Waits are for what neighbours say, and who sleeps hears nobody: on waking up the walk does not seem
lost. But the others may have gone on meanwhile, and how long that was another clock knows.
"""

from __future__ import annotations

import time

awake_seconds = time.monotonic
# The one of Linux goes on while the machine sleeps; where there is none of that name, as on macOS,
# CLOCK_MONOTONIC does, and `time.monotonic` is another clock.
_GOES_ON = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def slept_seconds() -> float:
    """How long the machine has slept, since a time that is the same for the whole process."""
    return time.clock_gettime(_GOES_ON) - awake_seconds()
