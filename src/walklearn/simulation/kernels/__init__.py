"""Compiled twins of the reference: the same numbers at the speed of C.

The kernels repeat the formulas of losses, domains, walks and updates in a form that Numba compiles;
tests/simulation/test_equivalence.py compares every kernel with the reference. Walks, rows and
losses are named tuples: a kernel has machine code for each combination of their types. Indices are
unsigned, because Numba would check signed ones for negative values.
"""
