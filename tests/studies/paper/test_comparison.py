"""The headline of the demo follows from its results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from walklearn.simulation.trace import Trace
from walklearn.studies.paper.figure2 import METHODS, Result, draw, headline


def results(*errors: float) -> list[Result]:
    """Runs of the three methods and of the walk with memory that end at these errors."""
    made = []
    for label, error in zip(METHODS, errors, strict=True):
        gap = np.array([[10.0, error]])
        made.append(
            Result(None, Trace(label=label, spec={}, updates=[1, 20_000], messages=[[1, 20_000]],
                               time=[[0.0, 19_999.0]], message_bytes=80, metrics={"gap": gap},
                               models=[[0.0]], averages=[[0.0]]))
        )  # fmt: skip
    return made


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ((0.32, 0.57, 2.1, 9.5e-10), "updates a walk with memory is more than 10⁸ times closer"),
        ((3.0, 4.0, 5.0, 0.2), "is more than 10 times closer to f*"),  # 15: never rounded up
        ((3.0, 4.0, 5.0, 2.0), "updates a walk with memory is closer to f*"),
        ((3.0, 4.0, 5.0, 3.5), "updates: the paper's walks, gossip, and a walk with memory"),
        ((3.0, 4.0, 5.0, 0.0), "updates: the paper's walks, gossip, and a walk with memory"),
    ],
)
def test_the_headline_follows_from_the_errors(
    errors: tuple[float, ...], words: str, tmp_path: Path
) -> None:
    runs = results(*errors)
    assert words in headline(runs)
    draw(runs, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
