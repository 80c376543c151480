"""What a release says of itself is said alike everywhere, and its lower bounds are those tried."""

from __future__ import annotations

import re
import tomllib

import walklearn
from tests.running import PROJECT

PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LEFT_OUT = {"docs", "test", "ray"}  # extras of developers, and one that takes too long to install


def lower_bounds() -> dict[str, str]:
    """The oldest version of every package that walklearn may use, its own extras aside."""
    asked = list(PYPROJECT["dependencies"])
    for name, extra in PYPROJECT["optional-dependencies"].items():
        asked += [] if name in LEFT_OUT else extra
    bounds = {}
    for requirement in asked:
        if not requirement.startswith("walklearn["):
            found = re.match(r"([\w.-]+)>=([\w.]+)", requirement)
            assert found, f"{requirement} has no lower bound"
            assert bounds.setdefault(*found.groups()) == found[2], f"{found[1]} has two"
    return bounds


def test_the_oldest_versions_that_are_tried_are_the_lower_bounds():
    lines = (PROJECT / ".ci" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    tried = dict(line.split("==") for line in lines if not line.startswith("#"))
    bounds = lower_bounds()
    assert tried.keys() == bounds.keys()
    for name, bound in bounds.items():
        assert f"{tried[name]}.".startswith(f"{bound}."), f"{name} {tried[name]} is not {bound}"


def test_the_version_is_one():
    citation = (PROJECT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert PYPROJECT["version"] == walklearn.__version__
    assert f"\nversion: {walklearn.__version__}\n" in citation
    assert re.search(r"^## (\S+)", changes, flags=re.MULTILINE)[1] == walklearn.__version__


def test_the_pythons_that_are_promised_are_tried():
    pattern = r"Python :: (3\.\d+)$"
    promised = [
        found[1] for text in PYPROJECT["classifiers"] if (found := re.search(pattern, text))
    ]
    assert PYPROJECT["requires-python"] == f">={promised[0]}"
    release = (PROJECT / ".ci" / "release").read_text(encoding="utf-8")
    assert f"for version in {' '.join(promised)};" in release
