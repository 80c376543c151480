"""Tables by columns, as cells make them and result files keep them.

Five columns that every kept table has say where a row comes from:

    spec       hash of the description it follows from: its cell's, its graph's, its study's
    seed       what its numbers were drawn from; see `seed_name`
    version    of walklearn
    machine    the kind of machine that computed it
    time       when it was kept

Seed and machine are known where a row is computed (`origin`), the rest when it is kept (`keeping`).

>>> part = CellResult(repeated({"instance": 0}, 2), {}, {}, {})
>>> joined([part, CellResult(repeated({"instance": 1}, 2), {}, {}, {})]).records["instance"]
array([0, 0, 1, 1])
>>> sorted(origin(seed_name(1, 0, 7)) | keeping("f00d")) == sorted(PROVENANCE)
True
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn import __version__

Columns = dict[str, NDArray[Any]]

PROVENANCE = ("spec", "seed", "version", "machine", "time")


@dataclass(frozen=True, eq=False)
class CellResult:
    """What a cell's run has found, as tables of columns.

    Parameters
    ----------
    records
        A row per record.
    facts
        A row of facts per instance.
    nodes
        A row per node of instance 0.
    edges
        A row per edge of instance 0.
    """

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
