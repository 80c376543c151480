"""Figure 1 is computed from the exact accounting, and its floors are floors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from walklearn.privacy import ClampedGamma, Gamma
from walklearn.privacy.accounting.curves import gamma_smallest_epsilon
from walklearn.studies.paper import figure1

BOUNDS = (50.0, 100.0)


def test_exact_lies_between_floor_and_lemma() -> None:
    curves = {curve.series: curve.y for curve in figure1.delta_curves(BOUNDS, [20.0, 500.0])}
    floor = curves["floor: no θ goes below"]
    for theta in (20, 500):
        exact, lemma = curves[f"θ = {theta} exactly"], curves[f"θ = {theta} by the paper's lemma"]
        assert (floor <= exact + 1e-12).all()
        assert (exact <= lemma + 1e-12).all()
        assert exact[7] == Gamma(float(theta), BOUNDS).delta(float(figure1.EPSILONS[7]))


def test_least_theta_keeps_the_promise_and_ends_at_the_floor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(figure1, "CALIBRATED_AT", np.array([0.5, 2.5, 6.0]))
    for curve in figure1.theta_curves(BOUNDS, lemma=False):
        delta = figure1.DELTAS[curve.number]
        if "left of this" in curve.series:
            assert set(curve.x) == {gamma_smallest_epsilon(delta, BOUNDS)}
            continue
        kind = ClampedGamma if "clamped" in curve.how else Gamma
        for epsilon, theta in zip(curve.x, curve.y, strict=True):
            if np.isnan(theta):
                assert kind is Gamma
                assert epsilon < gamma_smallest_epsilon(delta, BOUNDS)
            else:
                assert kind(float(theta), BOUNDS).delta(float(epsilon)) <= delta * (1 + 1e-9)
                least = kind(float(theta) * 0.98, BOUNDS).delta(float(epsilon))
                assert least > delta * (1 - 1e-6)


def test_what_cannot_be_reached_has_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure1, "CALIBRATED_AT", np.array([3.0, 9.0]))
    hows = {curve.how for curve in figure1.theta_curves((10.0, 100.0))}
    assert hows == {"clamped to the bounds"}  # the unclamped needs ε above 17


def test_dotted_lines_mark_where_each_delta_begins(tmp_path: Path) -> None:
    folder, picture = figure1.compute("fig1b", tmp_path)
    limits = [name for name in picture.blocks[0].names if "left of this" in name]
    assert len(limits) == len(figure1.DELTAS)
    stored = pd.read_parquet(folder / "curves.parquet")
    assert set(limits) <= set(stored["series"])
