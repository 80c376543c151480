"""ARCHITECTURE.md is true: its picture shows the real imports, its journeys name real files."""

from __future__ import annotations

import re
from collections import defaultdict

import grimp

from tests.running import PROJECT

PAGE = (PROJECT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PICTURE = PAGE.split("```")[1].strip("\n").splitlines()
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
    assert braces == ["estimators", "advice", "node", "simulation", "model"]
    for together in (braces[:3], braces[3:]):
        assert not any(set(drawn()[name]) & set(together) for name in together)


def test_journeys_and_pages_name_files_that_are_there() -> None:
    journeys = PAGE.split("## Four journeys")[1].split("\n## ")[0]
    named = re.findall(r"`([a-z_0-9/]+\.(?:py|js))`", journeys)
    assert len(re.findall(r"^\*\*", journeys, flags=re.MULTILINE)) == 4
    assert len(named) > 40
    assert [name for name in named if not (SOURCE / name).is_file()] == []
    for page in ("ARCHITECTURE.md", "CONTRIBUTING.md"):
        text = (PROJECT / page).read_text(encoding="utf-8")
        for name in re.findall(r"`((?:tests|docs|benchmarks|src)/[\w/.]*)`", text):
            assert (PROJECT / name).exists(), f"{page}: {name}"
