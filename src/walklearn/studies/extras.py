"""Packages that only studies need, imported where they are used.

>>> package("json").dumps([1])
'[1]'
>>> package("no_such_package")
Traceback (most recent call last):
    ...
ImportError: studies need no_such_package: pip install 'walklearn[experiments]'
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any


def package(name: str, extra: str = "experiments") -> Any:
    """Import a package of an optional extra, or say how to get it."""
    try:
        return import_module(name)
    except ImportError as error:
        missing = name.partition(".")[0]
        raise ImportError(f"studies need {missing}: pip install 'walklearn[{extra}]'") from error


def one_thread() -> AbstractContextManager[Any]:
    """Linear algebra on one thread: the same sums on every machine, and workers do not fight."""
    limits: AbstractContextManager[Any] = package("threadpoolctl").threadpool_limits(
        limits=1, user_api="blas"
    )
    return limits
