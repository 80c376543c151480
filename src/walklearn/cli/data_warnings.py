"""Warnings about columns and labels that look like mistakes.

Without them, a wrong column or wrong labels would give a worthless model and exit code 0.
"""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from walklearn.tables.encoding import texts_of
from walklearn.tables.table import DataError, Table
from walklearn.wording import join_names

if TYPE_CHECKING:
    from walklearn.node.agreement.plan import Plan

MANY_CATEGORIES = 20  # a text column with at least this many may name the owners of rows
MANY_COLUMNS = 500  # with more columns there would be too many notes to read
FEW_ROWS = 20  # in this many rows, whole numbers may all differ by chance
MAX_NODE_SHARE = 0.9  # of the rows: a node column has fewer distinct values
_OWNERS = re.compile(
    r"(site|node|client|device|hospital|clinic|owner|centre|center|bank|branch|store|user|patient)"
    r"(e?s)?([ _-]?(id|code|key|name|number|no)s?)?",
    flags=re.IGNORECASE,
)


def looks_like_owners(name: str) -> bool:
    """Return True if a column of this name may contain the owners of rows.

    >>> [looks_like_owners(name) for name in ("Hospital ID", "clinic_codes", "radius")]
    [True, True, False]
    """
    return _OWNERS.fullmatch(name.strip()) is not None


def column_notes(table: Table, columns: tuple[str, ...], has_nodes: bool) -> list[str]:
    """Return notes on columns that are probably not features."""
    if len(columns) > MANY_COLUMNS:
        return []
    notes = (_about(name, table[name], has_nodes) for name in columns)
    return [note for note in notes if note is not None]


def node_column_notes(name: str | None, nodes: NDArray[Any] | None) -> list[str]:
    """Return notes on a --node-column that looks like a measurement or a row ID."""
    if nodes is None:
        return []
    values = np.unique(nodes)
    measured = values.dtype.kind == "f" and bool((values != np.floor(values)).any())
    if not measured and len(values) <= max(FEW_ROWS, MAX_NODE_SHARE * len(nodes)):
        return []
    looks = f"a row ID, with {len(values)} different values in {len(nodes)} rows"
    if measured:
        looks = f"a measurement, with numbers such as {plain_texts(values)[0]}"
    return [
        f"--node-column {name} looks like {looks}, but its {len(values)} values are used as nodes. "
        "Pass the column that names the owner of a row."
    ]


def node_file_notes(table: Table, plan: Plan) -> list[str]:
    """Return a note if the rows of one node look like the rows of all nodes."""
    why = list[str]()
    if plan.rows is not None and table.row_count >= plan.rows:
        why.append(f"it has {table.row_count} rows, the number of rows of all nodes in the plan")
    for name in table:
        if name in plan.features or name == plan.target or not looks_like_owners(name):
            continue
        with suppress(DataError):  # mistakes in an unused column do not matter
            if len(values := np.unique(table[name])) > 1:
                why.append(f"its column {name!r} names {join_names(plain_texts(values), 3)}")
    if plan.nodes == 1 or not why:
        return []
    return [
        f"{table.source} may contain the rows of all nodes: {', and '.join(why)}. If so, remove "
        "the directory before the node runs, and make it again with the node's own rows."
    ]


def _about(name: str, cells: NDArray[Any], has_nodes: bool) -> str | None:
    values, text = np.unique(cells), cells.dtype.kind not in "biuf"
    column, named = shlex.quote(name), looks_like_owners(name)
    owner = f"If it names the node that owns a row, pass --node-column {column}"
    drop = f"Drop it with --drop {column}, unless that is intended."
    if len(values) == 1:
        return f"{name!r} is {plain_texts(values)[0]} in every row. {drop}"
    if text and (named or (len(values) >= MANY_CATEGORIES and not has_nodes)):
        return f"{name!r} is text and becomes {len(values)} features. {owner}. {drop}"
    whole = not text and bool((cells == np.floor(cells)).all())
    if whole and named:
        return f"{name!r} is used as a number. {owner}. {drop}"
    if whole and len(values) == len(cells) > FEW_ROWS:
        return f"{name!r} looks like a row ID but is used as a feature. {drop}"
    return None


def unknown_labels(table: Table, target: str, classes: NDArray[Any]) -> str | None:
    """Return a message if the targets of a test file do not fit the model, else None.

    classes: the classes of training; empty for regression.
    """
    cells = table[target]
    text = cells.dtype.kind not in "biuf"
    if not len(classes):
        problem = f"is text, such as {str(cells[0])!r}, and the model predicts numbers."
        return f"{table.source}: column {target!r} {problem}" if text else None
    known = np.asarray(classes)
    if text or known.dtype.kind not in "biuf":
        cells, known = texts_of(cells), texts_of(known)
    strange = ~np.isin(cells, known)
    if not strange.any():
        return None
    labels, others = (join_names(plain_texts(each)) for each in (np.unique(cells[strange]), known))
    return (
        f"{table.source}: column {target!r} has {labels} in {strange.sum()} of {len(cells)} rows, "
        f"but the classes of the model are {others}. Write the labels as in the training rows."
    )


def plain_texts(labels: NDArray[Any]) -> list[str]:
    """Return the values as text, with 1 for 1.0, as in most files."""
    return [f"{label:g}" if isinstance(label, float) else str(label) for label in labels.tolist()]
