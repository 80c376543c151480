"""Runs a study's cells and keeps each as soon as it is finished."""

from __future__ import annotations

import os
from pathlib import Path

from walklearn.studies.cell import run
from walklearn.studies.results import Results
from walklearn.studies.study import Study


def run_study(study: Study, out: str | os.PathLike[str] = "results") -> Results:
    """Run what is not finished yet of a study; its results are in `out`/name-of-the-study."""
    results = Results.prepare(Path(out) / study.name, study)
    for cell in study.cells():
        if not results.finished(cell):
            results.write(cell, run(cell))
    return results
