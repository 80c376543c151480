"""ARCHITECTURE.md is true: its interfaces, imports and files are the real ones."""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Callable
from typing import get_type_hints

import grimp

import walklearn as wl
from tests.running import PROJECT
from walklearn import visit
from walklearn.parts import Part

PAGE = (PROJECT / "ARCHITECTURE.md").read_text(encoding="utf-8")
INTERFACES = PAGE.split("## Core interfaces")[1].split("```python\n")[1].split("```")[0]
PICTURE = PAGE.split("## The rooms")[1].split("```")[1].strip("\n").splitlines()
SOURCE = PROJECT / "src" / "walklearn"
NAME, USES = slice(2, 15), slice(55, None)  # columns of the picture


def drawn() -> dict[str, list[str]]:
    """Each package of the picture, from top to bottom, and what it is said to use."""
    packages: dict[str, list[str]] = {}
    for line in PICTURE:
        if name := line[NAME].strip():
            packages[name] = []
        packages[list(packages)[-1]] += line[USES].split()
    return packages


def imported() -> dict[str, set[str]]:
    """Each package, and what its modules import of others."""
    graph = grimp.build_graph("walklearn", exclude_type_checking_imports=True, cache_dir=None)
    packages = defaultdict(set)
    for module in graph.modules - {"walklearn"}:
        own = module.split(".")[1]
        others = graph.find_modules_directly_imported_by(module) - {"walklearn"}
        packages[own] |= {other.split(".")[1] for other in others} - {own}
    return packages


def test_the_picture_shows_every_package_and_every_import_between_them() -> None:
    real = imported()
    shown = drawn()
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    modules = {path.stem for path in SOURCE.glob("*.py")} - {"__init__"}
    assert set(shown) == set(real) == packages | modules
    assert {name: set(uses) for name, uses in shown.items()} == real


def test_what_a_package_uses_stands_below_it_and_not_in_its_brace() -> None:
    order = list(drawn())
    for name, uses in drawn().items():
        assert [order.index(use) for use in uses] == sorted(order.index(use) for use in uses)
        assert all(order.index(use) > order.index(name) for use in uses), name
    braces = [line[NAME].strip() for line in PICTURE if line[1] == "{"]
    assert braces == ["studies", "estimators", "node", "simulation", "models"]
    for together in (braces[:3], braces[3:]):
        assert not any(set(drawn()[name]) & set(together) for name in together)


def test_journeys_and_pages_name_files_that_are_there() -> None:
    journeys = PAGE.split("## Five journeys")[1].split("\n## ")[0]
    named = re.findall(r"`([a-z_0-9/]+\.(?:py|js))`", journeys)
    assert len(re.findall(r"^\*\*", journeys, flags=re.MULTILINE)) == 5
    assert len(named) > 40
    assert [name for name in named if not (SOURCE / name).is_file()] == []
    for start in ("**A row from a CSV", "**A private fit"):
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
