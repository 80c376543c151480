"""The graph of the first instance, with how often each node was visited.

Positions are found here and not in the browser, so that the page is the same wherever it is
opened.

>>> import numpy as np
>>> drawing(3, np.array([[0, 1], [1, 2]]))["edges"]
[0, 1, 1, 2]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from walklearn.graphs import from_edges, spring_layout
from walklearn.graphs.positions import MAX_NODES
from walklearn.studies.report.figures import Block, Control, Figure, Series, plain_numbers
from walklearn.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas

MAX_ROWS = 100  # of the table of a graph that is not drawn
MAX_EDGES = 12_000  # more lines than that hide each other


def graph_visits(
    nodes: pandas.DataFrame, edges: pandas.DataFrame, file_of: Callable[[str], str]
) -> Block | None:
    """Describe a drawing per graph, with switches between the problems and the methods."""
    if nodes.empty:
        return None
    first = nodes["step_size"].iloc[0]  # steps don't change where a walk goes: one is enough
    shown = nodes[nodes["step_size"] == first]
    figures = [
        _figure(str(graph), visited, edges, file_of)
        for graph, visited in shown.groupby("graph", sort=False)
    ]
    return Block(
        kind="network",
        heading="The graph, and who was visited",
        caption=(
            "Instance 0. Area of a dot: visits. Colour: visits against what the walk's stationary "
            f"law promises, where there is one. Step size “{first}”."
        ),
        controls=[
            Control(name, name.capitalize(), {label: label for label in shown[name].unique()})
            for name in ("problem", "method")
        ],
        figures=figures,
        legend=False,
        options={
            "scale": {
                "title": "visits ÷ promised",
                "reach": 1.0,
                "marks": {"≤ ½": -1.0, "1": 0.0, "≥ 2": 1.0},
            }
        },
    )


def _figure(
    graph: str, visited: pandas.DataFrame, edges: pandas.DataFrame, file_of: Callable[[str], str]
) -> Figure:
    count = int(visited["node"].max()) + 1
    own = edges if edges.empty else edges.loc[edges["graph"] == graph, ["source", "target"]]
    pairs = own.to_numpy(dtype=np.int64).reshape(-1, 2)
    series = [
        _series(rows.sort_values("node"), file_of)
        for _, rows in visited.groupby(["problem", "method"], sort=False)
    ]
    return Figure(f"{graph}: {count:,} nodes", series, drawing(count, pairs))


def drawing(count: int, pairs: NDArray[np.int64]) -> dict[str, Any]:
    """Positions and edges of a graph, or a note why they are not drawn."""
    if count > MAX_NODES or not len(pairs):
        note = f"too large to draw; the table has the {MAX_ROWS} most visited nodes"
        return {"places": [[], []], "edges": [], "note": note}
    places = [plain_numbers(axis) for axis in spring_layout(from_edges(pairs, count)).T.round(4)]
    if len(pairs) > MAX_EDGES:
        note = f"{len(pairs):,} edges are too many to draw; these are the nodes alone"
        return {"places": places, "edges": [], "note": note}
    return {"places": places, "edges": pairs.ravel().tolist(), "note": plural(len(pairs), "edge")}


def _series(rows: pandas.DataFrame, file_of: Callable[[str], str]) -> Series:
    expected = rows["stationary"] * rows["visits"].sum()
    if len(rows) > MAX_NODES:
        rows = rows.nlargest(MAX_ROWS, "visits")
    columns = {name: rows[name].to_numpy() for name in ("node", "degree", "importance", "visits")}
    columns["expected visits"] = expected.loc[rows.index].to_numpy()
    file = file_of(f"nodes/{rows['cell'].iloc[0]}.parquet")
    keys = {name: str(rows[name].iloc[0]) for name in ("problem", "method")}
    return Series(keys["method"], columns, file, keys)
