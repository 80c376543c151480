"""How good the estimators are, and how long they take: `python -m benchmarks.estimators`.

Mean accuracy over 5 stratified folds, against scikit-learn's LogisticRegression and SGDClassifier,
without privacy and at ε = 1, 3 and 10. With --time, the time to fit as a ratio, in turns. With
--length, the loss for shorter and longer steps than the one that is chosen.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.measurement import Measurement
from walklearn import PowerStep, RandomWalkClassifier
from walklearn.objectives.datasets import two_gaussians
from walklearn.privacy import ModelNoise
from walklearn.updates.step_choice import EXPONENT, LENGTH

DATA = {"breast cancer": load_breast_cancer, "digits": load_digits}
EPSILONS = (1.0, 3.0, 10.0)
DELTA, FEATURE_BOUND = 0.03, 8.0
ROUNDS = 7
Make = Callable[[int], Any]


def walk(**options: Any) -> Make:
    return lambda seed: RandomWalkClassifier(random_state=seed, **options)


def papers(**options: Any) -> RandomWalkClassifier:
    """The weighted walk with the paper's update."""
    return RandomWalkClassifier(walk="weighted", update="sgd", random_state=0, **options)


def scaled(make: Make) -> Make:
    """Columns scaled first; under privacy that stands for scales that are public."""
    return lambda seed: make_pipeline(StandardScaler(), make(seed))


def private(epsilon: float, **options: Any) -> Make:
    clear = {"model": "in the clear", "walk": "weighted", **options}  # ε is about L_i alone
    return scaled(walk(epsilon=epsilon, delta=DELTA, feature_bound=FEATURE_BOUND, **clear))


def protected(epsilon: float) -> Make:
    """Noise on the model: each node contributes 5 times, all of that together at this ε."""
    noise = ModelNoise.calibrate(epsilon=epsilon, delta=DELTA, clip=1.0, max_contributions=5)
    return scaled(walk(walk="uniform", model_privacy=noise, feature_bound=FEATURE_BOUND))


CONTESTANTS: dict[str, Make] = {
    "LogisticRegression, raw": lambda seed: LogisticRegression(),
    "LogisticRegression, standardised": scaled(lambda seed: LogisticRegression()),
    "SGDClassifier, raw": lambda seed: SGDClassifier(loss="log_loss", random_state=seed),
    "SGDClassifier, standardised": scaled(
        lambda seed: SGDClassifier(loss="log_loss", random_state=seed)
    ),
    "walk with memory, raw": walk(),
    "weighted walk, raw": walk(walk="weighted", update="sgd"),
    "weighted walk, standardised": scaled(walk(walk="weighted", update="sgd")),
    "uniform walk, raw": walk(update="sgd"),
    **{f"weighted walk, L_i released at ε = {e:g}": private(e) for e in EPSILONS},
    "uniform walk, which releases nothing, by the same public choices": private(1, walk="uniform"),
    **{f"uniform walk, the model protected at ε = {e:g}": protected(e) for e in EPSILONS},
}


