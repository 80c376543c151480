"""What privacy costs in accuracy, with nothing tuned: `python -m benchmarks.private_accuracy`.

20 nodes, rows split at random into a quarter to test and the rest on the nodes, δ = 1e-5 for each
row (where that is said, for each whole node), all else as the estimator chooses; mean over 20 such
splits, and in points the distance to the same walk without privacy. Public scales are stood in
for by the mean and the deviation of each column of all rows, rounded to one digit, with values cut
off at three of them; or by the columns' ranges alone.

Regression is measured by R² on all rows, with a centre and a spread of the target rounded likewise.

The constants of `privacy.accounting.budget` were chosen on the first group of data sets. The second
group was made and looked at only afterwards, once. Those that are made are made from a seed, the
heavy-tailed ones like counts of words in mail.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    make_classification,
    make_friedman1,
    make_regression,
)
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

from benchmarks.measurement import Measurement, main
from walklearn import RandomWalkClassifier, RandomWalkRegressor
from walklearn.privacy.model_noise import Unit
from walklearn.tables import Schema

NODES, DELTA, SPLITS = 20, 1e-5, 20
EPSILONS = (3.0, 1.0)
Rows = tuple[np.ndarray, np.ndarray]


class Case(NamedTuple):
    """A data set, and what it may lose at each ε, in points; or what it must reach."""

    name: str
    rows: Callable[[], Rows]
    lost: tuple[float | None, float | None] = (None, None)
    ranges: bool = False
    protect: Unit = "rows"
    reached: float | None = None  # at the first ε


def plane(count: int = 5000, columns: int = 50, seed: int = 2) -> Rows:
    """Two classes on the sides of a plane through a ball of points, blurred."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((count, columns))
    normal = generator.standard_normal(columns)
    side = X @ (normal / np.linalg.norm(normal)) + 0.5 * generator.standard_normal(count)
    return X, side > 0


def mail(count: int = 4600, columns: int = 57, seed: int = 0) -> Rows:
    """Counts with heavy tails, most of them 0, that lean to one of two classes."""
    generator = np.random.default_rng(seed)
    y = generator.random(count) < 0.4
    lean = np.where(y, 1.0, -1.0)[:, None] * generator.normal(0, 0.5, columns)
    occurs = generator.random((count, columns)) < 0.25 + 0.2 * np.tanh(lean)
    often = np.exp(generator.normal(0, 1.2, (count, columns)) + 0.3 * lean)
    return occurs * often * np.exp(generator.normal(0, 1.5, columns)), y


def made(**options: Any) -> Callable[[], Rows]:
    settings: dict[str, Any] = {"class_sep": 1.0, "flip_y": 0.02, **options}
    return lambda: make_classification(**settings)


def of(load: Callable[..., Any]) -> Callable[[], Rows]:
    return lambda: load(return_X_y=True)


CHOSEN_ON = [
    Case("breast cancer", of(load_breast_cancer), (5.0, 10.0)),
    Case("breast cancer, ranges only", of(load_breast_cancer), (10.0, 16.0), ranges=True),
    Case("breast cancer, whole nodes", of(load_breast_cancer), protect="node"),
    Case("5,000 × 50, a blurred plane", plane, (5.0, 10.0)),
    Case("digits", of(load_digits), reached=0.68),
    Case("8,000 × 100, clusters", made(n_samples=8000, n_features=100, n_informative=30,
         n_redundant=20, random_state=12), (5.0, 10.0)),
    Case("10,000 × 54, 7 classes", made(n_samples=10_000, n_features=54, n_informative=12,
         n_redundant=8, n_classes=7, n_clusters_per_class=1, class_sep=1.2, random_state=13)),
    Case("4,600 × 57, heavy tails", mail, (5.0, 10.0)),
]  # fmt: skip
UNSEEN = [
    Case("3,000 × 40, clusters", made(n_samples=3000, n_features=40, n_informative=8,
         n_redundant=8, random_state=31), (5.0, 10.0)),
    Case("6,000 × 30, clusters, 25 : 75", made(n_samples=6000, n_features=30, n_informative=10,
         n_redundant=5, weights=[0.25], random_state=32), (5.0, 10.0)),
    Case("8,000 × 60, a blurred plane", lambda: plane(8000, 60, seed=33), (5.0, 10.0)),
    Case("6,000 × 70, heavy tails", lambda: mail(6000, 70, seed=34), (5.0, 10.0)),
    Case("12,000 × 30, 4 classes", made(n_samples=12_000, n_features=30, n_informative=8,
         n_redundant=4, n_classes=4, n_clusters_per_class=1, class_sep=1.2, random_state=35),
         (5.0, 10.0)),
]  # fmt: skip
# A data set with numbers to predict, and the R² that it must reach at the first ε.
NUMBERS: list[tuple[str, Callable[[], Rows], float]] = [
    ("diabetes", lambda: load_diabetes(return_X_y=True, scaled=False), 0.38),
    ("3,000 × 20, linear", lambda: make_regression(3000, 20, n_informative=8, noise=30.0,
     bias=500.0, random_state=1), 0.9),
    ("2,000 × 10, curved", lambda: make_friedman1(2000, noise=1.0, random_state=2), 0.68),
]  # fmt: skip


