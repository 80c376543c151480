"""Figures that are computed and not simulated, kept in a directory as a study's results are.

about.json        what it is, by which version, on which machine
curves.parquet    a row per point: panel, series, x, y, what the axes say, and its provenance
"""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from walklearn import __version__
from walklearn.experiments import figure1
from walklearn.experiments.shipped import COMPUTED
from walklearn.files.atomic_write import atomic_write
from walklearn.studies.cell import FORMAT, digest
from walklearn.studies.provenance import keeping, now, origin

if TYPE_CHECKING:
    import pandas

_NOTE = (
    "The paper states no bounds for the values; shown are 50 to 100 (ρ = 2) and 10 to 100 "
    "(ρ = 10). Only ρ matters: θ scales with the bounds. Exact accounting is the hockey stick of "
    "the extreme pair; the lemma is the paper's tail bound. Where the lines of the unclamped "
    "Gamma are missing, no θ will do."
)

_NO_SEED = "none"  # nothing is drawn


def compute(name: str, out: str | os.PathLike[str]) -> tuple[Path, pandas.DataFrame]:
    """Compute fig1a or fig1b into `out`/name; the directory and the points."""
    folder = Path(out) / name
    started, computed = now(), origin(_NO_SEED)
    points = figure1.table(name).assign(**computed, **keeping(digest(name, figure1.settings())))
    folder.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    points.to_parquet(content, index=False)
    atomic_write(folder / "curves.parquet", content.getvalue())
    about = {
        "format": FORMAT,
        "walklearn": __version__,
        "study": name,
        "question": COMPUTED[name],
        "note": _NOTE,
        "quick": False,
        "started": started,
        "machine": computed["machine"],
        "cells": {},
    }
    atomic_write(folder / "about.json", json.dumps(about, indent=1).encode())
    return folder, points