def accuracies(make: Make, X: Any, y: Any, seeds: int) -> tuple[float, float, float]:
    """Mean over folds and seeds, spread of that mean over seeds, share of fits that warned."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    scores, warned = np.zeros((seeds, 5)), 0
    for seed in range(seeds):
        for fold, (train, test) in enumerate(folds.split(X, y)):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ConvergenceWarning)
                model = make(seed).fit(X[train], y[train])
            warned += bool(caught)
            scores[seed, fold] = model.score(X[test], y[test])
    by_seed = scores.mean(axis=1)
    return float(by_seed.mean()), float(by_seed.std()), warned / scores.size


def seconds(makers: dict[str, Make], X: Any, y: Any) -> dict[str, float]:
    """Median over rounds in which all contestants take turns."""
    spent: dict[str, list[float]] = {name: [] for name in makers}
    for turn in range(ROUNDS + 1):  # the first is to warm up
        for name, make in makers.items():
            model = make(turn)
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X, y)
            spent[name].append(time.perf_counter() - start)
    return {name: float(np.median(times[1:])) for name, times in spent.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, breast cancer only")
    parser.add_argument("--time", action="store_true", help="time to fit, on an idle machine")
    parser.add_argument("--length", action="store_true", help="shorter and longer steps")
    arguments = parser.parse_args()
    if arguments.length:
        print_lengths()
        return
    seeds = 1 if arguments.quick else 3
    for name, load in list(DATA.items())[: 1 if arguments.quick else None]:
        X, y = load(return_X_y=True)
        if arguments.time:
            print_times(name, X, y)
            continue
        print(f"\n| {name} | accuracy | against LogisticRegression | spread over seeds |")
        print("|---|---:|---:|---:|")
        best = None
        for contestant, make in CONTESTANTS.items():
            mean, spread, warned = accuracies(make, X, y, seeds)
            best = mean if contestant == "LogisticRegression, standardised" else best
            points = "" if best is None else f"{100 * (mean - best):+.2f}"
            note = f" ({warned:.0%} of fits warned)" if warned else ""
            print(f"| {contestant}{note} | {mean:.4f} | {points} | {spread:.4f} |", flush=True)


def measurements(quick: bool) -> Iterator[Measurement]:
    """Without privacy a walk should be within a point of LogisticRegression; the rest is shown."""
    plain = (
        "walk with memory, raw",
        "weighted walk, raw",
        "weighted walk, standardised",
        "uniform walk, raw",
    )
    for name, load in list(DATA.items())[: 1 if quick else None]:
        X, y = load(return_X_y=True)
        best, *_ = accuracies(CONTESTANTS["LogisticRegression, standardised"], X, y, 1)
        for contestant in plain if quick else CONTESTANTS:
            mean, spread, _ = accuracies(CONTESTANTS[contestant], X, y, 1 if quick else 3)
            yield Measurement(f"{name}: {contestant}, over LogisticRegression", 100 * (mean - best),
                              "points", -1.0 if contestant in plain else None, True,
                              f"accuracy {mean:.4f}, spread over seeds {spread:.4f}")  # fmt: skip


def timed(quick: bool) -> Iterator[Measurement]:
    """Time of a fit, which `benchmarks.compare` compares; `measurements` has accuracies only."""
    for name, load in list(DATA.items())[: 1 if quick else None]:
        X, y = load(return_X_y=True)
        chosen = ("walk with memory, raw", "uniform walk, raw", "LogisticRegression, standardised")
        chosen += tuple(c for c in CONTESTANTS if "protected at ε = 3" in c)
        times = seconds({c: CONTESTANTS[c] for c in chosen}, X, y)
        of_other = times.pop("LogisticRegression, standardised")
        for contestant, spent in times.items():
            yield Measurement(f"{name}: {contestant}", spent / of_other, "times", own_time=spent)


def print_lengths() -> None:
    """The training loss after some updates, for first steps of so many 1/L̄."""
    sets = {name: load(return_X_y=True) for name, load in DATA.items()}
    sets["two Gaussians"] = two_gaussians(3000, dimension=10, variance=10.0, seed=1)
    lengths = [LENGTH * factor for factor in (0.25, 0.5, 1.0, 2.0, 4.0)]
    print("| data | updates |" + "".join(f" {length:g} / L̄ |" for length in lengths))
    print("|---|---:|" + "---:|" * len(lengths))
    for name, (X, y) in sets.items():
        chosen = papers(steps=1).fit(X, y).step_size_.constant
        for steps in (4000, 64_000):
            losses = []
            for length in lengths:
                step = PowerStep(chosen * length / LENGTH, EXPONENT)
                model = papers(steps=steps, step_size=step)
                losses.append(model.fit(X, y).trace_.average_value[0, -1])
            print(f"| {name} | {steps} |" + "".join(f" {loss:.4f} |" for loss in losses))


def print_times(name: str, X: Any, y: Any) -> None:
    chosen = [c for c in CONTESTANTS if "standardised" in c or "released at ε = 3" in c]
    times = seconds({c: CONTESTANTS[c] for c in chosen}, X, y)
    print(f"\n| {name}, {len(X)} rows | seconds | against LogisticRegression | against SGD |")
    print("|---|---:|---:|---:|")
    for contestant, spent in times.items():
        logistic = spent / times["LogisticRegression, standardised"]
        sgd = spent / times["SGDClassifier, standardised"]
        print(f"| {contestant} | {spent:.3f} | {logistic:.1f} | {sgd:.1f} |")


if __name__ == "__main__":
    main()
