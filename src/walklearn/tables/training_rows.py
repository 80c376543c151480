"""`Rows`: the features, the targets and the owners of the rows of a table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.tables.encoding import Encoding, is_text
from walklearn.tables.formats import read_table
from walklearn.tables.schema import Schema
from walklearn.tables.table import DataError, RowNamer, Table

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows for training.

    Parameters
    ----------
    X, y
        The encoded features, sparse if the file is sparse, and the targets; whole numbers are
        integers.
    nodes
        The owner of each row, a number or a name; None without a node column.
    encoding
        The encoding that turned columns into X.
    target
        The name of y.
    name_row
        Names a row, counted from 0, in a message.

    Examples
    --------
    >>> columns = {"age": lambda: np.array([30.0, 41.0]), "ill": lambda: np.array([0.0, 1.0])}
    >>> rows = rows_of(Table(columns, row_count=2, source="people.csv"), target="ill")
    >>> rows.columns, rows.X.tolist(), rows.y, rows.classes
    (('age',), [[30.0], [41.0]], array([0, 1]), array([0, 1]))
    """

    X: Any  # an array, or a csr_array of SciPy's
    y: Array
    nodes: Array | None
    encoding: Encoding
    target: str
    name_row: RowNamer

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of X."""
        return tuple(column.name for column in self.encoding.columns)

    @property
    def classes(self) -> Array:
        """The different targets, sorted."""
        return np.unique(self.y)


def read_rows(
    path: str | os.PathLike[str],
    *,
    target: str,
    node_column: str | None = None,
    drop: Sequence[str] = (),
    text: Sequence[str] = (),
    schema: Schema | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    encoding: Encoding | None = None,
    delimiter: str | None = None,
) -> Rows:
    """Read the rows of a file.

    Parameters
    ----------
    path
        A file that `read_table` reads.
    target
        The column to predict.
    node_column
        The column that names the node of each row.
    drop
        Columns that are left out.
    text
        Columns that are text even if they look like numbers.
    schema
        Declared categories, scales and ranges of columns, which replace those of the data: a
        `Schema`, the path of a schema file, or its content.
    encoding
        An earlier encoding, such as that of a model or of a network's plan.
    delimiter
        Separator of the cells of a CSV file; guessed if None.

    Returns
    -------
    Rows

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("clinic,age,ill\\nnorth,30,no\\nsouth,41,yes\\n")
    ...     rows = read_rows(path, target="ill", node_column="clinic")
    >>> rows.X.tolist(), rows.y.tolist(), rows.nodes.tolist()
    ([[30.0], [41.0]], ['no', 'yes'], ['north', 'south'])
    """
    schema = Schema.of(schema)
    declared = {*text, *schema.categories, *(() if encoding is None else encoding.text_columns)}
    table = read_table(path, delimiter=delimiter, text=sorted(declared))
    return rows_of(
        table, target=target, node_column=node_column, drop=drop, schema=schema, encoding=encoding,
    )  # fmt: skip


def rows_of(
    table: Table,
    *,
    target: str,
    node_column: str | None = None,
    drop: Sequence[str] = (),
    schema: Schema | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    encoding: Encoding | None = None,
) -> Rows:
    """Return the rows of a table; see `read_rows`.

    Parameters
    ----------
    table
        The table.
    target
        The column to predict.
    node_column
        The column that names the node of each row.
    drop
        Columns that are left out.
    schema
        Declared categories, scales and ranges of columns, as for `read_rows`.
    encoding
        An earlier encoding.

    Returns
    -------
    Rows

    Examples
    --------
    >>> columns = {"age": lambda: np.array([30.0, 41.0]), "ill": lambda: np.array([0.0, 1.0])}
    >>> table = Table(columns, row_count=2, source="people.csv")
    >>> rows_of(table, target="ill", schema={"age": {"range": [0, 100]}}).X.tolist()
    [[-0.4], [-0.18]]
    """
    _check_roles(target, node_column, drop)
    y = _as_integers(table[target])
    nodes = None if node_column is None else _as_integers(table[node_column])
    not_features = [target, *drop, *([] if node_column is None else [node_column])]
    features = table.without(not_features)
    if encoding is None:
        declared = Schema.of(schema)
        declared.target_scale(target)  # refuses a wrong entry
        declared = declared.without(target)
        encoding = declared.apply_to(Encoding.of_table(features, declared.categories))
    X = encoding.encode(features)
    return Rows(X, y, nodes, encoding, target, table.name_row)


def _check_roles(target: str, node_column: str | None, drop: Sequence[str]) -> None:
    """Raise a DataError for a column with two roles: target, node column or left out."""
    if target == node_column:
        raise DataError(
            f"the column {target!r} cannot be the target and the node of each row. Choose another "
            "column for one of them."
        )
    for name, role in ((target, "is to be predicted"), (node_column, "names who owns a row")):
        if name in drop:
            raise DataError(f"the column {name!r} {role}, so it cannot be dropped.")


def _as_integers(cells: Array) -> Array:
    """Convert cells such as 3.0 to integers if all are whole, for nodes and classes."""
    if is_text(cells):
        return cells.astype(str)
    whole = bool((cells == np.floor(cells)).all()) and bool((np.abs(cells) < 2**53).all())
    return cells.astype(np.int64) if whole else cells
