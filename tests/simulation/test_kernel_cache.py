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
from walklearn.simulation.kernels.visits.sgd import near_short
print(sum(near_short.stats.cache_hits.values()))
"""

WITH_FUNCTIONS = """
def value(score, target):
    return 0.5 * (score - target) ** 2

def slope(score, target):
    return score - target
""" + PROGRAM.replace(
    "wl.losses.Squared()",
    'wl.losses.from_functions(value, slope, takes="number", smoothness=1.0, name="own")',
)

TOTAL = """
import sys
import numpy as np
from walklearn.simulation.kernels.compilation import kernel

@kernel
def total(numbers):
    sum = 0.0
    for number in numbers:
        sum += number
    return sum

print(total(np.ones(3)), "numba.np.arraymath" in sys.modules)
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
    helper = source / "walklearn" / "simulation" / "kernels" / "losses.py"
    text = helper.read_text(encoding="utf-8")
    assert "        return score - target\n" in text
    helper.write_text(text.replace("return score - target", "return target - score"), "utf-8")
    after, hits = once()
    assert (hits, after != before) == (0, True)


def test_machine_code_with_functions_of_a_user_is_not_saved(tmp_path: Path) -> None:
    """Other processes could not even read the index of a file that refers to the functions."""
    own = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    program = tmp_path / "functions.py"
    program.write_text(WITH_FUNCTIONS, encoding="utf-8")
    with_functions = run(sys.executable, program, env=own).stdout.split()
    assert [float(number) for number in with_functions] == [
        float(number) for number in python(PROGRAM, env=own).stdout.split()
    ]
    near_short = [path.name for path in tmp_path.rglob("*.nbc") if "near_short" in path.name]
    assert len(near_short) == 1


def test_what_only_a_compiler_needs_is_not_loaded_with_machine_code(tmp_path: Path) -> None:
    """Numba's compiler loads SciPy's linear algebra, which takes a third of a second."""
    program = tmp_path / "kernels.py"
    program.write_text(TOTAL, encoding="utf-8")
    own = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    compiled, loaded = (run(sys.executable, program, env=own).stdout.split() for _ in range(2))
    assert (compiled, loaded) == (["3.0", "True"], ["3.0", "False"])
