"""The headline of the demo follows from its results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from walklearn.simulation.trace import Trace
from walklearn.studies.paper.figure2 import METHODS, Result, draw, headline, updates_to

UPDATES = [1, 2_000, 20_000]
SGD = 4 * [(0.5, 0.3)]


def result(label: str, *errors: float) -> Result:
    """A run with these errors after 2,000 and 20,000 updates."""
    trace = Trace(
        label=label, spec={}, updates=UPDATES, messages=[UPDATES], time=[[0.0, 1999.0, 19_999.0]],
        message_bytes=80, metrics={"gap": np.array([[10.0, *errors]])}, models=[[0.0]],
        averages=[[0.0]],
    )  # fmt: skip
    return Result(None, trace)


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ([*SGD, (1e-2, 1e-9), (1e-7, 0.0)],
         "10⁻⁶: Finito after 2,000 updates, SAGA after 20,000, SGD not in 20,000"),
        ([*SGD, (1e-6, 1e-6), (1e-2, 1e-6)], "Finito after 20,000 updates, SAGA after 2,000"),
        ([*SGD, (1e-2, 1e-5), (1e-7, 0.0)], "After 20,000 updates: the paper's walks"),
        ([*SGD[1:], (1.0, 1e-7), (1e-2, 1e-9), (1e-7, 0.0)], "After 20,000 updates: the paper's"),
    ],
)  # fmt: skip
def test_the_headline_follows_from_the_errors(
    errors: list[tuple[float, float]], words: str, tmp_path: Path
) -> None:
    runs = [result(label, *error) for label, error in zip(METHODS, errors, strict=True)]
    assert words in headline(runs)
    draw(runs, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_updates_to_an_error() -> None:
    trace = result("a", 0.5, 0.3).trace
    assert [updates_to(trace, error) for error in (0.5, 0.4, 0.2)] == [2_000, 20_000, None]
