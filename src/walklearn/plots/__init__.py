"""Pictures: convergence, visits on the graph, entrapment, the price of privacy, a walk in motion.

Every function takes axes to draw on, or makes new ones, and returns them. It shows and writes
nothing and changes no global setting; only `animate` writes a file. matplotlib is imported with the
first picture.
"""

from walklearn.plots.error_curves import COSTS, METRICS, convergence
from walklearn.plots.motion import animate
from walklearn.plots.stays import entrapment
from walklearn.plots.tradeoffs import privacy_tradeoff
from walklearn.plots.visited_graph import visits

__all__ = [
    "COSTS",
    "METRICS",
    "animate",
    "convergence",
    "entrapment",
    "privacy_tradeoff",
    "visits",
]
