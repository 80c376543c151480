"""The shipped studies: the paper's figures and further experiments.

Each is a TOML file in `studies/`; Figure 1 is computed and not simulated (`figure1`).

>>> select(["fig2", "map"])
['fig2a', 'fig2b', 'map']
>>> select(["fig9"])
Traceback (most recent call last):
ValueError: there is no figure or study 'fig9'. Choose from fig1a, fig1b, fig2a, ...
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from walklearn.studies import Study
from walklearn.studies.import_paths import register_shipped

COMPUTED = {
    "fig1a": "Which δ does Gamma noise of a given level have, and where is its floor?",
    "fig1b": "How much Gamma noise does a given (ε, δ) need, if any is enough?",
}
STUDIES = (
    "fig2a", "fig2b", "fig3", "slope", "bounds", "heterogeneous", "map", "topologies", "price",
    "communication", "methods", "memory-private", "real-data",
)  # fmt: skip
NAMES = (*COMPUTED, *STUDIES)


def select(names: Sequence[str]) -> list[str]:
    """Return the chosen names in the order of the paper; a prefix such as fig2 selects several."""
    for name in names:
        if not name or not any(known.startswith(name) for known in NAMES):
            raise ValueError(
                f"there is no figure or study {name!r}. Choose from {', '.join(NAMES)}, or give "
                "the start of several names, such as fig2."
            )
    return [known for known in NAMES if not names or known.startswith(tuple(names))]


def shipped_study(name: str) -> Study:
    """Read a shipped study from its file."""
    register_shipped(name)
    return Study.from_text(_text(name), f"{name}.toml")


def shipped_texts() -> list[str]:
    """The texts of all shipped studies, for the report."""
    return [_text(name) for name in STUDIES]


def _text(name: str) -> str:
    file = files("walklearn.studies.paper") / "studies" / f"{name}.toml"
    return file.read_text(encoding="utf-8")
