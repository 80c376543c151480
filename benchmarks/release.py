"""How long a release and a calibration take: `python -m benchmarks.release`.

A million released values against as many of NumPy's own gamma numbers, on the same generator and
shapes, in turns; and the median time to calibrate each mechanism.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.measurement import Measurement, main
from walklearn import privacy

VALUES = 1_000_000
ROUNDS = 5
THETAS = (0.01, 1.7, 30.0, 2000.0)  # shapes from 1/2000 to 5000
BOUNDS = (1.0, 50.0)


def measurements(quick: bool) -> Iterator[Measurement]:
    count = VALUES // 100 if quick else VALUES
    values = np.random.default_rng(0).uniform(*BOUNDS, count)
    for theta in THETAS:
        for mechanism in (privacy.Gamma(theta, BOUNDS), privacy.ClampedGamma(theta, BOUNDS)):
            ours, numpys = in_turns(
                lambda rng, m=mechanism: m.release(values, rng),
                lambda rng, t=theta: rng.gamma(values / t, t),
            )
            yield Measurement(f"{count:,} values of {mechanism} / NumPy's gamma", ours / numpys,
                              "times", 3.0, note=f"{ours:.3f} and {numpys:.3f} s")  # fmt: skip
    for kind in privacy.MECHANISMS:
        bounds = (1.0, 2.0) if kind == "gamma" else BOUNDS
        milliseconds = 1e3 * calibration_seconds(kind, bounds)
        yield Measurement(f"calibrating {kind} to (3, 0.03)", milliseconds, "ms", 50.0)


def in_turns(*contestants: Callable[[np.random.Generator], object]) -> list[float]:
    best = [np.inf] * len(contestants)
    for turn in range(ROUNDS):
        for place, run in enumerate(contestants):
            generator = np.random.default_rng(turn)
            start = time.perf_counter()
            run(generator)
            best[place] = min(best[place], time.perf_counter() - start)
    return best


def calibration_seconds(kind: str, bounds: tuple[float, float]) -> float:
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        privacy.calibrate(kind, epsilon=3.0, delta=0.03, bounds=bounds)
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


if __name__ == "__main__":
    main(measurements, __doc__)
