"""Errors at a cost and costs of an error, from records."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from walklearn.studies.recorded_runs import CellRuns, cost_of, error_at

COSTS = np.array([[1.0, 10.0, 100.0]])
ERRORS = np.array([[4.0, 1.0, 0.25]])


@pytest.mark.parametrize(
    ("cost", "error"), [(0.5, 4.0), (1.0, 4.0), (10.0, 1.0), (10.0**1.5, 0.5), (1e6, 0.25)]
)
def test_error_at(cost: float, error: float) -> None:
    assert error_at(COSTS, ERRORS, cost) == pytest.approx([error])


@pytest.mark.parametrize(
    ("target", "cost"), [(5.0, 1.0), (1.0, 10.0), (0.5, 10.0**1.5), (0.25, 100.0), (0.2, np.inf)]
)
def test_cost_of(target: float, cost: float) -> None:
    assert cost_of(COSTS, ERRORS, np.array([target])) == pytest.approx([cost])


def test_one_is_the_inverse_of_the_other() -> None:
    costs = np.geomspace(1.0, 1e4, 30)[None]
    errors = 3.0 * costs**-0.4
    for cost in (1.5, 37.0, 9e3):
        assert cost_of(costs, errors, error_at(costs, errors, cost)) == pytest.approx([cost])


def test_numbers_without_a_logarithm_are_not_interpolated() -> None:
    costs, errors = np.array([[0.0, 8.0]]), np.array([[2.0, 0.0]])
    assert error_at(costs, errors, 4.0) == [2.0]
    assert cost_of(costs, errors, np.array([1.0])) == [8.0]


def test_a_token_that_stays_costs_nothing() -> None:
    costs, errors = np.array([[1.0, 5.0, 5.0, 9.0]]), np.array([[4.0, 3.0, 2.0, 1.0]])
    assert error_at(costs, errors, 5.0) == [2.0]


def test_a_run_that_diverged_never_reaches_a_target() -> None:
    errors = np.array([[4.0, np.inf, np.nan]])
    assert cost_of(COSTS, errors, np.array([1.0])) == [np.inf]
    assert np.isnan(error_at(COSTS, errors, 100.0)).all()


def test_runs_of_a_table_in_any_order() -> None:
    rows = [
        {"instance": i, "replicate": r, "updates": k, "messages": k, "gap": 100 * i + 10 * r + k}
        for i in (0, 1)
        for r in (0, 1, 2)
        for k in (1, 2)
    ]
    runs = CellRuns(pd.DataFrame(rows).sample(frac=1.0, random_state=1))
    assert runs.instances.tolist() == [0, 1]
    assert runs.table("gap")[4].tolist() == [111.0, 112.0]
    assert runs.reach("messages") == 2.0
    assert runs.error_at("gap", "messages", 1.0).to_dict() == {0: 11.0, 1: 111.0}


def test_one_failed_replicate_fails_the_instance() -> None:
    rows = {
        "instance": [0, 0, 1, 1],
        "replicate": [0, 1, 0, 1],
        "updates": 1,
        "gap": [1, None, 2, 2],
    }
    runs = CellRuns(pd.DataFrame(rows))
    assert runs.error_at("gap", "updates", 1.0).to_dict() == {0: np.inf, 1: 2.0}
