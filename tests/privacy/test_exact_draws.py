"""Exact draws: every cell against 60 digits, for any bits, distribution and first guess."""

from __future__ import annotations

import math
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import flint
import mpmath
import numpy as np
import pytest

from tests.running import python
from walklearn import privacy
from walklearn.privacy.draws import exact_draws
from walklearn.privacy.draws.exact_draws import GammaDistribution, Normal, TruncatedLaplace

STEP = 2.0**-12
DISTRIBUTIONS = [
    (Normal(2.0), 0.0),
    (Normal(0.3), 1.7),
    (Normal(1e-9), 1e9 + 0.1),
    (TruncatedLaplace(2.0), 3.3),
    (TruncatedLaplace(1e-6), 7.0),
    (TruncatedLaplace(2.0, 5.0), 3.3),
    (TruncatedLaplace(1e5, 8.0), 1.0),
    (TruncatedLaplace(1.0, 40.0), 1.0),
    (GammaDistribution(5.0, 2.0), 0.0),
    (GammaDistribution(5.0, 700.0), 0.0),
    (GammaDistribution(5.0, 0.003), 0.0),
]
every_distribution = pytest.mark.parametrize(("distribution", "centre"), DISTRIBUTIONS, ids=repr)


def upper(distribution: Any, x: mpmath.mpf) -> mpmath.mpf:
    """P(distribution ≥ x) from the textbook, in mpmath's precision."""
    if isinstance(distribution, Normal):
        return mpmath.erfc(x / (distribution.sigma * mpmath.sqrt(2))) / 2
    if isinstance(distribution, GammaDistribution):
        theta = mpmath.mpf(distribution.theta)
        if x <= 0:
            return mpmath.mpf(1)
        return mpmath.gammainc(distribution.value / theta, x / theta, regularized=True)
    scale = mpmath.mpf(distribution.scale)
    beyond = (
        mpmath.exp(-distribution.cut / scale) if math.isfinite(distribution.cut) else mpmath.mpf(0)
    )
    tail = (mpmath.exp(-min(abs(x), distribution.cut) / scale) - beyond) / (2 * (1 - beyond))
    return tail if x >= 0 else 1 - tail


def digits_of(number: mpmath.mpf, count: int) -> int:
    return int(mpmath.floor(mpmath.ldexp(number, count)))


