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

# Each claim with an example of how it was written.
WITHDRAWN = (
    # Every node receives the final model, which the smaller ε against one other node excluded.
    (
        r"seen[ -]from[ -]one[ -](other[ -])?node",
        "The total as seen from one other node is smaller.",
    ),
    (
        r"seen_from_one_node|NetworkPrivacy|network_privacy|privacy_by_distance",
        "walklearn.theory.network_privacy",
    ),
    (r"privacy compare --model", "walklearn privacy compare --model"),
    (r"does not collude", "A neighbour that does not collude learns less."),
    # Neighbours can omit a reminder or repeat an old one; a whole machine can be restored.
    (r"never contributes? past (its|the) cap", "A node never contributes past its cap."),
    (r"cannot lie about it", "A neighbour cannot lie about it."),
    # Selecting by exact scores is a release that no fit pays for.
    (
        r"(costs?|is) (only )?the sum of its fits",
        "A grid search over private rows\n  costs the sum of its fits.",
    ),
    # With Gaussian noise at (3, 1e-5) the odds change by more with probability 6.9e-5.
    (
        r"odds\b.{0,60}\b(factor of e\^ε at most|at most (a factor of )?e\^ε)",
        "the odds change by a factor of e^ε at\nmost",
    ),
    (r"how much the odds\b", "ε says how much the odds change."),
    (r"\bbut for δ", "by a factor of e^ε, but for δ."),
    # Tokens of SGD with the squared loss reveal XᵀX and Xᵀy, from which rows do not follow.
    (
        r"\bwork(s|ed|ing)? out (the|its|their|a) rows?\b",
        "# leaves rows, which\n# work out the rows",
    ),
    (r"\brows can be worked out", "From two tokens the rows can be worked out."),
    (r"\bcomputes? (the )?rows from\b", "A neighbour computes the rows from two tokens."),
    (r"\blearns? the rows\b", "Whoever sees both tokens learns the rows."),
    (r"\bgives? (the )?rows away", "An unprotected visit gives the rows away."),
    (r"\b(give|reveal|tell)s? the row that was used", "Two tokens reveal the row that was used."),
    # An unprotected model was the default of a plan, and nobody had to ask for it.
    (r"in so many words", "It has to be asked for in so many words."),
    (
        r"(clear|unprotected).{0,40}has to (be (asked for|said)|stand in the plan)",
        "In the clear is ε = ∞, has to be asked for",
    ),
    # Compositions are upper bounds.
    (r"exact or (it is |they are )?refused", "Claims are exact or refused"),
    # The norm of the noise grows with the square root of the number of coefficients.
    (
        r"\bten times the noise|(?<!√)\b10 times the noise",
        "Ten classes of 65 numbers are ten times the noise of two classes.",
    ),
    # At a noise-to-signal ratio of 1.0, breast cancer data are still classified with accuracy 0.93.
    (r"nothing (is )?to be had", "From about 1 on there is nothing to be had."),
    (r"hardly tells? anything", "The model hardly tells anything."),
    # Draws are exact.
    (r"what finite precision adds", "The total leaves out what finite precision adds."),
)


def texts() -> dict[str, str]:
    """Return every text of the project that a reader can see, by its path.

    Literals that are written one after the other, and lines of a comment, are joined.
    """
    paths = [*ROOT.glob("*.md"), ROOT / "pyproject.toml", ROOT / "CITATION.cff"]
    for folder in ("docs", "src", "benchmarks"):
        paths += (path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES)
    return {
        str(path.relative_to(ROOT)): joined(path.read_text(encoding="utf-8"))
        for path in paths
        if path.name != "CHANGELOG.md" and "build" not in path.parts
    }


def joined(text: str) -> str:
    text = re.sub(r"(\\n)?[\"'],?\s*\n\s*[a-zA-Z]{0,2}[\"']", "", text)
    return re.sub(r"\s+", " ", re.sub(r"\n\s*#", " ", text))


@pytest.fixture(scope="module")
def scanned() -> dict[str, str]:
    return texts()


@pytest.mark.parametrize("claim", [claim for claim, _ in WITHDRAWN])
def test_a_withdrawn_claim_appears_nowhere(claim: str, scanned: dict[str, str]) -> None:
    pattern = re.compile(claim, re.IGNORECASE)
    places = {
        name: match.group() for name, text in scanned.items() if (match := pattern.search(text))
    }
    assert places == {}


@pytest.mark.parametrize(("claim", "example"), WITHDRAWN)
def test_each_pattern_finds_its_example(claim: str, example: str) -> None:
    assert re.search(claim, joined(example), re.IGNORECASE)


def test_a_claim_is_found_in_a_message_of_several_literals() -> None:
    text = '    "Whoever sees the token before and after a "\n    f"visit can work out the rows"'
    assert "a visit can work out the rows" in joined(text)
