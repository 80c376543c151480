"""Reading a CSV of a million rows and 20 columns, beside pyarrow and pandas.

    python -m benchmarks.files          # 3 to 5 minutes
    python -m benchmarks.files --quick

Each reads in a fresh process, in turns, and the best turn counts: the processor time of all cores
from the call to the result, without imports, and the most memory that the process ever held. One
file is numbers alone with 17 digits; in the other five of the columns are text in quotes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.measurement import Measurement, main

COLUMNS = 20
CITIES = np.array(["Oslo", "Rome", "São Paulo, SP", 'the "City"', "Bern"], dtype=object)
JOBS = {
    "pyarrow": ("import pyarrow.csv as csv", "csv.read_csv(path)"),
    "pandas": ("import pandas", "pandas.read_csv(path)"),
    "read_table": (
        "import pyarrow.csv; from walklearn.tables import read_table",
        "table = read_table(path); [table[name] for name in table]",
    ),
    "read_rows": (
        "import pyarrow.csv; from walklearn.tables import read_rows",
        "read_rows(path, target='y')",
    ),
    "with care": (
        "from walklearn.tables import csv_file, read_rows; "
        "csv_file.MIN_BYTES_FOR_ARROW = float('inf')",
        "read_rows(path, target='y')",
    ),
}
PROCESS = """
import json, sys, time
path = sys.argv[1]
{imports}
cores, clock = time.process_time(), time.perf_counter()
{call}
cores, clock = time.process_time() - cores, time.perf_counter() - clock
status = dict(line.split(":") for line in open("/proc/self/status"))
print(json.dumps([cores, clock, int(status["VmHWM"].split()[0]) / 1024]))
"""


def write(path: Path, rows: int, texts: int) -> None:
    """Random numbers, a target, and texts in some of the columns."""
    import pyarrow
    from pyarrow import csv

    generator = np.random.default_rng(1)
    columns = {
        f"x{at}": generator.choice(CITIES, rows) if at < texts else generator.normal(size=rows)
        for at in range(COLUMNS - 1)
    }
    csv.write_csv(pyarrow.table({**columns, "y": generator.integers(0, 2, rows)}), path)


def best(path: Path, rounds: int, names: list[str]) -> dict[str, np.ndarray]:
    """Processor time, time on the clock and memory of each job: the least of its turns."""
    found = {name: np.full(3, np.inf) for name in names}
    for _ in range(rounds):
        for name in names:
            imports, call = JOBS[name]
            code = PROCESS.format(imports=imports, call=call)
            command = [sys.executable, "-c", code, str(path)]
            told = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
            found[name] = np.minimum(found[name], json.loads(told))
    return found


def measurements(quick: bool) -> Iterator[Measurement]:
    rows, rounds = (20_000, 1) if quick else (1_000_000, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.csv")
        for what, texts, target in (("numbers", 0, 1.5), ("numbers and texts", 5, None)):
            write(path, rows, texts)
            found = best(path, rounds, ["pyarrow", "pandas", "read_table", "read_rows"])
            if not texts:
                found |= best(path, 1, ["with care"])
            size = f"{rows:,} rows, {path.stat().st_size / 1e6:,.0f} MB"
            pyarrows = found["pyarrow"]
            for name, job in found.items():
                note = f"{job[0]:.2f} s of processor, {job[1]:.2f} s on the clock; {size}"
                if name != "pyarrow":
                    ours = target if name in ("read_table", "read_rows") else None
                    yield Measurement(f"{what}: {name}, over pyarrow's read_csv",
                                      job[0] / pyarrows[0], "times", ours, note=note)  # fmt: skip
                yield Measurement(f"{what}: memory of {name}", job[2], "MB",
                                  note=note if name == "pyarrow" else "")  # fmt: skip


if __name__ == "__main__":
    main(measurements, __doc__)
