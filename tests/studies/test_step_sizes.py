"""Steps in units of the smoothness, and tuned for a horizon of their own."""

from __future__ import annotations

import json

import pytest

from walklearn.studies import Study, StudyError, run_cell
from walklearn.studies.instances import RUN, draw_instance
from walklearn.studies.methods import method_of, step_smoothness
from walklearn.updates.step_sizes import ConstantStep

STUDY = """
name = "steps"
instances = 2
updates = 200
records = 3
metric = "gap"
[graphs.ring]
family = "ring"
nodes = 9
[problems.rows]
data = "heterogeneous_rows"
dimension = 2
aggregate = "mean"
[methods]
uniform = { walk = "uniform" }
weighted = { walk = "weighted" }
gossip = { gossip = "asynchronous" }
private = { walk = "weighted", mechanism = "laplace", epsilon = 1, delta = 0, bounds = [1, 9] }
[step_sizes]
"""


def test_relative_constants_are_divided_by_the_smoothness_of_the_steps() -> None:
    relative = Study.from_text(STUDY + "half = { constant = 0.5, exponent = 0, relative = true }")
    uniform, weighted, gossip, private = (run_cell(cell) for cell in relative.cells())
    graph, rows = relative.graphs["ring"], relative.problems["rows"]
    instance = draw_instance(graph, rows, 1, RUN, 0)
    smoothness = instance.problem.smoothness_constants
    largest, mean = smoothness.max(), smoothness.mean()
    for method, expected in zip(relative.methods, (largest, mean, largest, mean), strict=True):
        made = method_of(relative.methods[method], rows, instance.problem)
        found = step_smoothness(made, instance.graph, instance.problem, ConstantStep(0.5))
        assert found == pytest.approx(expected)  # on a ring gossip needs no correction
    used = uniform.records["constant"].reshape(2, 3)
    assert used[0, 0] != used[1, 0]  # another instance, another L
    assert gossip.records["constant"] == pytest.approx(uniform.records["constant"])
    assert weighted.records["constant"] == pytest.approx(private.records["constant"])
    assert (weighted.records["constant"] > uniform.records["constant"]).all()


def test_a_horizon_of_its_own() -> None:
    """After one update the longest step that helps is best; it is too long later on."""
    steps = "constants = [0.1, 3.0], exponent = 0, relative = true, tuning_instances = 9"
    tables = f"soon = {{ {steps}, tuning_updates = 1 }}\nlate = {{ {steps} }}"
    cells = [cell for cell in Study.from_text(STUDY + tables).cells() if cell.method == "uniform"]
    soon, late = (json.loads(run_cell(cell).facts["tuning"][0]) for cell in cells)
    assert late["constant"] == 0.1
    assert soon["errors"][1] < 100 * soon["errors"][0]
    assert late["errors"][1] is None or late["errors"][1] > 1e6 * late["errors"][0]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("a = { constant = 1.0, relative = 1 }", "step_sizes.a.relative"),
        ("a = { constants = [1.0], tuning_updates = 0 }", "step_sizes.a.tuning_updates"),
        ("a = { constant = 1.0, tuning_updates = 9 }", "step_sizes.a.tuning_updates"),
        ("a = { constant = 1.0, exponents = [0.51, 0.75] }", "step_sizes.a.exponents"),
        ("a = { constants = [1.0], exponents = [0.75, 0.51] }", "step_sizes.a.exponents"),
        ("a = { constants = [1.0], exponents = [0.51], exponent = 0.75 }", "step_sizes.a.exponent"),
    ],
)
def test_bad_steps_are_named(steps: str, message: str) -> None:
    with pytest.raises(StudyError, match="line 20") as caught:
        Study.from_text(STUDY + steps, "study.toml")
    assert message in str(caught.value)
