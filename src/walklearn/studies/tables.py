"""Tables of columns, as cells produce them and result files store them.

Every stored table has five columns with the provenance of a row:

    spec       hash of the description of its cell, its graph or its study
    seed       the seed of its numbers; see `seed_name`
    version    of walklearn
    machine    the kind of machine that computed it
    stored_at  when it was stored

`origin_columns` makes the columns that are known when a row is computed, `storage_columns` the
others.

>>> part = CellResult(constant_columns({"instance": 0}, 2), {}, {}, {})
>>> other = CellResult(constant_columns({"instance": 1}, 2), {}, {}, {})
>>> join_results([part, other]).records["instance"]
array([0, 0, 1, 1])
>>> sorted(origin_columns(1, 0, 7) | storage_columns("f00d")) == sorted(PROVENANCE)
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

PROVENANCE = ("spec", "seed", "version", "machine", "stored_at")


@dataclass(frozen=True, eq=False)
class CellResult:
    """The results of a cell, as tables of columns.

    Parameters
    ----------
    records
        A row per record.
    facts
        A row of facts per instance.
    nodes, edges
        A row per node, and per edge, of instance 0.
    """

    records: Columns
    facts: Columns
    nodes: Columns
    edges: Columns


def constant_columns(values: Mapping[str, Any], rows: int) -> Columns:
    """Columns that hold one value each."""
    return {
        name: np.full(rows, value, dtype=object if isinstance(value, str) else None)
        for name, value in values.items()
    }


def with_constants(table: Columns, values: Mapping[str, Any]) -> Columns:
    """Add columns that hold one value each, unless the table is empty."""
    return {**table, **constant_columns(values, rows_of(table))} if table else {}


def rows_of(table: Columns) -> int:
    """The number of rows."""
    return len(next(iter(table.values()), ()))


def join_results(parts: Iterable[CellResult]) -> CellResult:
    """Stack the rows of all parts."""
    tables = [vars(part) for part in parts]
    return CellResult(
        **{field.name: _stack([each[field.name] for each in tables])
           for field in fields(CellResult)}
    )  # fmt: skip


def _stack(tables: list[Columns]) -> Columns:
    filled = [table for table in tables if table]
    return {name: np.concatenate([table[name] for table in filled]) for name in (filled or [{}])[0]}


def origin_columns(seed: int | str, *spawn_key: int) -> dict[str, str]:
    """Columns that are known when a row is computed."""
    return {"seed": seed_name(seed, *spawn_key), "machine": machine()}


def storage_columns(spec: str) -> dict[str, str]:
    """Columns that are known when a row is stored."""
    return {"spec": spec, "version": __version__, "stored_at": now()}


def seed_name(seed: int | str, *spawn_key: int) -> str:
    """Name a seed, or its stream with this spawn key.

    >>> seed_name(1, 0, 7, 2), seed_name(1)  # SeedSequence(1, spawn_key=(0, 7, 2)), and 1 itself
    ('1:0.7.2', '1')
    """
    return f"{seed}:{'.'.join(map(str, spawn_key))}" if spawn_key else str(seed)


def machine() -> str:
    """Describe the kind of this machine, without its name."""
    kind = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"{kind}, Python {platform.python_version()}, NumPy {np.__version__}"


def now() -> str:
    """The time, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
