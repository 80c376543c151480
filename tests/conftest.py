"""How the suite runs: a process for each core."""

from __future__ import annotations

import os

import pytest


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process a core, none for single files: they would start longer than they run."""
    if any(".py" in argument for argument in config.args):
        return 0
    return len(os.sched_getaffinity(0))


def pytest_configure(config: pytest.Config) -> None:
    """Every process keeps what Numba compiles for itself.

    Its cache is not made for two that write at a time: both may give their code one name.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker and "NUMBA_CACHE_DIR" not in os.environ:
        os.environ["NUMBA_CACHE_DIR"] = str(config.rootpath / ".pytest_cache" / "numba" / worker)
