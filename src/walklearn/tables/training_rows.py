"""`Rows`: what a problem needs of a table: features, targets, and who owns each row."""

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
from walklearn.tables.table import DataError, Place, Table

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows ready to learn from.

    Parameters
    ----------
    X
        The encoded features, sparse if the file is.
    y
        The targets as they are in the file, whole numbers as such.
    nodes
        The owner of each row as it is in the file, a number or a name; None without a node
        column.
    encoding
        How columns become X.
    target
        The name of y.
    place
        Says in a message which row is meant.

    Examples
    --------
    >>> from walklearn.tables import Table
    >>> columns = {"age": lambda: np.array([30.0, 41.0]), "ill": lambda: np.array([0.0, 1.0])}
    >>> rows = rows_of(Table(columns, row_count=2, source="people.csv"), target="ill")
    >>> rows.columns, rows.X, rows.y, rows.classes
    (('age',), array([[30.],
           [41.]]), array([0, 1]), array([0, 1]))
    """

    X: Any  # an array, or a csr_array of SciPy's
    y: Array
    nodes: Array | None
    encoding: Encoding
    target: str
    place: Place

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that X was made from."""
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
    """Read a file and make rows of it.

    Parameters
    ----------
    path
        The file, of a kind that `read_table` reads.
    target
        The column to predict.
    node_column
        The column that says who owns a row.
    drop
        Columns to leave out.
    text
        Columns that are text even if they look like numbers.
    schema
        What is declared of columns instead of taken from the data: the possible values of text,
        the centre and spread or the range of numbers; a `Schema`, the path of its file, or what
        would stand there.
    encoding
        An encoding made before, as at prediction and as a network agrees on.
    delimiter
        What separates the cells of a CSV file; guessed if None.

    Returns
    -------
    Rows
        The rows, ready to learn from.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("clinic,age,ill\\nnorth,30,no\\nsouth,41,yes\\n")
    ...     rows = read_rows(path, target="ill", node_column="clinic")
    >>> rows.X, rows.y, rows.nodes
    (array([[30.],
           [41.]]), array(['no', 'yes'], dtype='<U3'), array(['north', 'south'], dtype='<U5'))
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
    """Make rows of a table that was read before; see `read_rows`.

    Parameters
    ----------
    table
        The table.
    target
        The column to predict.
    node_column
        The column that says who owns a row.
    drop
        Columns to leave out.
    schema
        What is declared of columns, as for `read_rows`.
    encoding
        An encoding made before.

    Returns
    -------
    Rows
        The rows, ready to learn from.

    Examples
    --------
    >>> from walklearn.tables import Table
    >>> columns = {"age": lambda: np.array([30.0, 41.0]), "ill": lambda: np.array([0.0, 1.0])}
    >>> table = Table(columns, row_count=2, source="people.csv")
    >>> rows_of(table, target="ill", schema={"age": {"range": [0, 100]}}).X
    array([[-0.4 ],
           [-0.18]])
    """
    _check_roles(target, node_column, drop)
    y = _whole_if_possible(table[target])
    nodes = None if node_column is None else _whole_if_possible(table[node_column])
    apart = [target, *drop, *([] if node_column is None else [node_column])]
    features = table.without(apart)
    if encoding is None:
        declared = Schema.of(schema)
        if declared.target_scale(target) is not None:
            declared = declared.without(target)
        try:
            encoding = Encoding.of_table(features, declared.categories)
        except DataError as error:
            named = table.source in str(error)
            raise error if named else DataError(f"{table.source}: {error}") from error
        encoding = declared.applied(encoding)
    X = encoding.encode(features)
    return Rows(X, y, nodes, encoding, target, table.place)


def _check_roles(target: str, node_column: str | None, drop: Sequence[str]) -> None:
    """Check that a column has one role: it is predicted, names the owner, or is left out."""
    if target == node_column:
        raise DataError(
            f"the column {target!r} cannot be both the target and the node of each row. Choose "
            "another column for one of them."
        )
    for name, role in ((target, "is to be predicted"), (node_column, "names who owns a row")):
        if name in drop:
            raise DataError(f"the column {name!r} {role}, so it cannot be dropped.")


def _whole_if_possible(cells: Array) -> Array:
    """Make whole numbers of labels such as 3.0, which is node 3 or class 3; text stays text."""
    if is_text(cells):
        return cells.astype(str)
    whole = bool((cells == np.floor(cells)).all()) and bool((np.abs(cells) < 2**53).all())
    return cells.astype(np.int64) if whole else cells
