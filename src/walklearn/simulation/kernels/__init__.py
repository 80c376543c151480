"""Compiled twins of the reference: the same numbers at the speed of C.

    drivers      loops over tokens and visits, and the paths of tokens
    hops         the next node of each walk
    visits       updates, one file per update and kind of row
    rows         dense and sparse rows, and the gradient of a node
    losses       built-in losses and a user's own
    line_search  the step size that updates with memory find by themselves
    gossip       meetings and rounds
    values       f of many models
    arithmetic   exponentials, random numbers, step sizes
    compilation  decorators, and the cache on disk

The kernels repeat the formulas of `losses`, `domains`, walks and updates in a form that Numba
compiles. tests/simulation/test_equivalence.py compares every kernel with the reference. Walks, rows
and losses are named tuples; a kernel has machine code of its own for each combination of their
types. Indices are unsigned, because Numba would check signed ones for negative values.
"""
