"""Side-by-side ratios against C, NumPy and the memory itself; never part of the tests."""
