"""Tables by columns, as cells make them and result files keep them.

>>> part = CellResult(repeated({"instance": 0}, 2), {}, {}, {})
>>> joined([part, CellResult(repeated({"instance": 1}, 2), {}, {}, {})]).records["instance"]
array([0, 0, 1, 1])
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class CellResult:
    """A row per record; facts of each instance; of instance 0 its nodes and edges."""

    records: Columns
    facts: Columns
    nodes: Columns
    edges: Columns


def repeated(values: Mapping[str, Any], rows: int) -> Columns:
    """Columns that hold one value each."""
    return {
        name: np.full(rows, value, dtype=object if isinstance(value, str) else None)
        for name, value in values.items()
    }


def joined(parts: Iterable[CellResult]) -> CellResult:
    """The parts' rows one below the other."""
    parts = list(parts)
    return CellResult(
        **{field.name: _stacked([getattr(part, field.name) for part in parts])
           for field in fields(CellResult)}
    )  # fmt: skip


def _stacked(tables: list[Columns]) -> Columns:
    filled = [table for table in tables if table]
    return {name: np.concatenate([table[name] for table in filled]) for name in (filled or [{}])[0]}


def machine() -> str:
    """The kind of machine, for the rows it computes; no name of it."""
    kind = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"{kind}, Python {platform.python_version()}, NumPy {np.__version__}"
