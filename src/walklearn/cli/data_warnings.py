"""What looks like a mistake in the data: told, since training would go through all the same.

A wrong column or wrong labels make a model that is worth nothing, and exit code 0. What cannot be
meant is an error; what may be is a note that names the option to add.
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
from walklearn.wording import listed

if TYPE_CHECKING:
    from walklearn.node.agreement.plan import Plan

MANY_CATEGORIES = 20  # of a column of text, as of one that names who owns a row
MANY_COLUMNS = 500  # whoever has more does not want a note on each
FEW_ROWS = 20  # with fewer, numbers may all differ by chance
NEARLY_ALL = 0.9  # of the rows: owners of rows are fewer
_OWNERS = re.compile(
    r"(site|node|client|device|hospital|clinic|owner|centre|center|bank|branch|store|user|patient)"
    r"(e?s)?([ _-]?(id|code|key|name|number|no)s?)?",
    flags=re.IGNORECASE,
)


def looks_like_owners(name: str) -> bool:
    """Whether a column of this name may say who owns a row.

    >>> [looks_like_owners(name) for name in ("Hospital ID", "clinic_codes", "radius")]
    [True, True, False]
    """
    return _OWNERS.fullmatch(name.strip()) is not None


def about_columns(table: Table, columns: tuple[str, ...], has_nodes: bool) -> list[str]:
    """Notes on columns that are learnt from and perhaps should not be."""
    notes = list[str]()
    for name in columns if len(columns) <= MANY_COLUMNS else ():
        if (note := _about(name, table[name], has_nodes)) is not None:
            notes.append(note)
    return notes


def about_owners(name: str | None, nodes: NDArray[Any] | None) -> list[str]:
    """Notes on a --node-column that looks like a measurement, or like the number of a row."""
    if nodes is None:
        return []
    values = np.unique(nodes)
    measured = values.dtype.kind == "f" and bool((values != np.floor(values)).any())
    if not measured and len(values) <= max(FEW_ROWS, NEARLY_ALL * len(nodes)):
        return []
    looks = (
        f"holds numbers such as {shown(values)[0]}, as a measurement does" if measured else
        f"has {len(values)} different values in {len(nodes)} rows, as the number of a row does"
    )  # fmt: skip
    return [
        f"--node-column {name} {looks}, and each value is the name of a node: {len(values)} nodes "
        "were made, and nothing is learnt from the column. Is it the one that names who owns a row?"
    ]


def about_one_nodes_rows(table: Table, plan: Plan) -> list[str]:
    """Notes on rows that look like those of all nodes, where one node was given them."""
    why = list[str]()
    if plan.rows is not None and table.row_count >= plan.rows:
        why.append(f"it has {table.row_count} rows, as many as the plan says of all nodes together")
    for name in table:
        if name in plan.features or name == plan.target or not looks_like_owners(name):
            continue
        with suppress(DataError):  # what is wrong in a column that nobody uses is no matter
            if len(values := np.unique(table[name])) > 1:
                why.append(f"its column {name!r} names {listed(shown(values), 3)}")
    if plan.nodes == 1 or not why:
        return []
    return [
        f"{table.source} may hold everybody's rows: {', and '.join(why)}. A node learns from all "
        "rows it is given. If some are not its own, remove the directory before the node runs, and "
        "make it again with its own rows."
    ]


def _about(name: str, cells: NDArray[Any], has_nodes: bool) -> str | None:
    values, text = np.unique(cells), cells.dtype.kind not in "biuf"
    verb = "take" if has_nodes else "add"
    owner = f"If it names the node that owns a row, {verb} --node-column {shlex.quote(name)}; "
    rest = f"if it should not be learnt from, --drop {shlex.quote(name)}."
    named = looks_like_owners(name)
    if len(values) == 1:
        return f"{name!r} is {shown(values)[0]} in every row, so that nothing is learnt from it."
    if text and (named or (len(values) >= MANY_CATEGORIES and not has_nodes)):
        return f"{name!r} is text, of which {len(values)} features were made. {owner}{rest}"
    whole = not text and bool((cells == np.floor(cells)).all())
    if whole and named:
        return f"{name!r} is taken as a number to learn from. {owner}{rest}"
    if whole and len(values) == len(cells) > FEW_ROWS:
        return (
            f"{name!r} is another whole number in every row, as the number of a row would be, and "
            f"is learnt from. If it should not be, --drop {shlex.quote(name)}."
        )
    return None


def unknown_labels(table: Table, target: str, classes: NDArray[Any]) -> str | None:
    """What is wrong with the targets of other rows than those trained on; None for nothing.

    classes: those of training; empty where the target is a number.
    """
    cells = table[target]
    text = cells.dtype.kind not in "biuf"
    if not len(classes):
        return (
            f"{table.source}: column {target!r} is text, such as {str(cells[0])!r}, and the model "
            "predicts numbers."
            if text
            else None
        )
    known = np.asarray(classes)
    if text or known.dtype.kind not in "biuf":
        cells, known = texts_of(cells), texts_of(known)
    strange = ~np.isin(cells, known)
    if not strange.any():
        return None
    return (
        f"{table.source}: column {target!r} has {listed(shown(np.unique(cells[strange])))} in "
        f"{strange.sum()} of {len(cells)} rows, and the model knows {listed(shown(known))} only. "
        "Write the labels as in the rows that it is trained on."
    )


def shown(labels: NDArray[Any]) -> list[str]:
    """Values as they stand in a file: 1 where NumPy has 1.0."""
    return [f"{label:g}" if isinstance(label, float) else str(label) for label in labels.tolist()]
