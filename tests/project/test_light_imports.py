"""What a device has to load: a node's work needs NumPy and nothing heavy beside it."""

from __future__ import annotations

import re

import pytest

from tests.running import PROJECT, python

HEAVY = {"scipy", "numba", "dp_accounting", "matplotlib", "pandas", "joblib", "sklearn", "networkx"}

VISIT = """
from functools import partial
import numpy as np
from walklearn.updates import walk_sgd
from walklearn.problem.domains import Ball
from walklearn.problem.losses import Softmax
from walklearn.privacy.model_noise import ModelNoise
from walklearn.problem import Problem
from walklearn.updates.random_streams import generators, node_seed
from walklearn.updates.step_sizes import PowerStep
from walklearn.walks.proposal import accepts, propose, score

problem = Problem(np.eye(3), [0, 1, 2], loss=Softmax(3), penalty=0.1, domain=Ball(2.0),
                  node_of_row=[4] * 3, nodes=9, empty_nodes="relay", aggregate="mean",
                  total_rows=30)
assert 0 < problem.smoothness_constants[4] < 10
own = generators(node_seed(np.random.SeedSequence(1), 4))
noise = ModelNoise(clip=1.0, noise_multiplier=0.5, max_contributions=3)
token = walk_sgd.token_at(4, problem.domain.sample(problem.size, own.walk))
uniforms = own.walk.random(1)
token, scale = walk_sgd.estimated_scale(token, 2.0)
token, visit = walk_sgd.improve(problem, PowerStep(0.1), token, scale, uniforms[1:],
                                partial(noise.protected, normal=own.noise.standard_normal(9)))
proposal = propose(uniforms[0], degree=2)
assert accepts(proposal, score(2.0, 2), score(9.0, 2))
assert token.updates == 1 and np.isfinite(token.model).all()
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

    assert dir(privacy) == sorted(privacy.__all__)
    assert all(hasattr(privacy, name) for name in privacy.__all__)
    with pytest.raises(AttributeError, match="attribute exact"):
        _ = privacy.exact
    with pytest.raises(AttributeError, match="no attribute 'factorial'"):
        _ = privacy.special.factorial
