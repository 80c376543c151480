"""Methods are made as their tables describe; noise is calibrated to stated bounds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.studies.examples import SMALL, cell
from walklearn import AsynchronousGossip, GradientTracking, Problem, SynchronousGossip, privacy
from walklearn.objectives.linear.losses import Logistic
from walklearn.privacy import InfeasiblePrivacyError, calibrate, smoothness_bounds
from walklearn.studies import register_walk, run_cell
from walklearn.studies.methods import method_of
from walklearn.studies.options import StudyError
from walklearn.walks import (
    WALKS,
    HistoryDriven,
    Independent,
    Jumping,
    NonBacktracking,
    OldestFirst,
    Simple,
    Tour,
    Uniform,
    Weighted,
)

PROBLEM = Problem([[1.0], [2.0], [3.0]], [1.0, -1.0, 1.0], penalty=1.0)
TARGET = {"walk": "weighted", "epsilon": 3.0, "delta": 0.03, "bounds": [1.0, 50.0]}
BOUNDS = (1.0, 50.0)


def calibrated(kind: str) -> privacy.Mechanism:
    return calibrate(kind, epsilon=3.0, delta=0.03, bounds=BOUNDS)


@pytest.mark.parametrize(
    ("table", "method"),
    [
        ({"walk": "simple", "reweight": "degree"}, Simple(reweight="degree")),
        ({"walk": "uniform", "normalise": True}, Uniform(normalise=True)),
        ({"walk": "oldest-first"}, OldestFirst()),
        ({"walk": "tour", "reweight": "round"}, Tour(reweight="round")),
        ({"walk": "jumping", "base": "simple", "reweight": "gap"},
         Jumping(Simple(reweight="gap"))),
        ({"walk": "weighted", "laziness": 0.25}, Weighted(laziness=0.25)),
        ({"walk": "jumping", "max_hops": 2}, Jumping(max_hops=2)),
        ({"walk": "jumping", "base": "uniform", "laziness": 0.5}, Jumping(Uniform(laziness=0.5))),
        ({"walk": "non-backtracking"}, NonBacktracking()),
        ({"walk": "non-backtracking", "base": "weighted"}, NonBacktracking(Weighted())),
        ({"walk": "independent", "base": "weighted"}, Independent(Weighted())),
        ({"gossip": "asynchronous", "corrected": False}, AsynchronousGossip(corrected=False)),
        ({"walk": "history-driven", "alpha": 5.0}, HistoryDriven(alpha=5.0)),
        ({"gossip": "gradient-tracking"}, GradientTracking()),
        ({"gossip": "synchronous"}, SynchronousGossip()),
        ({**TARGET, "mechanism": "clamped-gamma", "reweight": "as-printed"},
         Weighted(privacy=calibrated("clamped-gamma"), reweight="as-printed")),
        ({**TARGET, "walk": "jumping", "mechanism": "gaussian"},
         Jumping(Weighted(privacy=calibrated("gaussian")))),
    ],
)  # fmt: skip
def test_methods(table: dict, method: object) -> None:
    assert method_of(table, {}, PROBLEM) == method


@pytest.mark.parametrize(
    ("table", "mechanism"),
    [
        ({"mechanism": "gamma", "theta": 5.0}, privacy.Gamma(5.0, BOUNDS)),
        ({"mechanism": "clamped-gamma", "theta": 5.0}, privacy.ClampedGamma(5.0, BOUNDS)),
        ({"mechanism": "laplace", "scale": 7.0, "clamp": [2.0, 40.0]},
         privacy.Laplace(7.0, BOUNDS, (2.0, 40.0))),
        ({"mechanism": "truncated-laplace", "scale": 7.0, "cut": 9.0},
         privacy.TruncatedLaplace(7.0, 9.0, BOUNDS)),
    ],
)  # fmt: skip
def test_stated_noise(table: dict, mechanism: object) -> None:
    stated = {key: value for key, value in TARGET.items() if key != "delta"}
    made = method_of({**stated, **table}, {}, PROBLEM)
    assert isinstance(made, Weighted)
    assert made.privacy == mechanism
    with pytest.raises(StudyError, match=r"epsilon\. Remove"):
        method_of({**TARGET, **table}, {}, PROBLEM)


def test_sources_of_bounds() -> None:
    private = {**TARGET, "mechanism": "laplace"}
    public = method_of({**private, "bounds": "public"}, {"feature_bound": 4.0}, PROBLEM)
    assert isinstance(public, Weighted)
    assert public.privacy.bounds == smoothness_bounds(Logistic(), 1.0, 3, feature_bound=4.0)
    oracle = method_of({**private, "bounds": "instance"}, {}, PROBLEM)
    assert isinstance(oracle, Weighted)
    constants = PROBLEM.smoothness_constants
    assert oracle.privacy.bounds == (constants.min(), constants.max())


def test_an_infeasible_target() -> None:
    with pytest.raises(InfeasiblePrivacyError):
        method_of({**TARGET, "mechanism": "gamma"}, {}, PROBLEM)


STICKY = """
from dataclasses import dataclass
from walklearn.walks import Uniform

@dataclass(frozen=True, repr=False)
class Sticky(Uniform):
    glue: float = 0.5

    def __post_init__(self):
        object.__setattr__(self, "laziness", self.glue)
        super().__post_init__()

def nothing():
    return None
"""
STICKY_METHOD = '[methods.sticky]\nwalk = "sticky"\nglue = 0.75\n'


def test_a_walk_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sticky_walks.py").write_text(STICKY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "sticky_walks", raising=False)
    with pytest.raises(StudyError, match='"sticky"'):
        method_of({"walk": "sticky"}, {}, PROBLEM)
    register_walk("sticky", "sticky_walks:Sticky")
    try:
        register_walk("sticky", "sticky_walks:Sticky")  # a module may be loaded twice
        with pytest.raises(ValueError, match="already"):
            register_walk("uniform", "sticky_walks:Sticky")
        assert method_of({"walk": "sticky", "glue": 0.75}, {}, PROBLEM).laziness == 0.75
        with pytest.raises(StudyError, match=r"Sticky; .*glue"):
            method_of({"walk": "sticky", "glu": 0.75}, {}, PROBLEM)
        register_walk("lost", "no_such_module:Lost")
        with pytest.raises(ValueError, match="no_such_module"):
            method_of({"walk": "lost"}, {}, PROBLEM)
        register_walk("nothing", "sticky_walks:nothing")
        with pytest.raises(TypeError, match=r"sticky_walks:nothing .*None"):
            method_of({"walk": "nothing"}, {}, PROBLEM)
        with pytest.raises(StudyError, match=r"home .*Sticky"):
            method_of({"walk": "sticky", "home": "subprocess:Popen"}, {}, PROBLEM)
        sticky = cell(SMALL + STICKY_METHOD, method="sticky")
    finally:
        for name in ("sticky", "lost", "nothing"):
            WALKS.remove(name)
    # A worker does not have the registration: the cell has the import path.
    assert sticky.description["import_paths"] == {"walk": {"sticky": "sticky_walks:Sticky"}}
    try:
        assert run_cell(sticky).records["messages"].max() < 100
    finally:
        WALKS.remove("sticky")
