"""Tables by columns, as cells make them and result files keep them.

>>> part = CellResult(repeated({"instance": 0}, 2), {}, {}, {})
>>> joined([part, CellResult(repeated({"instance": 1}, 2), {}, {}, {})]).records["instance"]
array([0, 0, 1, 1])
"""

from __future__ import annotations

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


def widened(table: Columns, values: Mapping[str, Any]) -> Columns:
    """The table with further columns that hold one value each; without rows it gets none."""
    return {**table, **repeated(values, rows_of(table))} if table else {}


def rows_of(table: Columns) -> int:
    """How many rows it has.

    >>> rows_of({}), rows_of(repeated({"instance": 0}, 2))
    (0, 2)
    """
    return len(next(iter(table.values()), ()))


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
