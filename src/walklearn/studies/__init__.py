"""Studies: a grid of graphs, problems, methods and step sizes, run and stored cell by cell.

A study is a TOML text. Its grid is a list of *cells*, all run on the same instances. Each finished
cell is a Parquet file, so an interrupted study can be resumed.
"""

from walklearn.studies.cell import Cell
from walklearn.studies.cell_runs import run_cell
from walklearn.studies.import_paths import register_walk
from walklearn.studies.options import StudyError
from walklearn.studies.results import Results, ResultsError
from walklearn.studies.scheduler import run_study
from walklearn.studies.study import Study
from walklearn.studies.tables import CellResult

__all__ = [
    "Cell",
    "CellResult",
    "Results",
    "ResultsError",
    "Study",
    "StudyError",
    "register_walk",
    "run_cell",
    "run_study",
]
