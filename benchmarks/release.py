"""How long a release and a calibration take: `python -m benchmarks.release`.

A million simulated releases against as many of NumPy's own gamma numbers, on the same generator and
shapes, in turns; the cost of an exact draw, with NumPy's normal numbers and, if it is installed,
OpenDP's discrete Gaussian for comparison; and the median time to calibrate each mechanism.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.measurement import Measurement, main
from walklearn import privacy
from walklearn.privacy.draws.exact_draws import BLOCK

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
    yield from exact_draws(2_000 if quick else 20_000)
    for kind in privacy.MECHANISMS:
        bounds = (1.0, 2.0) if kind == "gamma" else BOUNDS
        milliseconds = 1e3 * calibration_seconds(kind, bounds)
        yield Measurement(f"calibrating {kind} to (3, 0.03)", milliseconds, "ms", 50.0)


def exact_draws(count: int) -> Iterator[Measurement]:
    """Microseconds of processor time for each number: others may share the machine."""
    noise = privacy.ModelNoise(clip=1.0, noise_multiplier=3.0, max_contributions=1)
    # Draws are made in blocks: several of them count, not the best case of none.
    costs, many = {}, max(100 * count, 10 * BLOCK * ROUNDS)
    for size in (50, 4096, 65_536):
        costs[size] = microseconds(lambda n=size: noise.draw(n), size, many)
        what = f"exact noise on the model, a coordinate in draws of {size:,}"
        yield Measurement(what, costs[size], "µs", None if size < 4096 else 0.3)
    generator = np.random.default_rng(0)
    numpys = microseconds(lambda: generator.standard_normal(4096), 4096, many)
    yield Measurement("exact noise in draws of 4,096 / NumPy's normal numbers",
                      costs[4096] / numpys, "times", 8.0)  # fmt: skip
    yield opendp_gaussian(count)
    values = np.full(50, 20.0)
    for mechanism in (
        privacy.Gaussian(3.0, BOUNDS), privacy.Laplace(3.0, BOUNDS),
        privacy.TruncatedLaplace(3.0, 9.0, BOUNDS), privacy.ClampedGamma(30.0, BOUNDS),
        privacy.ClampedGamma(8000.0, BOUNDS), privacy.Gamma(1.7, BOUNDS),
    ):  # fmt: skip
        value = microseconds(lambda m=mechanism: m.release(values), 50, count // 10)
        yield Measurement(f"exact release by {mechanism}, one of 50", value, "µs")


def opendp_gaussian(count: int) -> Measurement:
    what = "OpenDP's discrete Gaussian, a coordinate of 50"
    try:
        import opendp.prelude as dp
    except ImportError:
        return Measurement(what, np.nan, "µs", note="opendp is not installed")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    gaussian = dp.m.make_gaussian(*space, scale=3.0 * 2.0**24)
    value = microseconds(lambda: gaussian([0] * 50), 50, count)
    return Measurement(what, value, "µs")


def microseconds(run: Callable[[], object], numbers: int, count: int) -> float:
    run()
    best = np.inf
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(max(1, count // numbers // ROUNDS)):
            run()
        took = time.process_time() - start
        best = min(best, took / max(1, count // numbers // ROUNDS) / numbers)
    return 1e6 * best


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
