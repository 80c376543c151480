"""ARCHITECTURE.md is true: its interfaces, imports and files are the real ones."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections.abc import Callable
from typing import get_type_hints

import walklearn as wl
from tests.running import PROJECT
from walklearn import visit
from walklearn.parts import Part

PAGE = (PROJECT / "ARCHITECTURE.md").read_text(encoding="utf-8")
INTERFACES = PAGE.split("## Core interfaces")[1].split("```python\n")[1].split("```")[0]
PACKAGES = PAGE.split("## Packages")[1].split("```")[1].strip("\n").splitlines()
SOURCE = PROJECT / "src" / "walklearn"
MAX_LINES = 160  # three screens


def layers_of_page() -> list[set[str]]:
    """Return the packages of each line, from top to bottom."""
    real = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    real |= {path.stem for path in SOURCE.glob("*.py")} - {"__init__"}
    return [set(line.split("   ")[0].split()) & real for line in PACKAGES]


def layers_of_contract() -> list[set[str]]:
    """Return the packages of each layer of the import contract, which the linter checks."""
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return [set(re.findall(r"\w+", layer)) for layer in layers]


def test_packages_stand_in_the_order_of_the_import_contract() -> None:
    assert layers_of_page() == layers_of_contract()


def test_page_fits_on_three_screens() -> None:
    assert len(PAGE.splitlines()) <= MAX_LINES


def test_journeys_and_pages_name_files_that_are_there() -> None:
    journeys = PAGE.split("## Journeys")[1].split("\n## ")[0]
    named = re.findall(r"`([a-z_0-9/]+\.(?:py|js))`", journeys)
    assert len(re.findall(r"^\*\*", journeys, flags=re.MULTILINE)) == 5
    assert len(named) > 40
    assert [name for name in named if not (SOURCE / name).is_file()] == []
    for start in ("**`walklearn train`", "**`fit(epsilon=…)`"):
        journey = journeys.split(start)[1].split("\n**")[0]
        assert len(set(re.findall(r"`[a-z_0-9/]+\.py`", journey))) <= 15
    for page in ("ARCHITECTURE.md", "CONTRIBUTING.md"):
        text = (PROJECT / page).read_text(encoding="utf-8")
        for name in re.findall(r"`((?:tests|docs|benchmarks|src)/[\w/.]*)`", text):
            assert (PROJECT / name).exists(), f"{page}: {name}"


def test_core_interfaces_are_those_of_the_code() -> None:
    assert len(INTERFACES.splitlines()) <= 40
    real = vars(visit) | {"Objective": wl.Objective}
    names = {"int": int, "float": float, "Part": Part} | real
    compared = 0
    for shown in ast.parse(INTERFACES).body:
        if isinstance(shown, ast.FunctionDef):
            assert parameters_of(real[shown.name]) == written_parameters(shown)
            compared += 1
            continue
        assert isinstance(shown, ast.ClassDef)
        found = real[shown.name]
        for base in shown.bases:
            assert issubclass(found, names[ast.unparse(base)])
        for member in shown.body:
            compared += 1
            if isinstance(member, ast.FunctionDef):
                method = getattr(found, member.name)
                assert parameters_of(method) == written_parameters(member), member.name
            else:
                compare_field(found, member, names)
    assert compared > 30


def parameters_of(function: Callable[..., object]) -> list[str]:
    return list(inspect.signature(function).parameters)


def written_parameters(function: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in function.args.args]


def compare_field(found: type, shown: ast.stmt, names: dict[str, object]) -> None:
    """Compare the type and, if there is one, the default of a field."""
    assert isinstance(shown, ast.AnnAssign)
    assert isinstance(shown.target, ast.Name)
    name = shown.target.id
    assert get_type_hints(found)[name] == names[ast.unparse(shown.annotation)], name
    if shown.value is not None:
        assert getattr(found, name) == ast.literal_eval(shown.value)
