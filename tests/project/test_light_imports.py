"""What a device has to load: a node's work needs NumPy and nothing heavy beside it."""

from __future__ import annotations

import re

import pytest

from tests.running import PROJECT, python

HEAVY = {"scipy", "numba", "dp_accounting", "matplotlib", "pandas", "joblib", "sklearn", "networkx"}

VISIT = """
import numpy as np
from walklearn.objectives.linear.domains import Ball
from walklearn.objectives.linear.losses import Softmax
from walklearn.privacy.model_noise import ModelNoise
from walklearn.objectives import Problem
from walklearn.streams import generators, node_seed
from walklearn.updates.sgd import Sgd
from walklearn.updates.step_sizes import PowerStep
from walklearn.visit import Setting, init_token, visit
from walklearn.walks import Uniform, View

problem = Problem(np.eye(3), [0, 1, 2], loss=Softmax(3), penalty=0.1, domain=Ball(2.0),
                  node_of_row=[4] * 3, nodes=9, empty_nodes="relay", aggregate="mean",
                  total_rows=30)
assert 0 < problem.smoothness_constants[4] < 10
own = generators(node_seed(np.random.SeedSequence(1), 4))
noise = ModelNoise(clip=1.0, noise_multiplier=0.5, max_contributions=3)
setting = Setting(problem, Uniform(), Sgd(PowerStep(0.1)), privacy=noise)
token = init_token(setting, problem.sample_start(own.walk))
view = View(4, 9, 0, 0, np.array([2, 7]), (0.5,), [(9.0,), (9.0,)], None, None)
draws = setting.draw(own.walk, own.noise)
token, state, hop, weight = visit(setting, view, token, setting.init_node(4), draws)
assert hop.node in (2, 7) and weight == 1.0 and state.privacy["contributions"] == 1
assert token.updates == 1 and np.isfinite(token.update["model"]).all()
"""

RELEASE = """
from walklearn.privacy import Laplace
assert Laplace(scale=4.0, bounds=(1.0, 8.0)).release([3.0]).shape == (1,)
"""


@pytest.mark.parametrize("work", [VISIT, RELEASE], ids=["visit", "release"])
def test_a_nodes_work_loads_nothing_heavy(work: str) -> None:
    program = f"{work}\nimport sys\nprint(sorted({HEAVY!r} & set(sys.modules)))"
    done = python(program)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"


def test_no_public_name_is_that_of_its_module() -> None:
    """Whoever imports the module first would put it in the name's place."""
    for stub in (PROJECT / "src").rglob("__init__.pyi"):
        found = re.findall(r"from \.(\w+) import \w+ as (\w+)", stub.read_text(encoding="utf-8"))
        assert not [name for module, name in found if module == name], stub


def test_the_privacy_package_has_all_that_it_names() -> None:
    from walklearn import privacy
    from walklearn.privacy.accounting import special

    assert dir(privacy) == sorted(privacy.__all__)
    assert all(hasattr(privacy, name) for name in privacy.__all__)
    with pytest.raises(AttributeError, match="attribute exact"):
        _ = privacy.exact
    with pytest.raises(AttributeError, match="no attribute '__path__'"):  # asked by importers
        _ = special.__path__
