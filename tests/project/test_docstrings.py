"""What is exported is explained: every argument, what comes back, and nothing that is not there."""

from __future__ import annotations

import importlib
import inspect

import pytest
from numpydoc.validate import validate

PACKAGES = (
    "walklearn", "walklearn.graphs", "walklearn.walks", "walklearn.updates", "walklearn.privacy",
    "walklearn.problem.losses", "walklearn.problem.domains", "walklearn.problem.datasets",
    "walklearn.theory", "walklearn.plot", "walklearn.files", "walklearn.studies", "walklearn.node",
)  # fmt: skip
MISTAKES = {
    "GL08": "there is no docstring",
    "PR01": "an argument is not explained",
    "PR02": "an argument is explained that is not there",
    "RT01": "what comes back is not explained",
}


def exported() -> list[str]:
    """Where each exported function and class of walklearn is defined."""
    found = set()
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


@pytest.mark.parametrize("name", exported())
def test_what_is_exported_is_explained(name: str) -> None:
    wrong = [what for code, what in validate(name)["errors"] if code in MISTAKES]
    assert wrong == []
