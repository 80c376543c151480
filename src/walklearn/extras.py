"""Imports of optional packages; if one is missing, the error says how to install it.

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
    """Wrap imports: if a package is missing, raise an error that says how to install it.

    name: the extra that installs the package. needs: the start of the message, as "nodes need".
    """
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
    """Return a copy of ``content`` that pyarrow's readers accept as a file.

    The copy is in pyarrow's memory. A reader's threads may free the memory while Python shuts down.
    If it is Python's memory, the process aborts with `terminate called without an active
    exception` and loses its exit code (apache/arrow issue 34314; on a busy machine, in 5 to 15 of
    100 processes that ended right after reading).

    >>> arrow_memory(b"rows").read()
    b'rows'
    """
    arrow = package("pyarrow", "tables", "this needs")
    memory = arrow.allocate_buffer(len(content))
    with arrow.FixedSizeBufferWriter(memory) as writer:
        writer.write(content)
    return arrow.BufferReader(memory)
