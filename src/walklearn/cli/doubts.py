"""What looks like a mistake in the data: told, since training would go through all the same.

A wrong column or wrong labels make a model that is worth nothing, and exit code 0. What cannot be
meant is an error; what may be is a note that names the option to add.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from walklearn.files import Table

MANY_CATEGORIES = 20  # of a column of text, as of one that names who owns a row
MANY_COLUMNS = 500  # whoever has more does not want a note on each
FEW_ROWS = 20  # with fewer, numbers may all differ by chance
_OWNERS = re.compile(
    r"(site|node|client|device|hospital|clinic|owner|centre|center|bank|branch|store|user|patient)"
    r"(_?(id|name|number|no))?",
    flags=re.IGNORECASE,
)


def about_columns(table: Table, columns: tuple[str, ...], has_nodes: bool) -> list[str]:
    """Notes on columns that are learnt from and perhaps should not be."""
    notes = list[str]()
    for name in columns if len(columns) <= MANY_COLUMNS else ():
        if (note := _about(name, table[name], has_nodes)) is not None:
            notes.append(note)
    return notes


def _about(name: str, cells: NDArray[Any], has_nodes: bool) -> str | None:
    import numpy as np

    values, text = np.unique(cells), cells.dtype.kind not in "biuf"
    owner = f"If it names the node that owns a row, add --node-column {name}; "
    rest = f"if it should not be learnt from, --drop {name}."
    named = _OWNERS.fullmatch(name) is not None
    if len(values) == 1:
        return f"{name!r} is {_shown(values)[0]} in every row, so that nothing is learnt from it."
    if text and (len(values) >= MANY_CATEGORIES or named) and not has_nodes:
        return f"{name!r} is text, of which {len(values)} features were made. {owner}{rest}"
    whole = not text and bool((cells == np.floor(cells)).all())
    if whole and named and not has_nodes:
        return f"{name!r} is taken as a number to learn from. {owner}{rest}"
    if whole and len(values) == len(cells) > FEW_ROWS:
        return (
            f"{name!r} is another whole number in every row, as the number of a row would be, and "
            f"is learnt from. If it should not be, --drop {name}."
        )
    return None


def unknown_labels(table: Table, target: str, classes: NDArray[Any]) -> str | None:
    """What is wrong with the targets of other rows than those trained on; None for nothing.

    classes: those of training; empty where the target is a number.
    """
    import numpy as np

    from walklearn.files.encoding import texts_of
    from walklearn.files.wording import listed

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
        f"{table.source}: column {target!r} has {listed(_shown(np.unique(cells[strange])))} in "
        f"{strange.sum()} of {len(cells)} rows, and the model knows {listed(_shown(known))} only. "
        "Write the labels as in the rows that it is trained on."
    )


def _shown(labels: NDArray[Any]) -> list[str]:
    return [f"{label:g}" if isinstance(label, float) else str(label) for label in labels.tolist()]
