"""Machine code on disk is made anew when any file of the kernels changes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import walklearn
from tests.running import python

PROGRAM = """
import numpy as np
import walklearn as wl
problem = wl.Problem([[1.0], [2.0]], [1.0, 3.0], loss=wl.losses.Squared())
run = wl.simulate(problem, wl.graphs.complete(2), wl.walks.Uniform(), steps=1, seed=1,
                  step_size=wl.ConstantStep(0.1), gaps=False)
print(run.models[0, 0])
from walklearn.simulation.compiled import update_one_row
print(sum(update_one_row.stats.cache_hits.values()))
"""


def test_an_edited_helper_in_another_file_is_noticed(tmp_path: Path) -> None:
    source = tmp_path / "source"
    package, left_out = Path(walklearn.__file__).parent, shutil.ignore_patterns("__pycache__")
    shutil.copytree(package, source / "walklearn", ignore=left_out)
    own = {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def run() -> tuple[str, int]:
        model, hits = python(PROGRAM, env=os.environ | own).stdout.split()
        return model, int(hits)

    before, hits = run()
    assert (hits, run()) == (0, (before, 1))
    helper = source / "walklearn" / "simulation" / "compiled" / "arithmetic.py"
    text = helper.read_text(encoding="utf-8")
    assert "        return score - target\n" in text
    helper.write_text(text.replace("return score - target", "return target - score"), "utf-8")
    after, hits = run()
    assert (hits, after != before) == (0, True)
