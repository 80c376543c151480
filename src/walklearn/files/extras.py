"""Packages of optional extras: imported where they are used, missed with a word on how to get them.

>>> with extra("networkx", "to_networkx needs"):
...     import no_such_package
Traceback (most recent call last):
    ...
walklearn.files.extras.MissingExtra: to_networkx needs no_such_package. In the clone of walklearn:
pip install '.[networkx]'
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

_INSTALLED_AS = {
    "sklearn": "scikit-learn",
    "google": "protobuf",
    "grpc": "grpcio",
    "flint": "python-flint",
    "mlflow": "mlflow-skinny",
}


class MissingExtra(ImportError):
    """A package that an extra would have brought; the message has the line that installs it."""


@contextmanager
def extra(name: str, needs: str) -> Iterator[None]:
    """Say which package of an extra is missing, what needs it and how to get it; wraps imports."""
    try:
        yield
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "walklearn"):  # no extra brings it
            raise
        missing = _INSTALLED_AS.get(missing, missing)
        raise MissingExtra(
            f"{needs} {missing}. In the clone of walklearn: pip install '.[{name}]'"
        ) from error


def package(name: str, of_extra: str, needs: str) -> Any:
    """Import a package of an extra, by its name.

    >>> package("json", "tables", "this needs").dumps([1])
    '[1]'
    """
    with extra(of_extra, needs):
        return import_module(name)
