"""Claims that were refuted stay out of everything a reader can see.

CHANGELOG.md is not scanned, because it may say what was withdrawn. Whitespace counts as one space,
so that a claim is found across a line break.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUFFIXES = {".md", ".rst", ".py", ".pyi", ".toml", ".html", ".js", ".ipynb"}

WITHDRAWN = (
    # Every node receives the final model, which the smaller ε against one other node excluded.
    r"seen[ -]from[ -]one[ -](other[ -])?node",
    r"seen_from_one_node|NetworkPrivacy|network_privacy|privacy_by_distance",
    r"privacy compare --model",
    r"does not collude",
)


def texts() -> dict[str, str]:
    """Return every text of the project that a reader can see, by its path."""
    paths = [*ROOT.glob("*.md"), ROOT / "pyproject.toml"]
    for folder in ("docs", "src", "benchmarks", "examples"):
        paths += (path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES)
    return {
        str(path.relative_to(ROOT)): re.sub(r"\s+", " ", path.read_text(encoding="utf-8"))
        for path in paths
        if path.name != "CHANGELOG.md" and "build" not in path.parts
    }


@pytest.fixture(scope="module")
def scanned() -> dict[str, str]:
    return texts()


@pytest.mark.parametrize("claim", WITHDRAWN)
def test_a_withdrawn_claim_appears_nowhere(claim: str, scanned: dict[str, str]) -> None:
    pattern = re.compile(claim, re.IGNORECASE)
    places = {
        name: found.group() for name, text in scanned.items() if (found := pattern.search(text))
    }
    assert places == {}
