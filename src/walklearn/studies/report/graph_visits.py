"""The graph of the first instance, with the number of visits of each node.

Positions are computed here and not in the browser: the page is then the same everywhere.

>>> import numpy as np
>>> drawing(3, np.array([[0, 1], [1, 2]]))["edges"]
[0, 1, 1, 2]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from walklearn.graphs import from_edges, spring_layout
from walklearn.graphs.positions import MAX_NODES
from walklearn.studies.report.figures import Block, Control, Figure, Series, plain_numbers
from walklearn.wording import plural

if TYPE_CHECKING:
    import pandas

MAX_ROWS = 100  # of the table of a graph that is not drawn
MAX_EDGES = 12_000  # more lines would hide each other


def graph_visits(
    nodes: pandas.DataFrame, edges: pandas.DataFrame, file_of: Callable[[str], str]
) -> Block | None:
    """Describe a drawing per graph, with controls for problem and method."""
    if nodes.empty:
        return None
    first = nodes["step_size"].iloc[0]  # steps do not change a path: one is enough
    shown = nodes[nodes["step_size"] == first]
    figures = []
    for graph, rows in shown.groupby("graph", sort=False):
        count = int(rows["node"].max()) + 1
        known = edges if edges.empty else edges.loc[edges["graph"] == graph, ["source", "target"]]
        series = [
            _series(each.sort_values("node"), file_of)
            for _, each in rows.groupby(["problem", "method"], sort=False)
        ]
        pairs = known.to_numpy(dtype=np.int64).reshape(-1, 2)
        figures.append(Figure(f"{graph}: {count:,} nodes", series, drawing(count, pairs)))
    marks = {"≤ ½": -1.0, "1": 0.0, "≥ 2": 1.0}
    return Block(
        kind="network",
        heading="Visits on the graph",
        caption=(
            "Instance 0. Area of a dot: visits. Colour: visits relative to the walk's stationary "
            f"distribution, where it has one. Step size “{first}”."
        ),
        controls=[
            Control(name, name.capitalize(), {label: label for label in shown[name].unique()})
            for name in ("problem", "method")
        ],
        figures=figures,
        legend=False,
        options={"scale": {"title": "visits ÷ expected", "reach": 1.0, "marks": marks}},
    )


def drawing(count: int, pairs: NDArray[np.int64]) -> dict[str, Any]:
    """Positions and edges of a graph, or a note why they are not drawn."""
    if count > MAX_NODES or not len(pairs):
        note = f"too large to draw; the table has the {MAX_ROWS} most visited nodes"
        return {"places": [[], []], "edges": [], "note": note}
    places = [plain_numbers(axis) for axis in spring_layout(from_edges(pairs, count)).T.round(4)]
    if len(pairs) > MAX_EDGES:
        note = f"{len(pairs):,} edges are too many to draw; only nodes are drawn"
        return {"places": places, "edges": [], "note": note}
    return {"places": places, "edges": pairs.ravel().tolist(), "note": plural(len(pairs), "edge")}


def _series(rows: pandas.DataFrame, file_of: Callable[[str], str]) -> Series:
    rows = rows.assign(**{"expected visits": rows["stationary"] * rows["visits"].sum()})
    if len(rows) > MAX_NODES:
        rows = rows.nlargest(MAX_ROWS, "visits")
    names = ["node", "degree", "importance", "visits", "expected visits"]
    keys = {name: str(rows[name].iloc[0]) for name in ("problem", "method")}
    file = file_of(f"nodes/{rows['cell'].iloc[0]}.parquet")
    return Series(keys["method"], {name: rows[name] for name in names}, file, keys)
