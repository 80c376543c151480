"""Row marks: keyed 64-bit hashes of rows, by which a later run recognises the same rows.

A mark is a hash of all cells of a row, whichever columns a run uses. It does not depend on the
order of rows and columns, on the names of columns, or on the notation of numbers, missing cells and
ISO 8601 dates. It changes if a cell is changed, added or removed. The node column of a table may be
absent elsewhere, so a row with a node has two marks: with that column and without it. Sparse rows
are hashed with the positions of their entries.

Numbers are hashed in single precision, so a float32 copy of a row has the same mark. Different rows
collide with probability 2⁻⁶⁴, and a collision only makes a run look more expensive than it was. The
mark of a row cannot be computed without the key.

>>> marks = RowMarks(b"secret")
>>> one = marks.of(blocks_of([[30.0, "Ann"], [41, "Bo"]], ["ill", "well"]))
>>> other = marks.of(blocks_of([["Bo", "41.0"]], ["well"]))
>>> len(one), bool(np.isin(other, one))
(2, True)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from walklearn.tables.csv_column import MISSING
from walklearn.tables.sparse_table import SparseTable
from walklearn.tables.table import Table

Marks = NDArray[np.uint64]

ROWS_AT_ONCE = 65_536  # bounds the memory; the arrays of a column stay in the cache
MAX_CACHED_TEXTS = 2**18
_MISSING = MISSING | {"none", "nat", "<na>", "#n/a", "#na", ".", "-"}
_NUMBER_OF_WORD = {"true": 1.0, "false": 0.0} | dict.fromkeys(_MISSING, np.nan)


class RowBlock(NamedTuple):
    """Consecutive rows: dense columns, and optionally sparse features and a node column."""

    columns: Sequence[Any]
    sparse: Any = None
    nodes: Any = None


class RowMarks:
    """Compute the marks of rows under one key.

    Parameters
    ----------
    key
        Up to 64 secret bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        digest = hashlib.blake2b(b"numbers", key=key, digest_size=32).digest()
        self._multiplier, self._cell, self._place, self._row = np.frombuffer(digest, "<u8").copy()
        self._multiplier |= np.uint64(1)
        self._hash_of_text: dict[str, int] = {}  # the hash of each text that has occurred

    def of(self, blocks: Iterable[RowBlock]) -> Marks:
        """Return the marks of all rows in ascending order; equal rows give equal marks.

        A row with a node column has a mark with that column and a mark without it.
        """
        parts = [self.of_block(block) for block in blocks]
        marks = np.concatenate(parts) if parts else np.zeros(0, np.uint64)
        marks.sort()
        return marks

    def of_block(self, block: RowBlock) -> Marks:
        """Return the marks of the rows in order, then their marks with the node column, if any."""
        # A sum does not depend on the order of the columns.
        rows = len(block.columns[0]) if block.sparse is None else block.sparse.shape[0]
        total = np.zeros(rows, np.uint64) if block.sparse is None else self._entries(block.sparse)
        for column in block.columns:
            total += self._cells(column)
        marks = mix_bits(total ^ self._row)
        if block.nodes is None:
            return marks
        total += self._cells(block.nodes)
        return np.concatenate([marks, mix_bits(total ^ self._row)])

    def _cells(self, column: Any) -> Marks:
        if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
            return self._numbers(column.astype(np.float64))
        if isinstance(column, np.ndarray) and column.dtype.kind not in "OUS":
            column = column.astype(str)
        try:
            return self._numbers(np.fromiter(map(float, column), np.float64, len(column)))
        except (TypeError, ValueError, OverflowError):
            return self._texts([_text(cell) for cell in column])

    def _texts(self, texts: list[str]) -> Marks:
        if len(self._hash_of_text) > MAX_CACHED_TEXTS:
            self._hash_of_text.clear()
        new = [text for text in dict.fromkeys(texts) if text not in self._hash_of_text]
        numbers = {text: number for text in new if (number := _number(text)) is not None}
        hashes = self._numbers(np.array(list(numbers.values()), np.float64))
        self._hash_of_text.update(zip(numbers, hashes.tolist(), strict=True))
        for text in new:
            if text not in numbers:
                plain = _normalise_date(text).encode()
                digest = hashlib.blake2b(plain, key=self._key, digest_size=8).digest()
                self._hash_of_text[text] = int.from_bytes(digest, "little")
        return np.fromiter((self._hash_of_text[text] for text in texts), np.uint64, len(texts))

    def _numbers(self, numbers: NDArray[np.float64], places: Marks | None = None) -> Marks:
        with np.errstate(over="ignore"):
            single = numbers.astype(np.float32) + np.float32(0.0)  # −0 becomes 0
        single[np.isnan(single)] = np.nan
        marks = single.view(np.uint32).astype(np.uint64)
        marks *= self._multiplier
        marks += self._cell if places is None else places
        return mix_bits(marks)

    def _entries(self, X: Any) -> Marks:
        """Return the sum of the hashes of each sparse row's non-zero entries."""
        if not X.has_canonical_format:  # a row may have several entries in a column
            X = X.astype(np.float64)
            X.sum_duplicates()
        places = mix_bits(X.indices.astype(np.uint64) + self._place)
        hashes = self._numbers(np.asarray(X.data, dtype=np.float64), places)
        hashes[np.asarray(X.data).astype(np.float32) == 0] = 0
        running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
        sums: Marks = running[X.indptr[1:]] - running[X.indptr[:-1]]
        return sums


