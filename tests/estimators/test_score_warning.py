"""A private estimator warns, once per process, that no ε covers a score on its rows."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

import walklearn as wl
from walklearn.estimators import statements

X = np.random.default_rng(1).normal(size=(40, 2))
CLASSES, NUMBERS = (X[:, 0] > 0).astype(int), X @ [1.0, -1.0]
TOTAL: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-5, "row_length": 1.5, "steps": 20}
NOISE: dict[str, Any] = {
    "model_privacy": wl.privacy.ModelNoise(1.0, 5.0, 3), "feature_bound": 3.0, "steps": 20
}  # fmt: skip
SCALE = {"target_centre": 0.0, "target_spread": 1.0}
ESTIMATORS = {
    "total": (wl.RandomWalkClassifier(**TOTAL), CLASSES),
    "seeded": (wl.RandomWalkClassifier(**TOTAL, random_state=1), CLASSES),
    "noise by hand": (wl.RandomWalkClassifier(**NOISE), CLASSES),
    "regression": (wl.RandomWalkRegressor(**NOISE, **SCALE), NUMBERS),
}


@pytest.fixture(autouse=True)
def _first_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "_warned", False)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_first_score_of_a_private_estimator_warns(name: str) -> None:
    estimator, targets = ESTIMATORS[name]
    fitted = estimator.fit(X, targets)
    with pytest.warns(wl.PrivacyWarning) as caught:
        scores = [fitted.score(X, targets) for _ in range(2)]
    assert scores[0] == scores[1]
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_without_protection_nothing_is_said() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", wl.PrivacyWarning)
        wl.RandomWalkClassifier(steps=20, random_state=1).fit(X, CLASSES).score(X, CLASSES)
        wl.RandomWalkRegressor(steps=20, random_state=1).fit(X, NUMBERS).score(X, NUMBERS)


def test_cross_validation_warns_once() -> None:
    with pytest.warns(wl.PrivacyWarning) as caught:
        cross_val_score(wl.RandomWalkClassifier(**TOTAL), X, CLASSES, cv=3)
    assert len(caught) == 1


def test_a_script_goes_on_after_the_warning() -> None:
    script = (
        "import numpy as np, walklearn as wl\n"
        "X = np.random.default_rng(1).normal(size=(40, 2)); y = (X[:, 0] > 0).astype(int)\n"
        "fit = wl.RandomWalkClassifier(epsilon=3., delta=1e-5, row_length=2.)\n"
        "fit.fit(X, y)\n"
        "for _ in range(3):\n    print(fit.score(X, y))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-W", "always", "-c", script], capture_output=True, text=True, check=True
    )
    assert len(ended.stdout.splitlines()) == 3
    assert ended.stderr.count("PrivacyWarning: a score on private rows is a release") == 1