def draw(distribution: Any, centre: float, digits: int, count: int, step: float = STEP) -> int:
    """The cell for a U that begins with these digits; those after it alternate."""
    content = digits.to_bytes(count // 8, "big") + bytes([0b10101010]) * 4096
    (value,) = exact_draws.rounded([(distribution, centre)], step, bits=BytesIO(content))
    return round(value / step)


@every_distribution
def test_tails_enclose_sixty_digits(distribution: Any, centre: float) -> None:
    for u in (1e-30, 1e-6, 0.2, 0.5, 0.8, 1 - 1e-6):
        x = distribution.guess(u, 1 - u)
        with mpmath.workdps(90):  # the textbook's differences lose some of them
            truth = upper(distribution, mpmath.mpf(x))
            text = mpmath.nstr(truth, 58)
        for precision in (96, 160, 320):
            with flint.ctx.workprec(precision):
                ball = distribution.upper(flint.arb(x))
                # The text is right to 1e-57 of itself.
                assert ball.overlaps(flint.arb(text, abs(float(truth)) * 1e-56))
                assert float(ball.rad()) < 1e-12 or precision == 96


@every_distribution
def test_the_cell_is_the_one_by_sixty_digits(distribution: Any, centre: float) -> None:
    """S at the edges of the cell has U between: for 30 random U and some in the tails."""
    generator = np.random.default_rng(3)
    chosen = [int.from_bytes(generator.bytes(8), "big") for _ in range(30)]
    for first in [*chosen, 0, 1, 2**40, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]:
        cell = draw(distribution, centre, first, 64)
        with mpmath.workdps(60):
            ends = [mpmath.mpf(first) / 2**64, mpmath.mpf(first + 1) / 2**64]
            edges = [(cell + side) * mpmath.mpf(STEP) - mpmath.mpf(centre)
                     for side in (mpmath.mpf(-0.5), mpmath.mpf(0.5))]  # fmt: skip
            assert upper(distribution, edges[0]) >= ends[0]
            assert upper(distribution, edges[1]) <= ends[1]


@every_distribution
@pytest.mark.parametrize("count", [64, 128, 512])
def test_at_an_edge_the_next_digits_decide(distribution: Any, centre: float, count: int) -> None:
    """U's first digits are those of S at an edge: only what follows tells the cells apart."""
    if isinstance(distribution, GammaDistribution) and count == 512:
        count = 256  # mpmath would take a second for each
    x = distribution.guess(0.3, 0.7)
    cell = math.floor((centre + x) / STEP)
    with mpmath.workdps(400):
        edge = (mpmath.mpf(cell) + 0.5) * mpmath.mpf(STEP) - mpmath.mpf(centre)
        level = upper(distribution, edge)
        if not 0 < level < 1:
            return
        digits = digits_of(level, count)
        rest = digits_of(mpmath.ldexp(level, count) - digits, 64)
    # The same digits, then some below or above those of S(edge): beyond the edge, or short of it.
    for change, expected in ((-1, cell + 1), (1, cell)):
        following = rest + change
        if not 0 <= following < 2**64:
            continue
        assert draw(distribution, centre, digits << 64 | following, count + 64) == expected


def test_digits_are_drawn_only_while_they_are_needed() -> None:
    class Counted(BytesIO):
        taken = 0

        def read(self, count: int | None = -1, /) -> bytes:
            content = super().read(count)
            self.taken += len(content)
            return content

    with mpmath.workdps(60):
        level = digits_of(upper(Normal(1.0), mpmath.mpf(0.5) * STEP), 64)
    usual, tight = Counted(b"0" * 64), Counted(level.to_bytes(8, "big") + bytes(64))
    exact_draws.rounded_normal(1, 1.0, STEP, usual)
    exact_draws.rounded_normal(1, 1.0, STEP, tight)
    assert (usual.taken, tight.taken) == (8, 16)


@pytest.mark.parametrize("wrong", [-1e300, -1e4, -3.0, 0.0, 2.0, 1e6, math.inf])
def test_a_wrong_guess_costs_time_alone(wrong: float) -> None:
    @dataclass(frozen=True)
    class Misled(Normal):
        def guess(self, upper: float, lower: float) -> float:
            return wrong

    for first in (0, 2**61 + 12345, 2**63, 2**64 - 1):
        assert draw(Misled(2.0), 0.3, first, 64) == draw(Normal(2.0), 0.3, first, 64)


def test_draws_follow_the_law() -> None:
    """Dvoretzky–Kiefer–Wolfowitz, bits of a fixed seed: fails with probability 1e-9 per case."""
    count = 3000
    tolerance = math.sqrt(math.log(2e9) / (2 * count))
    for distribution, centre in (DISTRIBUTIONS[1], DISTRIBUTIONS[5], DISTRIBUTIONS[8]):
        bits = BytesIO(np.random.default_rng(5).bytes(16 * count))
        found = np.sort(exact_draws.rounded([(distribution, centre)] * count, STEP, bits=bits))
        cells = np.quantile(found, np.linspace(0.02, 0.98, 25), method="lower") + STEP / 2
        expected = [1 - float(upper(distribution, mpmath.mpf(edge - centre))) for edge in cells]
        empirical = np.searchsorted(found, cells) / count
        assert np.abs(empirical - expected).max() < tolerance


@pytest.mark.parametrize(
    "mechanism",
    [
        privacy.Gamma(1e60, (1.0, 10.0)),
        privacy.Gamma(1e-9, (1.0, 10.0)),
        privacy.ClampedGamma(1e90, (1e-90, 1e90)),
        privacy.ClampedGamma(8041.6, (1.0, 50.0)),
        privacy.Laplace(1e80, (1e-100, 1e100)),
        privacy.Laplace(1e-80, (1.0, 1e10)),
        privacy.TruncatedLaplace(1e20, 1e-20, (1.0, 2.0)),
        privacy.Gaussian(1e-300, (1.0, 2.0), clamp=None),
        privacy.Gaussian(1e300, (1.0, 2.0), clamp=None),
        privacy.Gaussian(1e-30, (1e-100, 1e100)),
    ],
    ids=repr,
)
def test_extreme_parameters(mechanism: privacy.Mechanism) -> None:
    low, high = mechanism.bounds
    released = mechanism.release([low, 0.5 * (low + high), high])
    assert np.isfinite(released).all()
    if mechanism.clamp:
        assert released.min() >= mechanism.clamp[0]
        assert released.max() <= mechanism.clamp[1]
    if isinstance(mechanism, privacy.Gamma):
        assert released.min() >= mechanism.grid_step


def test_a_clamped_release_has_the_atoms_of_its_law() -> None:
    """The ends have all that lies beyond: U just inside and just outside of S at the clamp."""
    mechanism = privacy.Laplace(3.0, (1.0, 10.0))
    distribution, centre = mechanism.distribution(4.0)
    for first, expected in ((0, 10.0), (2**64 - 1, 1.0)):
        bits, step = BytesIO(first.to_bytes(8, "big")), mechanism.grid_step
        released = exact_draws.rounded([(distribution, centre)], step, *mechanism._cell_range, bits)
        assert released == [expected]


def test_model_noise_is_drawn_in_its_own_steps() -> None:
    noise = privacy.ModelNoise(clip=0.7, noise_multiplier=3.0, max_contributions=4)
    steps = noise.draw(400, BytesIO(np.random.default_rng(8).bytes(6400)))
    assert steps.dtype == np.int64
    # Four standard errors either way: fails for one seed in 16,000.
    assert np.std(steps) * noise.clip_step == pytest.approx(2.1, rel=4 / math.sqrt(800))
    with pytest.raises(ValueError, match=r"e\+\d.*epsilon or delta"):
        privacy.ModelNoise(1.0, 1e30, 1).draw(1)


def test_the_precision_of_others_is_left_alone() -> None:
    with flint.ctx.workprec(77):
        exact_draws.rounded_normal(2, 1.0, STEP)
        assert flint.ctx.prec == 77


def test_how_long_it_takes_is_measured() -> None:
    assert exact_draws.seconds(2_000_000) == 2 * exact_draws.seconds(1_000_000) > 0


def test_a_step_is_a_power_of_two() -> None:
    with pytest.raises(ValueError, match="power of two"):
        exact_draws.rounded_normal(1, 1.0, 0.3)


@pytest.mark.parametrize("missing", ["flint", "cryptography"])
def test_without_the_extra_a_real_release_names_it(missing: str) -> None:
    """And a simulated one needs neither of the packages."""
    installed = {"flint": "python-flint"}.get(missing, missing)
    script = f"""
import sys
sys.modules[{missing!r}] = None
import numpy as np
from walklearn.privacy import Laplace
mechanism = Laplace(1.0, (1.0, 2.0))
mechanism.release([1.5], np.random.default_rng(1))
assert "flint" not in sys.modules or sys.modules["flint"] is None
mechanism.release([1.5])
"""
    done = python(script)
    assert done.returncode == 1
    assert f"{installed}. " in done.stderr
    assert "[privacy]" in done.stderr
