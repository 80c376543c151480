"""Machine code on disk is made anew when any file of the kernels changes, and is quick to load."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import walklearn
from tests.running import python, run

PROGRAM = """
import numpy as np
import walklearn as wl
problem = wl.Problem([[1.0], [2.0]], [1.0, 3.0], loss=wl.losses.Squared())
run = wl.simulate(problem, wl.graphs.complete(2), wl.walks.Uniform(), steps=1, seed=1,
                  step_size=wl.ConstantStep(0.1), gaps=False)
print(run.models[0, 0])
from walklearn.simulation.compiled import walk_short_rows
print(sum(walk_short_rows.stats.cache_hits.values()))
"""

WITH_LAPACK = """
import sys
import numpy as np
from walklearn.simulation.compiled.cached import kernel

@kernel
def largest(matrix):
    return np.linalg.eigvalsh(matrix @ matrix)[-1]

@kernel
def total(numbers):
    sum = 0.0
    for number in numbers:
        sum += number
    return sum

print(total(np.ones(3)), "numba.np.arraymath" in sys.modules)
print(largest(2.0 * np.eye(2)), sum(largest.stats.cache_hits.values()))
"""


def test_an_edited_helper_in_another_file_is_noticed(tmp_path: Path) -> None:
    source = tmp_path / "source"
    package, left_out = Path(walklearn.__file__).parent, shutil.ignore_patterns("__pycache__")
    shutil.copytree(package, source / "walklearn", ignore=left_out)
    own = {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def once() -> tuple[str, int]:
        model, hits = python(PROGRAM, env=os.environ | own).stdout.split()
        return model, int(hits)

    before, hits = once()
    assert (hits, once()) == (0, (before, 1))
    helper = source / "walklearn" / "simulation" / "compiled" / "arithmetic.py"
    text = helper.read_text(encoding="utf-8")
    assert "        return score - target\n" in text
    helper.write_text(text.replace("return score - target", "return target - score"), "utf-8")
    after, hits = once()
    assert (hits, after != before) == (0, True)


def test_what_only_a_compiler_needs_is_not_loaded_with_machine_code(tmp_path: Path) -> None:
    """It is a third of a second, SciPy's linear algebra; what calls that gets it nevertheless."""
    program = tmp_path / "kernels.py"
    program.write_text(WITH_LAPACK, encoding="utf-8")
    own = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    compiled, loaded = (run(sys.executable, program, env=own).stdout.split() for _ in range(2))
    assert (compiled, loaded) == (["3.0", "True", "4.0", "0"], ["3.0", "False", "4.0", "1"])
