"""Compare runs with the saved results, or save new ones."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings

from tests.golden import saved
from tests.golden.cases import CASES, Case
from tests.golden.saved import Result, Results


def results_of(case: Case) -> dict[str, Result | str]:
    """Run a case on each of its engines; a run that fails gives the text of its error."""
    results: dict[str, Result | str] = {}
    for engine in case.engines:
        try:
            results[engine] = case.run(engine)
        except Exception as error:
            results[engine] = f"{type(error).__name__}: {error}"
    return results


def compare(cases: dict[str, Case], expected: Results) -> list[str]:
    """Run all cases and list the differences from the expected results."""
    lines = []
    for name, case in cases.items():
        for engine, result in results_of(case).items():
            where = f"{name} ({engine})" if engine else name
            if isinstance(result, str):
                lines.append(f"{where}: failed: {result}")
            elif name not in expected:
                lines.append(f"{where}: not saved")
            else:
                found = saved.differences(expected[name], result, case.tolerance)
                lines += [f"{where}: {line}" for line in found]
    return lines


def write(cases: dict[str, Case]) -> list[str]:
    """Save the results of the first engine of each case; list what keeps it from being saved."""
    lines, results = [], {}
    for name, case in cases.items():
        for engine, result in results_of(case).items():
            if isinstance(result, str):
                lines.append(f"{name} ({engine}): failed: {result}")
            elif name not in results:
                results[name] = result
            else:
                found = saved.differences(results[name], result, case.tolerance)
                lines += [f"{name} ({engine}): {line}" for line in found]
    if not lines:
        saved.write(results)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="save the results of this code")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name contains it")
    options = parser.parse_args()
    if options.write and options.only:
        parser.error("--write saves all cases: leave --only out")
    begun = time.monotonic()
    cases = {name: case for name, case in CASES.items() if options.only in name}
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        if options.write:
            lines = write(cases)
        else:
            expected = saved.read()
            lines = compare(cases, expected)
            if not options.only:
                lines += [f"{name}: no longer a case" for name in expected if name not in cases]
    print(*lines, sep="\n")
    print(f"{len(cases)} cases, {len(lines)} differences, {time.monotonic() - begun:.0f} s")
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
