"""Measurements with targets, side by side where they can be; nothing fails on time.

A benchmark is a module with a function `measurements(quick)` that yields rows of
`benchmarks.measurement.Measurement`, and a last line `main(measurements, __doc__)`. It can be run
by itself (`python -m benchmarks.hops --quick`), and `python -m benchmarks` runs all into one table.
"""
