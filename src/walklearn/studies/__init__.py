"""Studies: a grid of graphs, problems, methods and step sizes, run and stored cell by cell.

A study is data (a TOML text). Its grid is a list of *cells*, each run on the same instances;
each finished cell is a Parquet file, so that an interrupted study goes on where it stopped.

>>> study = Study.from_text('''
... name = "two-walks"
... instances = 3
... updates = 100
... [graphs.ring]
... family = "ring"
... nodes = 11
... [problems.gaussians]
... data = "two_gaussians"
... dimension = 2
... penalty = 1.0
... [methods.uniform]
... walk = "uniform"
... [methods.weighted]
... walk = "weighted"
... [step_sizes.printed]
... constant = 0.1
... exponent = 0.75
... ''')
>>> [cell.method for cell in study.cells()]
['uniform', 'weighted']
"""

from walklearn.studies.cell import Cell
from walklearn.studies.cell_runs import run
from walklearn.studies.engines import run_study
from walklearn.studies.options import StudyError
from walklearn.studies.origins import register_update, register_walk
from walklearn.studies.results import Results, ResultsError
from walklearn.studies.study import Study
from walklearn.studies.tables import CellResult

__all__ = [
    "Cell",
    "CellResult",
    "Results",
    "ResultsError",
    "Study",
    "StudyError",
    "register_update",
    "register_walk",
    "run",
    "run_study",
]
