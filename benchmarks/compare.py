"""Time of the working tree over that of another commit: `python -m benchmarks.compare BASE NAME…`.

    python -m benchmarks.compare main hops memory             # 7 runs of each
    python -m benchmarks.compare --check --rounds 5 main startup
    python -m benchmarks.compare --quick main hops            # small sizes, to see that it runs

Each commit runs its own benchmarks in new processes, in turns: base, new, base, …, new, base. BASE
is checked out in a temporary worktree. Each commit has its own directory for compiled kernels, and
one quick run fills it first. BASE must contain `measurement.print_costs`, so it cannot be older
than this module. Rows are matched by their names. `--rounds N` starts N processes of the working
tree and N + 1 of BASE for each benchmark.

The table has two columns. The ratio of medians is new over base: above 1 is slower. The spread of
base against base is the largest ratio between a run of base and the median of its runs. Speeds are
inverted, and a ratio of two times of walklearn is replaced by the time (`Measurement.cost`).

`--check` exits with 1 if the geometric mean of a benchmark's ratios exceeds 1.05, if the ratio of a
row exceeds 1.15 times its spread, or if a row or a run is missing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import geometric_mean, median
from typing import NamedTuple

from benchmarks.__main__ import NAMES

PROJECT = Path(__file__).resolve().parents[1]
MAX_MEAN, MAX_ROW = 1.05, 1.15

Costs = dict[str, float]  # of one run: a figure for each row, lower is better


class Tree(NamedTuple):
    """Files of a commit, and the directory for its compiled kernels."""

    path: Path
    kernels: Path

    def run(self, name: str, quick: bool) -> Costs:
        """Run a benchmark in a new process; CalledProcessError if it fails."""
        code = (
            "import walklearn, pathlib; from benchmarks.measurement import print_costs; "
            f"assert pathlib.Path(walklearn.__file__).is_relative_to({str(self.path)!r}); "
            f"print_costs({name!r}, {quick})"
        )
        environment = os.environ | {
            "PYTHONPATH": str(self.path / "src"),
            "NUMBA_CACHE_DIR": str(self.kernels),
        }
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=self.path, env=environment, check=True,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        return dict(json.loads(line) for line in done.stdout.splitlines())


class Row(NamedTuple):
    """Comparison of one row; the ratio is NaN if one of the commits lacks the row."""

    what: str
    ratio: float
    spread: float

    @property
    def is_slower(self) -> bool:
        """True if the row is slower by more than 15 % beyond its spread, or missing."""
        return not self.ratio <= MAX_ROW * self.spread


def compare(base: Sequence[Costs], new: Sequence[Costs]) -> list[Row]:
    """Compare the runs of a benchmark row by row.

    >>> compare([{"hop": 9.0}, {"hop": 10.0}, {"hop": 12.5}], [{"hop": 11.0}, {"hop": 13.0}])
    [Row(what='hop', ratio=1.2, spread=1.25)]
    """
    rows = []
    for what in dict.fromkeys(what for run in (*base, *new) for what in run):
        before, after = ([run[what] for run in runs if what in run] for runs in (base, new))
        if before and after:
            middle = median(before)
            spread = max(max(cost / middle, middle / cost) for cost in before)
            rows.append(Row(what, median(after) / middle, spread))
        else:
            rows.append(Row(what, math.nan, math.nan))
    return rows


def mean_ratio(rows: Sequence[Row]) -> float:
    """Geometric mean of the ratios of all rows that both commits have; NaN if there is none."""
    ratios = [row.ratio for row in rows if not math.isnan(row.ratio)]
    return geometric_mean(ratios) if ratios else math.nan


def failures(name: str, rows: Sequence[Row]) -> list[str]:
    """Limits that a benchmark exceeds, one line for each."""
    mean = mean_ratio(rows)
    lines = [] if mean <= MAX_MEAN else [f"{name}: geometric mean {mean:.3f}, limit {MAX_MEAN}"]
    for row in rows:
        if math.isnan(row.ratio):
            lines.append(f"{name}: only one of the commits has the row: {row.what}")
        elif row.is_slower:
            limit = MAX_ROW * row.spread
            lines.append(f"{name}: {row.what}: {row.ratio:.3f}, limit {limit:.3f}")
    return lines


def summary(name: str, rows: Sequence[Row]) -> str:
    """Table of one benchmark in Markdown."""
    lines = [f"| {name} | new / base | base / base |", "|---|--:|--:|"]
    lines += [f"| {row.what} | {row.ratio:.3f} | {row.spread:.3f} |" for row in rows]
    return "\n".join([*lines, f"| **geometric mean** | **{mean_ratio(rows):.3f}** | |"])


def alternate(trees: tuple[Tree, Tree], name: str, rounds: int, quick: bool) -> list[list[Costs]]:
    """Costs of all runs of base and of new, after one quick run of each that is not counted."""
    for tree in trees:
        tree.run(name, quick=True)
    runs: list[list[Costs]] = [[], []]
    for turn in range(2 * rounds + 1):
        print(f"{name}, run {turn + 1} of {2 * rounds + 1}", file=sys.stderr, flush=True)
        runs[turn % 2].append(trees[turn % 2].run(name, quick))
    return runs


@contextmanager
def trees_of(base: str) -> Iterator[tuple[Tree, Tree]]:
    """Check out BASE beside the working tree, for as long as the context lasts."""
    git = ("git", "-C", str(PROJECT), "worktree")
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder).resolve() / "base"
        subprocess.run([*git, "add", "--quiet", "--detach", str(checkout), base], check=True)
        try:
            yield (
                Tree(checkout, Path(folder, "base kernels")),
                Tree(PROJECT, Path(folder, "new kernels")),
            )
        finally:
            subprocess.run([*git, "remove", "--force", str(checkout)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("base", metavar="BASE", help="a commit that contains this module")
    parser.add_argument("names", nargs="+", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="default 3")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a limit is exceeded")
    options = parser.parse_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    if options.rounds < 1:
        parser.error(f"--rounds must be at least 1, got {options.rounds}")
    lines = []
    with trees_of(options.base) as trees:
        for name in options.names:
            try:
                base, new = alternate(trees, name, options.rounds, options.quick)
            except subprocess.CalledProcessError as error:
                lines.append(f"{name}: a run failed, see above ({error.returncode})")
                continue
            rows = compare(base, new)
            print(summary(name, rows), end="\n\n", flush=True)
            lines += failures(name, rows)
    print(*lines, sep="\n")
    sys.exit(int(options.check and bool(lines)))


if __name__ == "__main__":
    main()
