"""The compiled twins of `walk_sgd` and `gossip_sgd`: the same numbers, at the speed of C.

They repeat the formulas of `losses`, `domains` and the walks' `hop` in the form that Numba
compiles; tests/simulation/test_equivalence.py holds every one of them against its original.

    paths        who is next
    walks        updates along paths, or with the hops on the way
    gossip       meetings and rounds
    rows         a visit to any rows: gradient and step, for any loss and domain
    sparse       updates that cost as much as a row has entries that are not 0
    memory       updates that remember gradients
    sparse_memory  the same at the cost of a row's entries
    found_step   the step that both find on the way
    values       f of many models
    arithmetic   losses, exponentials, random numbers
    cached       how they are compiled and kept

Arrays are taken out of their tuples once, and indexed with unsigned integers: the one spares
counting references, the other a test for negative indices, in every step.
"""

from walklearn.simulation.compiled.arithmetic import (
    HUBER,
    LOGISTIC,
    SOFTMAX,
    SQUARED,
    SQUARED_HINGE,
    step_sizes,
)
from walklearn.simulation.compiled.gossip import (
    Nodes,
    advance_asynchronous,
    advance_asynchronous_one_row,
    advance_synchronous,
    track_gradients,
)
from walklearn.simulation.compiled.memory import (
    Memory,
    remember_near_rows,
    remember_one_row,
    remember_rows,
)
from walklearn.simulation.compiled.paths import (
    HISTORY,
    INDEPENDENT,
    JUMPING,
    METROPOLIS,
    NON_BACKTRACKING,
    Chain,
    Records,
    Tokens,
    find_paths,
)
from walklearn.simulation.compiled.rows import Data
from walklearn.simulation.compiled.sparse import Factors, update_sparse
from walklearn.simulation.compiled.sparse_memory import remember_sparse
from walklearn.simulation.compiled.values import TOGETHER, values
from walklearn.simulation.compiled.walks import (
    SHORT,
    Noise,
    update_one_row,
    update_rows,
    walk_long_rows,
    walk_short_rows,
)

__all__ = [
    "HISTORY",
    "HUBER",
    "INDEPENDENT",
    "JUMPING",
    "LOGISTIC",
    "METROPOLIS",
    "NON_BACKTRACKING",
    "SHORT",
    "SOFTMAX",
    "SQUARED",
    "SQUARED_HINGE",
    "TOGETHER",
    "Chain",
    "Data",
    "Factors",
    "Memory",
    "Nodes",
    "Noise",
    "Records",
    "Tokens",
    "advance_asynchronous",
    "advance_asynchronous_one_row",
    "advance_synchronous",
    "find_paths",
    "remember_near_rows",
    "remember_one_row",
    "remember_rows",
    "remember_sparse",
    "step_sizes",
    "track_gradients",
    "update_one_row",
    "update_rows",
    "update_sparse",
    "values",
    "walk_long_rows",
    "walk_short_rows",
]
