"""The walks: the rules for the next node, and the weights of gradients.

A Metropolis walk proposes a uniform neighbour j of i and accepts with probability
min(1, a(i, j)), a = (v_j / v_i)(deg_i / deg_j); otherwise the token stays and the node does
another update. Its stationary distribution is ∝ v, the *visit weights*::

    Simple    v = deg     a = 1                   ĝ = ∇f_i, biased by degree
    Uniform   v = 1       a = deg_i / deg_j       ĝ = ∇f_i                    (Algorithm 1)
    Weighted  v = L       as above                ĝ = (L̄ / L_i) ∇f_i          (Algorithm 2)
              v = R       as above                ĝ = (R̄ / R_i) ∇f_i          (Algorithm 3)

`Simple(reweight=…)` removes its bias by the degree or by gaps between visits (`gap_weights`). The
walks of `covering` are not of this kind: they bound these gaps.

Only the ratio of `score` = v / deg matters: a(i, j) = score_j / score_i.

One uniform number drives a whole Metropolis step. Its part below `laziness` keeps the token. The
rest is stretched to [0, degree): its integer part selects the neighbour and its fraction decides on
acceptance. (53 bits are enough for both: the fraction keeps 53 − log₂ degree.)
"""

from walklearn.walks.composed import ComposedWalk
from walklearn.walks.covering import OldestFirst, Tour
from walklearn.walks.history_driven import HistoryDriven
from walklearn.walks.independent import Independent
from walklearn.walks.jumping import Jumping
from walklearn.walks.markov import StationaryUnknownError
from walklearn.walks.metropolis import Metropolis, Simple, Uniform
from walklearn.walks.non_backtracking import NonBacktracking
from walklearn.walks.view import Hop, View, view_of
from walklearn.walks.walk import WALKS, Walk
from walklearn.walks.weighted import Weighted

__all__ = [
    "WALKS",
    "ComposedWalk",
    "HistoryDriven",
    "Hop",
    "Independent",
    "Jumping",
    "Metropolis",
    "NonBacktracking",
    "OldestFirst",
    "Simple",
    "StationaryUnknownError",
    "Tour",
    "Uniform",
    "View",
    "Walk",
    "Weighted",
    "view_of",
]