def table_blocks(table: Table, node_column: str | None = None) -> Iterator[RowBlock]:
    """Yield the unchecked cells of a table, including columns that are not used."""
    if isinstance(table, SparseTable):
        columns, sparse = dict(table.other_columns), table.all_rows
    else:
        columns, sparse = dict(table.unchecked()), None
    nodes = columns.pop(node_column, None) if node_column is not None else None
    return _blocks(list(columns.values()), nodes, sparse)


def blocks_of(X: Any, y: Any) -> Iterator[RowBlock]:
    """Yield the cells of rows in memory: an array, lists, a data frame or a sparse matrix."""
    targets = np.asarray(y)
    beside = list(targets.T) if targets.ndim > 1 else [targets]
    if hasattr(X, "tocsr"):
        return _blocks(beside, sparse=X.tocsr())
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):  # a data frame has a type per column
        return _blocks([*(X[name].to_numpy() for name in X.columns), *beside])
    rows = np.asarray(X)
    if not isinstance(X, np.ndarray) and rows.dtype.kind not in "biuf":
        rows = np.asarray(X, dtype=object)  # numbers beside texts stay numbers
    if rows.ndim != 2:
        raise ValueError(f"X must have rows and columns, got an array of shape {rows.shape}.")
    return _blocks([*rows.T, *beside])


def _blocks(columns: Sequence[Any], nodes: Any = None, sparse: Any = None) -> Iterator[RowBlock]:
    count = {len(column) for column in columns} | (set() if sparse is None else {sparse.shape[0]})
    if len(count) > 1:
        raise ValueError(f"X and y must have equally many rows, got {sorted(count)}.")
    for start in range(0, count.pop(), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        part = None if sparse is None else sparse[rows]
        nodes_part = None if nodes is None else _cells(nodes[rows])
        yield RowBlock([_cells(column[rows]) for column in columns], part, nodes_part)


def _cells(part: Any) -> Any:
    """Return the cells of part of a column; a pyarrow column becomes a list."""
    return part.to_pylist() if hasattr(part, "to_pylist") else part


def _text(cell: object) -> str:
    return (cell.decode(errors="replace") if isinstance(cell, bytes) else str(cell)).strip()


def _normalise_date(text: str) -> str:
    """Return an ISO 8601 date or time in one notation, and any other text unchanged.

    >>> _normalise_date("2020-01-01 00:00:00"), _normalise_date("2020-01-01T13:30+01:00")
    ('2020-01-01', '2020-01-01T12:30:00')
    """
    if "-" not in text or not text[0].isdigit():
        return text
    try:
        time = datetime.fromisoformat(text)
        time = time if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return text
    return time.replace(tzinfo=None).isoformat().removesuffix("T00:00:00")


def _number(text: str) -> float | None:
    """Return the number of a text (NaN if missing, 1 for true), or None for other texts."""
    if (number := _NUMBER_OF_WORD.get(text.lower())) is not None:
        return number
    try:
        return float(text)
    except ValueError:
        return None


def mix_bits(marks: Marks) -> Marks:
    """Mix 64 bits in place, so that every input bit affects all output bits (SplitMix64)."""
    marks ^= marks >> np.uint64(30)
    marks *= np.uint64(0xBF58476D1CE4E5B9)
    marks ^= marks >> np.uint64(27)
    marks *= np.uint64(0x94D049BB133111EB)
    marks ^= marks >> np.uint64(31)
    return marks
