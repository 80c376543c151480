"""How the suite runs: a process for each core."""

from __future__ import annotations

import os

import joblib
import pytest


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process a core, none for single files: they would start longer than they run.

    More than four would ask for more memory than a laptop has; `-n` on the command line prevails.
    """
    single_files = any(".py" in argument for argument in config.args)
    return 0 if single_files else min(4, joblib.cpu_count())


def pytest_configure(config: pytest.Config) -> None:
    """Every process keeps what Numba compiles for itself.

    Its cache is not made for two that write at a time: both may give their code one name.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker and "NUMBA_CACHE_DIR" not in os.environ:
        os.environ["NUMBA_CACHE_DIR"] = str(config.rootpath / ".pytest_cache" / "numba" / worker)
