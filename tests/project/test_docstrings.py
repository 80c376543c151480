"""Docstrings of exported names explain every argument and the result, and nothing else."""

from __future__ import annotations

import importlib
import inspect

import pytest
from numpydoc.validate import validate

PACKAGES = (
    "walklearn", "walklearn.graphs", "walklearn.walks", "walklearn.updates", "walklearn.privacy",
    "walklearn.objectives.linear.losses", "walklearn.objectives.linear.domains",
    "walklearn.objectives.datasets", "walklearn.visit", "walklearn.theory", "walklearn.plots",
    "walklearn.tables", "walklearn.studies", "walklearn.node",
)  # fmt: skip
RETURNED = (  # not exported, but what exported functions give
    "walklearn.objectives.linear.optimum.Optimum", "walklearn.simulation.trace.Summary",
)  # fmt: skip
MISTAKES = {
    "GL08": "there is no docstring",
    "PR01": "an argument is not explained",
    "PR02": "an argument is explained that is not there",
    "RT01": "what comes back is not explained",
}


def exported() -> list[str]:
    """Return the full names of the exported functions and classes."""
    found = set(RETURNED)
    for package in map(importlib.import_module, PACKAGES):
        own = [
            name for name, value in vars(package).items()
            if getattr(value, "__module__", "") == package.__name__ and not name.startswith("_")
        ]  # fmt: skip
        for value in (getattr(package, name) for name in getattr(package, "__all__", own)):
            is_ours = getattr(value, "__module__", "").startswith("walklearn")
            if is_ours and (inspect.isclass(value) or inspect.isfunction(value)):
                found.add(f"{value.__module__}.{value.__qualname__}")
    return sorted(found)


def in_daily_use() -> list[str]:
    """Return the methods that users call most, which are documented like exported names."""
    learn = ("fit", "partial_fit", "predict", "to_model")
    methods = {
        "walklearn.estimators.classifier.RandomWalkClassifier": (
            *learn, "decision_function", "predict_proba", "predict_log_proba"),
        "walklearn.estimators.regressor.RandomWalkRegressor": learn,
        "walklearn.models.model.Model": ("scores", "predict", "predict_proba", "save", "load"),
        "walklearn.simulation.trace.Trace": ("save", "load", "plot", "error", "summary"),
    }  # fmt: skip
    return [f"{name}.{method}" for name, each in methods.items() for method in each]


@pytest.mark.parametrize("name", sorted({*exported(), *in_daily_use()}))
def test_exported_names_are_documented(name: str) -> None:
    wrong = [what for code, what in validate(name)["errors"] if code in MISTAKES]
    assert wrong == []
