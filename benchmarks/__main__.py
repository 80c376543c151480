"""All benchmarks but soak and chaos: `python -m benchmarks [--quick] [--check] [NAME ...]`.

Each runs in a process of its own, so that it starts with empty memory, and one that fails takes
no other with it. What is printed is the page `results.md`: the machine and the commit, the table,
and the targets that are missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.machine import machine
from benchmarks.measurement import Measurement, add_check, exit_code, missed_lines, table

NAMES = sorted(
    file.stem
    for file in Path(__file__).parent.glob("*.py")
    if "\ndef measurements(" in file.read_text()
)


def rows_of(name: str, quick: bool) -> list[Measurement]:
    """What the module yields; the rows so far and a note where it fails."""
    code = f"from benchmarks.measurement import print_rows; print_rows({name!r}, {quick})"
    command = [sys.executable, "-c", code]
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            rows.append(Measurement(*json.loads(line)))
            print("  " + "  ".join(filter(None, rows[-1].cells)), file=sys.stderr, flush=True)
    if process.returncode:
        rows.append(Measurement(name, float("nan"), "", note="failed; see its messages above"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that all run")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    add_check(parser)
    options = parser.parse_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    begun, rows = time.monotonic(), []
    for name in options.names or NAMES:
        print(name, file=sys.stderr, flush=True)
        rows += rows_of(name, options.quick)
    print("# One run of the benchmarks\n\n[README.md](README.md) says what is measured.\n")
    print("\n".join(f"- {line}" for line in machine()))
    print(f"- {(time.monotonic() - begun) / 60:.0f} minutes\n")
    print(table(rows), *missed_lines(rows), sep="\n")
    sys.exit(exit_code(rows, options.check))


if __name__ == "__main__":
    main()
