"""The common form of all benchmarks: what was measured, and what it should be.

A benchmark yields its rows as it measures them:

    def measurements(quick: bool) -> Iterator[Measurement]:
        yield Measurement("reading a CSV, over pyarrow's reader", seconds / pyarrows, "times", 1.5)

    if __name__ == "__main__":
        main(measurements, __doc__)

Quick measurements do the same on small sizes, to show that the benchmark runs; their figures mean
little. A target is the most that is allowed, or with `at_least` the least; a row without one is
there to be read. What cannot be measured here (no gcc, too little memory) has the value NaN and a
note that says why.

>>> Measurement("a hop, over a C loop's", 1.234, "times", 1.3).missed
False
>>> Measurement("walklearn's speed over NumPy's", 31.0, "times", 40, at_least=True).missed
True
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import NamedTuple

from benchmarks.machine import machine


class Measurement(NamedTuple):
    """A row of the table."""

    what: str
    value: float
    unit: str  # "times", "s", "ms", "ns", "MB", "1/s"
    target: float | None = None
    at_least: bool = False
    note: str = ""  # the condition it was measured under, or why it could not be
    own_time: float | None = None  # what `compare` takes instead of the value; see `cost`

    @property
    def missed(self) -> bool:
        """Whether it was measured, and the target not met."""
        if self.target is None or math.isnan(self.value):
            return False
        return self.value < self.target if self.at_least else self.value > self.target

    @property
    def cost(self) -> float:
        """Figure by which `compare` judges two commits; lower is better.

        It is `own_time` if the value is a ratio of two times of walklearn, which hides a change of
        both, or a wall-clock time that the processor time is more precise than.

        >>> Measurement("C / one token", 0.8, "times", at_least=True).cost
        1.25
        >>> Measurement("Saga / Sgd", 1.6, "times", own_time=39.0).cost
        39.0
        """
        if self.own_time is not None:
            return self.own_time
        return 1.0 / self.value if self.at_least else self.value

    @property
    def cells(self) -> tuple[str, ...]:
        """What the table shows."""
        value = "–" if math.isnan(self.value) else f"{number(self.value)} {self.unit}"
        sign = "≥" if self.at_least else "≤"
        target = "" if self.target is None else f"{sign} {self.target:,g}"
        return self.what, value, target, "missed" if self.missed else "", self.note


Measurements = Callable[[bool], Iterator[Measurement]]

HEADINGS = ("what", "measured", "target", "", "note")


def number(value: float) -> str:
    """Three digits, or all those before the point."""
    if math.isinf(value):
        return "∞"
    digits = 3 - len(str(int(abs(value)))) if abs(value) >= 1 else 2
    return f"{value:,.{max(0, digits)}f}"


def table(rows: Iterable[Measurement]) -> str:
    """A table in Markdown; the columns of numbers are flush right."""
    grid = [HEADINGS, *(row.cells for row in rows)]
    widths = [max(len(line[column]) for line in grid) for column in range(len(HEADINGS))]
    right = (1, 2)
    text = [
        "| "
        + " | ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        + " |"
        for line in grid
    ]
    rule = ("-" * (w + 1) + (":" if place in right else "-") for place, w in enumerate(widths))
    return "\n".join([text[0], "|" + "|".join(rule) + "|", *text[1:]])


def missed_lines(rows: Iterable[Measurement]) -> list[str]:
    """The targets that are missed, by name."""
    return [
        f"missed: {row.what}: {row.cells[1]}, target {row.cells[2]}" for row in rows if row.missed
    ]


def main(measurements: Measurements, description: str | None) -> None:
    """Run one benchmark from the command line, row by row."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    add_check(parser)
    options = parser.parse_args()
    rows = []
    for row in measurements(options.quick):
        rows.append(row)
        print("  ".join(filter(None, row.cells)), file=sys.stderr, flush=True)
    print("\n".join(f"- {line}" for line in machine()), end="\n\n")
    print(table(rows), *missed_lines(rows), sep="\n")
    sys.exit(exit_code(rows, options.check))


def add_check(parser: argparse.ArgumentParser) -> None:
    """Add the option --check."""
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")


def exit_code(rows: Iterable[Measurement], check: bool) -> int:
    """Return 1 if targets are checked and one is missed, else 0.

    >>> row = Measurement("a hop, over a C loop's", 1.4, "times", 1.3)
    >>> exit_code([row], check=True), exit_code([row], check=False)
    (1, 0)
    """
    return int(check and any(row.missed for row in rows))


def print_rows(name: str, quick: bool) -> None:
    """The rows of a module, a line of JSON for each as it comes."""
    for row in import_module(f"benchmarks.{name}").measurements(quick):
        print(json.dumps(row), flush=True)


def print_costs(name: str, quick: bool) -> None:
    """Print [what, cost] of each row that measures time, as one line of JSON for each.

    `compare` starts this in two commits, so its output keeps its form. A module may define
    `timed(quick)` if only a part of its rows measures time.
    """
    module = import_module(f"benchmarks.{name}")
    for row in getattr(module, "timed", module.measurements)(quick):
        if math.isfinite(row.value):
            print(json.dumps([row.what, row.cost]), flush=True)
