"""What a release says of itself is said alike everywhere, and what it promises is tried."""

from __future__ import annotations

import re
import tomllib

import walklearn
from tests.running import PROJECT

PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_package_has_one_lower_bound():
    """Which `.ci/oldest` installs."""
    asked = list(PYPROJECT["dependencies"])
    for extra in PYPROJECT["optional-dependencies"].values():
        asked += extra
    bounds: dict[str, str] = {}
    for requirement in asked:
        if not requirement.startswith("walklearn["):
            found = re.match(r"([\w.-]+)>=([\w.]+)", requirement)
            assert found, f"{requirement} has no lower bound"
            assert bounds.setdefault(*found.groups()) == found[2], f"{found[1]} has two"


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
