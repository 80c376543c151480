"""A still picture for every shipped study, drawn from its stored results.

>>> sorted(PICTURES)[:3]
['bounds', 'communication', 'fig2a']
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from walklearn.experiments.pictures.by_epsilon import price
from walklearn.experiments.pictures.by_graph import bounds, topologies
from walklearn.experiments.pictures.by_target import communication
from walklearn.experiments.pictures.convergence import (
    figure_2,
    figure_3,
    heterogeneous,
    real_data,
    slope,
)
from walklearn.experiments.pictures.win_map import win_map
from walklearn.files.atomic_write import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from walklearn.studies import Results

PICTURES: dict[str, Callable[[Results], Figure]] = {
    "fig2a": figure_2,
    "fig2b": figure_2,
    "fig3": figure_3,
    "slope": slope,
    "bounds": bounds,
    "heterogeneous": heterogeneous,
    "map": win_map,
    "topologies": topologies,
    "price": price,
    "communication": communication,
    "real-data": real_data,
}


def save(figure: Figure, directory: Path, name: str) -> list[Path]:
    """The figure as PNG and as SVG; each file appears whole or not at all."""
    # Panels are laid out once, which takes longer than drawing them.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    paths = []
    for suffix in (".png", ".svg"):
        content = io.BytesIO()
        # Without a date the same results give the same file.
        metadata = {"Date": None} if suffix == ".svg" else {}
        figure.savefig(content, format=suffix[1:], dpi=110, metadata=metadata)
        paths.append(directory / f"{name}{suffix}")
        atomic_write(paths[-1], content.getvalue())
    return paths
