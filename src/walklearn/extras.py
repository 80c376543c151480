"""Packages of optional extras; an error says how to install a missing one.

>>> with extra("networkx", "to_networkx needs"):
...     import no_such_package
Traceback (most recent call last):
    ...
walklearn.errors.MissingExtraError: to_networkx needs no_such_package. In the clone of walklearn:
pip install '.[networkx]'
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from walklearn.errors import MissingExtraError

_INSTALLED_AS = {
    "sklearn": "scikit-learn",
    "google": "protobuf",
    "grpc": "grpcio",
    "flint": "python-flint",
    "mlflow": "mlflow-skinny",
}


@contextmanager
def extra(name: str, needs: str) -> Iterator[None]:
    """Name a missing package of an extra, what needs it and how to install it; wraps imports."""
    try:
        yield
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "walklearn"):  # no extra installs it
            raise
        missing = _INSTALLED_AS.get(missing, missing)
        raise MissingExtraError(name, missing, needs) from error


def package(name: str, of_extra: str, needs: str) -> Any:
    """Import a package of an extra by its name.

    >>> package("json", "tables", "this needs").dumps([1])
    '[1]'
    """
    with extra(of_extra, needs):
        return import_module(name)


def arrow_memory(content: bytes) -> Any:
    """Return a copy of ``content`` that pyarrow's readers take as a file.

    The copy belongs to pyarrow. A reader's threads may release what they read only after Python
    has begun to end; if that memory belongs to Python, the process then ends in `terminate called
    without an active exception` instead of with its exit code (apache/arrow issue 34314; seen in
    5 to 15 of 100 processes that end right after they have read something, on a busy machine).

    >>> arrow_memory(b"rows").read()
    b'rows'
    """
    arrow = package("pyarrow", "tables", "this needs")
    memory = arrow.allocate_buffer(len(content))
    with arrow.FixedSizeBufferWriter(memory) as writer:
        writer.write(content)
    return arrow.BufferReader(memory)