def public(X: np.ndarray, ranges: bool) -> Schema:
    """Scales of the columns, from numbers that stand for public ones."""
    if ranges:
        pairs = zip(X.min(axis=0), X.max(axis=0), strict=True)
        return Schema.of(
            {
                f"x{at}": {"range": (low, max(high, low + 1e-9))}
                for at, (low, high) in enumerate(pairs)
            }
        )
    spread = X.std(axis=0)
    digit = 10.0 ** np.floor(np.log10(np.where(spread > 0, spread, 1.0)))
    spread = np.where(spread > 0, np.rint(spread / digit) * digit, 1.0)
    return Schema.typical(np.rint(X.mean(axis=0) / digit) * digit, spread)


class Score(NamedTuple):
    """Accuracy on the test rows of one split, and the noise-to-signal ratio of the fit."""

    accuracy: float
    ratio: float


def score(epsilon: float | None, X: np.ndarray, y: np.ndarray, case: Case, split: int) -> Score:
    """Fit one split, with or without privacy, and score it."""
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=split)
    owners = np.random.default_rng(split).permutation(np.arange(len(train)) % NODES)
    asked: dict[str, Any] = {"walk": "uniform"}
    if epsilon is not None:
        asked = {"epsilon": epsilon, "delta": DELTA, "protect": case.protect}
        if case.protect == "node":
            asked["total_rows"] = float(len(train))
    walk = RandomWalkClassifier(schema=public(X, case.ranges), random_state=split, **asked)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        walk.fit(train, y_train, nodes=owners)
    ratio = 0.0 if walk.budget_plan_ is None else walk.budget_plan_.noise_to_signal
    return Score(float(np.mean(walk.predict(test) == y_test)), ratio)


def of_case(case: Case, splits: int) -> Iterator[Measurement]:
    X, y = case.rows()
    X, y = np.asarray(X, dtype=float), np.asarray(y).astype(int)
    most = np.bincount(y).max() / len(y)
    scores = {
        epsilon: [score(epsilon, X, y, case, split) for split in range(splits)]
        for epsilon in (None, *EPSILONS)
    }
    every = {epsilon: np.mean([each.accuracy for each in of]) for epsilon, of in scores.items()}
    for epsilon, lost in zip(EPSILONS, case.lost, strict=True):
        accuracies = [each.accuracy for each in scores[epsilon]]
        error = np.std(accuracies, ddof=1) / np.sqrt(splits)
        note = (
            f"{every[epsilon]:.3f} (standard error {error:.3f}), without privacy "
            f"{every[None]:.3f}, most frequent {most:.3f}, noise-to-signal ratio "
            f"{scores[epsilon][0].ratio:.2g}"
        )
        points = 100.0 * float(every[None] - every[epsilon])
        yield Measurement(f"{case.name}, ε = {epsilon:g}: lost", points, "points", lost, note=note)
    if case.reached is not None:
        reached = float(every[EPSILONS[0]])
        yield Measurement(f"{case.name}, ε = {EPSILONS[0]:g}: accuracy", reached, "",
                          case.reached, at_least=True)  # fmt: skip


def of_numbers(
    name: str, rows: Callable[[], Rows], least: float, splits: int
) -> Iterator[Measurement]:
    """R² of a regression on the test rows, mean over splits, and what it is without privacy."""
    X, y = rows()
    target = public(y[:, None], ranges=False).columns["x0"]
    scale = {"target_centre": target.centre, "target_spread": target.spread}
    reached = {}
    for epsilon in (None, *EPSILONS):
        asked = {} if epsilon is None else {"epsilon": epsilon, "delta": DELTA, **scale}
        scores = []
        for split in range(splits):
            train, test, y_train, y_test = train_test_split(
                X, y, test_size=0.25, random_state=split
            )
            owners = np.random.default_rng(split).permutation(np.arange(len(train)) % NODES)
            walk = RandomWalkRegressor(schema=public(X, ranges=False), random_state=split, **asked)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                walk.fit(train, y_train, nodes=owners)
            scores.append(r2_score(y_test, walk.predict(test)))
        reached[epsilon] = float(np.mean(scores))
        if epsilon is not None:
            error = np.std(scores, ddof=1) / np.sqrt(splits)
            limit = least if epsilon == EPSILONS[0] else None
            note = f"standard error {error:.3f}, without privacy {reached[None]:.3f}"
            yield Measurement(f"{name}, ε = {epsilon:g}: R²", reached[epsilon], "", limit,
                              at_least=True, note=note)  # fmt: skip


def measurements(quick: bool) -> Iterator[Measurement]:
    """Those that the defaults were chosen on, then those that were not looked at."""
    for name, rows, least in NUMBERS[:1] if quick else NUMBERS:
        yield from of_numbers(name, rows, least, 2 if quick else SPLITS)
    for case in [*CHOSEN_ON[:1]] if quick else [*CHOSEN_ON, *UNSEEN]:
        yield from of_case(case, 2 if quick else SPLITS)


if __name__ == "__main__":
    main(measurements, __doc__)
