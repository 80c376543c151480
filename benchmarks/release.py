"""How long a release and a calibration take: `python -m benchmarks.release`.

A million released values against as many of NumPy's own gamma numbers, on the same generator and
shapes, in turns; and the median time to calibrate each mechanism.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from walklearn import privacy

VALUES = 1_000_000
ROUNDS = 5
THETAS = (0.01, 1.7, 30.0, 2000.0)  # shapes from 1/2000 to 5000
BOUNDS = (1.0, 50.0)


def main() -> None:
    values = np.random.default_rng(0).uniform(*BOUNDS, VALUES)
    print(f"release of {VALUES:,} values against NumPy's gamma sampler (target: at most 3 times)")
    for theta in THETAS:
        for mechanism in (privacy.Gamma(theta, BOUNDS), privacy.ClampedGamma(theta, BOUNDS)):
            ours, numpys = in_turns(
                lambda rng, m=mechanism: m.release(values, rng),
                lambda rng, t=theta: rng.gamma(values / t, t),
            )
            print(f"  {mechanism!s:<45} {ours / numpys:5.2f} times ({ours:.3f} s)")
    print("calibration to (3, 0.03), median (target: under 50 ms)")
    for kind in privacy.MECHANISMS:
        bounds = (1.0, 2.0) if kind == "gamma" else BOUNDS
        print(f"  {kind:<20} {1e3 * calibration_seconds(kind, bounds):6.1f} ms")


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
    main()
