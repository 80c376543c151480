"""Where a row comes from: five columns that every kept table has.

    spec       hash of the description it follows from: its cell's, its graph's, its study's
    seed       what its numbers were drawn from; see `seed_name`
    version    of walklearn
    machine    the kind of machine that computed it
    time       when it was kept

Seed and machine are known where a row is computed, the rest when it is kept.

>>> sorted(origin(seed_name(1, 0, 7)) | keeping("f00d")) == sorted(COLUMNS)
True
"""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime

import numpy as np

from walklearn import __version__

COLUMNS = ("spec", "seed", "version", "machine", "time")


def origin(seed: str) -> dict[str, str]:
    """The columns that are known where a row is computed."""
    return {"seed": seed, "machine": machine()}


def keeping(spec: str) -> dict[str, str]:
    """The columns that are known when a row is kept."""
    return {"spec": spec, "version": __version__, "time": now()}


def seed_name(seed: int, *spawn_key: int) -> str:
    """A seed, or the stream with this key of it, as rows name it.

    >>> seed_name(1, 0, 7, 2), seed_name(1)  # SeedSequence(1, spawn_key=(0, 7, 2)), and 1 itself
    ('1:0.7.2', '1')
    """
    return f"{seed}:{'.'.join(map(str, spawn_key))}" if spawn_key else str(seed)


def machine() -> str:
    """The kind of machine, for the rows it computes; no name of it."""
    kind = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"{kind}, Python {platform.python_version()}, NumPy {np.__version__}"


def now() -> str:
    """The time, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
