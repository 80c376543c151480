"""What is exported is explained: every argument, what comes back, and nothing that is not there."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pydoc import locate

import pytest
from numpydoc.validate import validate

PACKAGES = (
    "walklearn", "walklearn.graphs", "walklearn.walks", "walklearn.updates", "walklearn.privacy",
    "walklearn.objectives.linear.losses", "walklearn.objectives.linear.domains",
    "walklearn.objectives.datasets", "walklearn.theory", "walklearn.plots", "walklearn.tables",
    "walklearn.studies", "walklearn.node",
    "walklearn.updates.update", "walklearn.updates.saga", "walklearn.updates.line_search",
    "walklearn.simulation.averaging", "walklearn.parts", "walklearn.visit",
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
    """Where each exported function and class of walklearn is defined."""
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


def public_methods(owner: type) -> Iterator[tuple[str, int]]:
    """The methods that a class and its bases define, but for overrides: where, and their arguments.

    An override says what it does otherwise; its arguments are explained where it was named first.
    """
    for at, base in enumerate(owner.__mro__):
        inherited = {name for further in owner.__mro__[at + 1 :] for name in vars(further)}
        for name, value in vars(base).items():
            method = getattr(value, "__func__", value)
            if name in inherited or name.startswith("_") or not inspect.isfunction(method):
                continue
            if base.__module__.startswith("walklearn"):
                arguments = set(inspect.signature(method).parameters) - {"self", "cls"}
                yield f"{base.__module__}.{base.__qualname__}.{name}", len(arguments)


def with_arguments() -> list[str]:
    """The public methods of exported classes that take two arguments or more.

    Of a single argument, or none, a sentence may tell all there is to say.
    """
    owners = [value for value in map(locate, exported()) if isinstance(value, type)]
    methods = {pair for owner in owners for pair in public_methods(owner)}
    return sorted(name for name, arguments in methods if arguments >= 2)


def in_daily_use() -> list[str]:
    """The methods that everybody calls, of which all is explained, however little it is."""
    learn = ("fit", "partial_fit", "predict", "to_model")
    methods = {
        "walklearn.estimators.classifier.RandomWalkClassifier": (
            *learn, "decision_function", "predict_proba", "predict_log_proba"),
        "walklearn.estimators.regressor.RandomWalkRegressor": learn,
        "walklearn.models.model.Model": ("scores", "predict", "predict_proba", "save", "load"),
        "walklearn.simulation.trace.Trace": ("save", "load", "plot", "error", "summary"),
    }  # fmt: skip
    return [f"{name}.{method}" for name, each in methods.items() for method in each]


@pytest.mark.parametrize("name", sorted({*exported(), *with_arguments(), *in_daily_use()}))
def test_what_is_exported_is_explained(name: str) -> None:
    wrong = [what for code, what in validate(name)["errors"] if code in MISTAKES]
    assert wrong == []


def test_the_rule_finds_methods_with_arguments_and_leaves_overrides_alone() -> None:
    found = set(with_arguments())
    assert "walklearn.walks.walk.Walk.hop" in found
    assert "walklearn.walks.metropolis.Metropolis.hop" not in found
    assert "walklearn.node.wire.book.Book.new" in found  # a class method
    assert "walklearn.node.wire.book.Book.name_of" not in found  # of one argument
