"""Pictures: convergence, visits on the graph, entrapment, the price of privacy, a walk in motion.

Every function takes axes to draw on, or makes new ones, and returns them; nothing is shown or
written, no global setting is changed. `animate` alone writes a file. matplotlib is imported when
the first picture is drawn.

>>> import walklearn as wl
>>> from matplotlib.figure import Figure
>>> graph = wl.graphs.star(9)
>>> axes = wl.plot.entrapment(graph, wl.walks.Uniform(), ax=Figure().subplots())
>>> axes.get_ylabel()
'updates in a row, mean'
"""

from walklearn.plot.axes import check_choice
from walklearn.plot.error_curves import COSTS, METRICS, convergence
from walklearn.plot.motion import animate
from walklearn.plot.stays import entrapment
from walklearn.plot.tradeoffs import privacy_tradeoff
from walklearn.plot.visited_graph import visits

__all__ = [
    "COSTS",
    "METRICS",
    "animate",
    "check_choice",
    "convergence",
    "entrapment",
    "privacy_tradeoff",
    "visits",
]
