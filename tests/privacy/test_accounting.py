"""δ(ε) against 50 digits, against brute force, and against dp-accounting."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from tests.privacy.textbook import upper_tail
from walklearn import privacy
from walklearn.privacy.accounting import curves as accounting
from walklearn.privacy.accounting.incomplete_gamma import log_gamma_ratio, log_kernel, log_tails
from walklearn.privacy.limits import Bounds

FIFTY_DIGITS = 50
TINY = np.finfo(float).tiny


# The oracle: textbook formulas in many digits, nothing clever.


def exact_tails(shape: mp.mpf, log_x: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
    """P and Q of the Gamma distribution by its power series, or by a continued fraction."""
    if log_x > mp.log(shape + 1) + 8:
        return mp.mpf(1), mp.mpf(0)
    x = mp.exp(log_x)
    smallest = mp.mpf(10) ** (-mp.mp.dps)
    if x < shape + 12 * mp.sqrt(shape) + 20:
        term = total = mp.mpf(1)
        n = 0
        while term > total * smallest:
            n += 1
            term *= x / (shape + n)
            total += term
        lower = mp.exp(shape * log_x - x - mp.loggamma(shape + 1)) * total
        return lower, 1 - lower
    b = x + 1 - shape
    d, c, i = 1 / b, mp.mpf(10) ** 300, 0
    h, step = d, mp.mpf(0)
    while abs(step - 1) > smallest:
        i += 1
        b += 2
        d = 1 / (b - i * (i - shape) * d)
        c = b - i * (i - shape) / c
        step = d * c
        h *= step
    upper = mp.exp(shape * log_x - x - mp.loggamma(shape)) * h
    return 1 - upper, upper


def exact_gamma(
    epsilon: float, theta: float, bounds: Bounds, clamp: Bounds | None = None
) -> tuple[mp.mpf, mp.mpf]:
    """(lemma δ, tight δ) of the Gamma mechanism."""
    with mp.workdps(FIFTY_DIGITS + 30):
        a, b = mp.mpf(bounds[1]) / mp.mpf(theta), mp.mpf(bounds[0]) / mp.mpf(theta)
        middle = mp.loggamma(a) - mp.loggamma(b)
        up, down = (middle + epsilon) / (a - b), (middle - epsilon) / (a - b)
        if clamp is not None:
            low, high = (mp.log(mp.mpf(end) / mp.mpf(theta)) for end in clamp)
            up, down = min(max(up, low), high), min(max(down, low), high)
        upper_a, upper_b = exact_tails(a, up)[1], exact_tails(b, up)[1]
        lower_a, lower_b = exact_tails(a, down)[0], exact_tails(b, down)[0]
        ratio = mp.exp(mp.mpf(epsilon))
        tight = max(upper_a - ratio * upper_b, lower_b - ratio * lower_a, mp.mpf(0))
        return max(upper_a, lower_b), tight


def assert_just_above(value: float, exact: mp.mpf, relative: float = 1e-9) -> None:
    """Never below the truth, above by 1e-9 of it or 1e-11."""
    assert value >= exact
    assert value <= exact * (1 + mp.mpf(relative)) + mp.mpf(10) ** -11 + 2 * mp.mpf(TINY)


SHAPES = [1e-6, 1e-3, 0.1, 3.0, 50.0, 1e3, 2e5, 1e6]


@pytest.mark.parametrize("ratio", [1.001, 1.1, 2.0, 10.0, 1e3, 1e6])
@pytest.mark.parametrize("shape", SHAPES)
def test_gamma_against_fifty_digits(shape: float, ratio: float) -> None:
    theta, bounds = (1.0 / shape if shape < 1 else ratio / shape), (1.0, ratio)
    for epsilon in (0.0, 0.01, 0.3, 3.0, 20.0):
        lemma, tight = exact_gamma(epsilon, theta, bounds)
        found = float(accounting.gamma_lemma_delta(epsilon, theta, bounds))
        assert abs(found - lemma) <= 1e-9 * lemma + 2 * TINY
        assert_just_above(float(accounting.gamma_delta(epsilon, theta, bounds)), tight)


def test_tiny_deltas_are_relatively_accurate() -> None:
    for theta, epsilon in ((0.01, 20.0), (0.003, 40.0), (0.05, 11.0), (0.05, 60.0)):
        bounds = (1.0, 1.2)
        _, tight = exact_gamma(epsilon, theta, bounds)
        assert 0 < tight < 1e-10
        found = float(accounting.gamma_delta(epsilon, theta, bounds))
        assert float(abs(found - tight) / tight) < 1e-9


@pytest.mark.parametrize("clamp", [(1.0, 10.0), (0.5, 30.0), (2.0, 4.0)])
@pytest.mark.parametrize("theta", [1e-3, 0.1, 1.0, 6.4, 96.0, 1e3, 1e7])
def test_clamped_gamma_against_fifty_digits(theta: float, clamp: tuple[float, float]) -> None:
    bounds = (1.0, 10.0)
    for epsilon in (0.0, 0.5, 2.26, 3.0, 20.0):
        found = float(accounting.gamma_delta(epsilon, theta, bounds, clamp))
        assert_just_above(found, exact_gamma(epsilon, theta, bounds, clamp)[1])
    pure = float(accounting.clamped_gamma_pure_epsilon(theta, bounds, clamp))
    assert accounting.gamma_delta(pure * (1 + 1e-12), theta, bounds, clamp) == 0
    if pure < 300:
        assert exact_gamma(pure, theta, bounds, clamp)[1] == 0
        assert exact_gamma(pure * (1 - 1e-9), theta, bounds, clamp)[1] > 0


# Found by trying 4,594 random points: these were below the truth by up to 5e-14 of it.
BELOW = [
    (1.4173961121333782, 0.0022909390676356094, 4.853880554244336, (0.32409031343643313, 0.957)),
    (1.368456735919401, 0.0015595143372595353, 0.548579391196634, (0.5666620407, 0.850280716633)),
    (1.12651175531164, 0.0021077903371639326, 13.54009622435983, (0.71344408702, 0.72793798129)),
    (1.2525897099505423, 0.001292770610063819, 30.09192451906, (0.89241226571, 0.904512259966)),
]


def test_clamped_gamma_is_never_below_the_truth() -> None:
    """Random points, half of them with a clamp that cuts into the bounds."""
    generator = np.random.default_rng(29)
    points = list(BELOW)
    for number in range(150):
        ratio = 10 ** generator.uniform(0.05, 4)
        theta = max(ratio / 2000, ratio ** generator.uniform(0, 1) * 10 ** generator.uniform(-3, 4))
        low = generator.uniform(0.2, 1.02)
        high = max(2 * low, ratio * generator.uniform(0.4, 1.0)) if number % 2 else 3 * ratio
        points.append((ratio, theta, 10 ** generator.uniform(-2, 1.6), (low, high)))
    for ratio, theta, epsilon, clamp in points:
        case = (float(epsilon), float(theta), (1.0, float(ratio)), clamp)
        assert_just_above(float(accounting.gamma_delta(*case)), exact_gamma(*case)[1])


@pytest.mark.parametrize("shape", [1e-200, 1e-22, 1e-6, 0.3, 15.9, 16.1, 300.0, 1.9e4, 2.1e4, 1e6])
def test_log_tails(shape: float) -> None:
    spread = max(math.sqrt(shape), 1e-3)
    points = [shape + z * spread for z in (-9, -3, -0.1, 0, 0.1, 3, 9)] + [1e-12, 1e-30, 5.0]
    with mp.workdps(400 if shape < 1e-100 else 80):
        for x in points:
            if x <= 0:
                continue
            log_x = math.log(x)
            lower, upper = log_tails(shape, log_x)
            exact = exact_tails(mp.mpf(shape), mp.mpf(log_x))
            smaller, found = min((exact[0], lower), (exact[1], upper))
            assert abs(mp.log(smaller) - float(found)) < 1e-11 + 1e-15 * abs(float(found))


def test_log_tails_far_beyond_double_precision() -> None:
    """Where P or Q underflow the logarithms are still right: pure ε of little noise needs them."""
    with mp.workdps(80):
        for shape, log_x in ((30.0, -23.0), (300.0, 2.0), (1e4, 8.0), (3.0, 8.0), (1e4, 10.0)):
            lower, upper = log_tails(shape, log_x)
            exact = mp.log(min(exact_tails(mp.mpf(shape), mp.mpf(log_x))))
            assert min(float(lower), float(upper)) < -650
            assert abs(exact - min(float(lower), float(upper))) < 1e-11 + 1e-15 * abs(exact)


def test_five_sigma_at_a_large_shape() -> None:
    """SciPy's series stops after 2000 terms and gives 2 % of the truth here."""
    shape, z = 1e9, -5.0
    x = shape + z * math.sqrt(shape)
    lower, _ = log_tails(shape, math.log(x))
    normal = float(special.log_ndtr(z))
    assert abs(float(lower) - normal) < 3e-3  # the skewness is 6e-5
    assert float(np.log(special.gammainc(shape, x))) < normal - 1  # if this fails, SciPy improved


@given(
    b=st.floats(-6, 6).map(lambda e: 10.0**e),
    c=st.floats(-6, 6).map(lambda e: 10.0**e),
)
@settings(max_examples=200, deadline=None)
def test_log_gamma_ratio(b: float, c: float) -> None:
    with mp.workdps(60):
        exact = mp.loggamma(mp.mpf(b) + mp.mpf(c)) - mp.loggamma(mp.mpf(b))
        scale = abs(exact) + c + 1e-3 * min(c, 1.0)
        assert abs(float(log_gamma_ratio(b, c)) - exact) < 1e-13 * scale + 1e-14


def test_log_kernel() -> None:
    with mp.workdps(60):
        for k in (1e-9, 0.5, 15.99, 16.01, 1e3, 1e6):
            for x in (1e-3 * k, 0.4 * k, 0.99 * k, k, 1.01 * k, 5 * k):
                exact = k * mp.log(x) - x - mp.loggamma(mp.mpf(k) + 1)
                assert abs(float(log_kernel(k, x)) - exact) < 1e-12 + 1e-15 * abs(exact)


# Formulas that underflow claim δ = 0.


@pytest.mark.parametrize("theta", [1e3, 1e6, 1e9, 1e15, 1e60])
@pytest.mark.parametrize(("ratio", "epsilon"), [(2.0, 3.0), (10.0, 1.0), (10.0, 3.0), (100.0, 3.0)])
def test_no_underflow_at_large_noise(theta: float, ratio: float, epsilon: float) -> None:
    bounds = (1.0, ratio)
    floor = accounting.gamma_floor(epsilon, bounds)
    delta = float(accounting.gamma_delta(epsilon, theta, bounds))
    assert delta == pytest.approx(floor, rel=60 * ratio / theta * math.log(theta) + 1e-11)
    assert float(accounting.gamma_lemma_delta(epsilon, theta, bounds)) >= delta
    # (e^ε Γ(a)/Γ(b))^(1/(a−b)), as printed, becomes 0 where ε < ln ρ, and so does the tight δ.
    a, b = ratio / theta, 1 / theta
    with np.errstate(over="ignore"):
        threshold = (math.exp(-epsilon) * special.gamma(a) / special.gamma(b)) ** (1 / (a - b))
    naive = special.gammainc(b, threshold) - math.exp(epsilon) * special.gammainc(a, threshold)
    assert naive == 0 or theta < 1e6


def test_known_floors() -> None:
    """Worked out beforehand, at ε = 3."""
    for ratio, floor in ((2.0, 0.012), (10.0, 0.50), (100.0, 0.92)):
        assert accounting.gamma_floor(3.0, (1.0, ratio)) == pytest.approx(floor, abs=5e-3)
    assert accounting.gamma_delta(2.26, 96.0, (1.0, 10.0), (1.0, 10.0)) == 0
    later = float(accounting.gamma_delta(2.26, 1000.0, (1.0, 10.0), (1.0, 10.0)))
    assert later == pytest.approx(0.001, abs=5e-4)


def test_positive_deltas_are_never_zero() -> None:
    assert accounting.gamma_delta(500.0, 1e-3, (1.0, 1.01)) > 0
    assert accounting.gaussian_delta(3e4, 1.0, (1.0, 2.0)) > 0
    assert accounting.laplace_delta(1.0, 1.0, (1.0, 2.0), cut=600.0) > 0
    assert accounting.laplace_delta(1.0, 1.0, (1.0, 2.0), (1.0, 2.0), 600.0) > 0
    assert accounting.laplace_delta(1.0, 1.0 / (1 + 1e-15), (1.0, 2.0)) > 0


ratios = st.floats(-2, 4).map(lambda e: 1 + 10.0**e)
noises = st.floats(-3, 5).map(lambda e: 10.0**e)
epsilons = st.floats(0, 20)


@given(ratio=ratios, theta=noises, epsilon=epsilons)
@settings(max_examples=150, deadline=None)
def test_order_of_the_gamma_deltas(ratio: float, theta: float, epsilon: float) -> None:
    """floor ≤ tight ≤ lemma, clamped ≤ tight, and δ falls with ε."""
    bounds = (1.0, ratio)
    tight = float(accounting.gamma_delta(epsilon, theta, bounds))
    clamped = float(accounting.gamma_delta(epsilon, theta, bounds, bounds))
    assert accounting.gamma_floor(epsilon, bounds) <= tight * (1 + 1e-9)
    assert tight <= float(accounting.gamma_lemma_delta(epsilon, theta, bounds)) * (1 + 1e-9)
    assert 0 <= clamped <= tight * (1 + 1e-9)
    assert float(accounting.gamma_delta(epsilon + 0.1, theta, bounds)) <= tight
    assert float(accounting.gamma_delta(epsilon + 0.1, theta, bounds, bounds)) <= clamped


@given(ratio=ratios, theta=noises, epsilon=epsilons, inner=st.tuples(*[st.floats(0, 1)] * 2))
@settings(max_examples=100, deadline=None)
def test_the_extreme_pair_is_the_worst(
    ratio: float, theta: float, epsilon: float, inner: tuple[float, float]
) -> None:
    low, high = sorted(1 + (ratio - 1) * share for share in inner)
    if high - low < 1e-6 * ratio:
        return
    for clamp in (None, (1.0, ratio)):
        worst = accounting.gamma_delta(epsilon, theta, (1.0, ratio), clamp)
        other = accounting.gamma_delta(epsilon, theta, (low, high), clamp)
        assert float(other) <= float(worst) * (1 + 1e-9) + 1e-11


@given(delta=st.floats(1e-9, 0.9), ratio=ratios)
@settings(max_examples=100, deadline=None)
def test_smallest_epsilon_inverts_the_floor(delta: float, ratio: float) -> None:
    epsilon = accounting.gamma_smallest_epsilon(delta, (1.0, ratio))
    floor = accounting.gamma_floor(epsilon, (1.0, ratio))
    assert floor == pytest.approx(delta, rel=1e-6) if epsilon > 0 else floor <= delta * (1 + 1e-9)


# Additive noise: closed forms, and brute force over all half-lines.


@given(
    scale=st.floats(0.05, 20),
    epsilon=st.floats(0, 10),
    high=st.floats(1.01, 50),
    wider=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_laplace(scale: float, epsilon: float, high: float, wider: bool) -> None:
    bounds = (1.0, high)
    closed = max(0.0, -math.expm1((epsilon - (high - 1) / scale) / 2))
    clamp = (0.5, high + 1) if wider else bounds
    for end in (None, clamp):
        found = float(accounting.laplace_delta(epsilon, scale, bounds, end))
        assert found == pytest.approx(closed, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("sigma", [0.05, 0.5, 1.0, 5.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0])
def test_analytic_gaussian(sigma: float, epsilon: float) -> None:
    with mp.workdps(FIFTY_DIGITS):
        mechanism = privacy.Gaussian(sigma, (1.0, 2.0), None)
        assert_just_above(mechanism.delta(epsilon), exact_additive(mechanism, epsilon))


def test_truncated_laplace_closed_form() -> None:
    """(e^ε − 1)/(2(e^(A/b) − 1)) at scale Δ/ε, clamped or not; 1 where the supports part."""
    bounds, epsilon = (1.0, 3.0), 2.0
    for cut in (2.0, 5.0, 40.0, 400.0):
        closed = math.expm1(epsilon) / (2 * math.expm1(cut))
        for clamp in (None, bounds, (0.1, 9.0)):
            found = float(accounting.laplace_delta(epsilon, 1.0, bounds, clamp, cut))
            assert found == pytest.approx(closed, rel=1e-12)
    assert accounting.laplace_delta(5.0, 1.0, bounds, cut=0.9) == 1


@pytest.mark.parametrize("kind", ["laplace", "truncated-laplace", "gaussian"])
@pytest.mark.parametrize("clamp", [(1.0, 5.0), (0.5, 20.0), (2.0, 3.0), (3.5, 9.0)])
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("noise", [0.8, 3.0])
def test_additive_against_all_half_lines(
    kind: str, clamp: tuple[float, float], epsilon: float, noise: float
) -> None:
    """A clamped output exceeds t ≤ h as the unclamped one does: take the best t, both ways."""
    bounds, cut = (1.0, 5.0), 6.0
    mechanism = {
        "laplace": privacy.Laplace(noise, bounds, clamp),
        "truncated-laplace": privacy.TruncatedLaplace(noise, cut, bounds, clamp),
        "gaussian": privacy.Gaussian(noise, bounds, clamp),
    }[kind]
    ends = [end for v in bounds for end in (v - cut, v + cut) if clamp[0] < end < clamp[1]]
    t = np.append(np.linspace(*clamp, 200_001), ends)
    low, high = (upper_tail(mechanism, t, v) for v in bounds)
    # Sets {R ≥ t}, and {R ≤ t} = 1 − {R > t}.
    excess = high - math.exp(epsilon) * low, (1 - low) - math.exp(epsilon) * (1 - high)
    brute = max(0.0, float(np.max(excess)))
    assert mechanism.delta(epsilon) == pytest.approx(brute, abs=1e-8)
    assert mechanism.delta(epsilon) >= brute - 1e-12


# dp-accounting as a second opinion.


def curves() -> dict[str, object]:
    bounds = (1.0, 3.0)
    return {
        "gamma": lambda e: accounting.gamma_delta(e, 0.7, bounds),
        "clamped-gamma": lambda e: accounting.gamma_delta(e, 0.7, bounds, bounds),
        "laplace": lambda e: accounting.laplace_delta(e, 0.8, bounds, bounds),
        "truncated-laplace": lambda e: accounting.laplace_delta(e, 0.8, bounds, cut=4.0),
        "gaussian": lambda e: accounting.gaussian_delta(e, 1.0, bounds, bounds),
    }


@pytest.mark.parametrize("kind", sorted(curves()))
def test_dp_accounting_agrees(kind: str) -> None:
    """A privacy loss distribution built from our curve gives it back, also between its points."""
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    curve, gap, largest = curves()[kind], 1e-3, 12_000
    positive = gap * np.arange(largest + 1)
    deltas = np.asarray(curve(positive))
    # δ(−ε) = 1 − e^(−ε) + e^(−ε) δ(ε) for the pair and its mirror.
    negative = (-np.expm1(-positive) + np.exp(-positive) * deltas)[:0:-1]
    # Rounding up may break the order by 1e-15.
    ordered = np.minimum.accumulate(np.concatenate([negative, deltas]))
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(gap, -largest, largest, ordered)
    pld = privacy_loss_distribution.PrivacyLossDistribution(pmf)
    for epsilon in (0.0, 0.12345, 1.0, 1.77777, 3.0):
        assert pld.get_delta_for_epsilon(epsilon) == pytest.approx(float(curve(epsilon)), abs=2e-7)


def test_dp_accounting_from_the_distribution_itself() -> None:
    """The clamped Gamma cut into 4000 cells, its atoms kept, without our code."""
    from dp_accounting.pld import privacy_loss_distribution

    bounds, theta = (1.0, 3.0), 0.7
    edges = np.linspace(*bounds, 4001) / theta
    cells = []
    for value in bounds:
        cumulated = special.gammainc(value / theta, edges)
        inner = np.diff(cumulated)
        ends = cumulated[0], special.gammaincc(value / theta, edges[-1])
        cells.append(dict(enumerate(np.log(np.concatenate([ends, inner])))))
    low, high = cells
    pld = privacy_loss_distribution.from_two_probability_mass_functions(
        low, high, value_discretization_interval=2e-6, symmetric=False
    )
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        ours = float(accounting.gamma_delta(epsilon, theta, bounds, bounds))
        assert pld.get_delta_for_epsilon(epsilon) == pytest.approx(ours, abs=1e-6)


# The claims themselves: what calibration returns, priced in many digits.


def exact_additive(mechanism: privacy.Mechanism, epsilon: float) -> mp.mpf:
    """δ of a clamped additive mechanism from its survival function, downwards by reflection."""
    lo, hi = (mp.mpf(end) for end in mechanism.bounds)
    low, high = (mp.mpf(end) for end in mechanism.clamp or (-mp.inf, mp.inf))
    width, e = hi - lo, mp.mpf(epsilon)
    cut = mp.inf
    if isinstance(mechanism, privacy.Gaussian):
        sigma = mp.mpf(mechanism.sigma)
        threshold = width / 2 + sigma**2 * e / width
    else:
        scale = mp.mpf(mechanism.scale)
        cut = mp.mpf(getattr(mechanism, "cut", mp.inf))
        threshold = (width + scale * e) / 2 if width / scale > e else mp.inf
        threshold = max(min(threshold, cut), width - cut)

    def survival(z: mp.mpf) -> mp.mpf:
        if isinstance(mechanism, privacy.Gaussian):
            return mp.erfc(z / sigma / mp.sqrt(2)) / 2
        if abs(z) >= cut:
            return mp.mpf(z < 0)
        beyond = mp.exp(-cut / scale)
        tail = (mp.exp(-abs(z) / scale) - beyond) / (2 * (1 - beyond))
        return tail if z >= 0 else 1 - tail

    delta = mp.mpf(0)
    for start, end in ((low - lo, high - lo), (hi - high, hi - low)):
        z = min(max(threshold, start), end)
        if z != mp.inf:
            delta = max(delta, survival(z - width) - mp.exp(e) * survival(z))
    return delta


@pytest.mark.parametrize("kind", sorted(privacy.MECHANISMS))
@pytest.mark.parametrize("clamped", [True, False])
@given(
    epsilon=st.one_of(st.just(0.0), st.floats(-5, 2).map(lambda e: 10.0**e)),
    delta=st.one_of(st.just(0.0), st.floats(-30, -0.001).map(lambda e: 10.0**e)),
    lo=st.floats(-3, 3).map(lambda e: 10.0**e),
    spread=st.floats(-2, 4).map(lambda e: 10.0**e),
)
@settings(max_examples=40, deadline=None)
def test_calibrated_claims_are_true(
    kind: str, clamped: bool, epsilon: float, delta: float, lo: float, spread: float
) -> None:
    """The exact δ of the exact doubles that came back is at most the δ that was asked for."""
    gamma = kind in ("gamma", "clamped-gamma")
    options = {} if clamped or gamma else {"clamp": None}
    bounds = (lo, lo * (1 + spread))
    try:
        mechanism = privacy.calibrate(kind, epsilon=epsilon, delta=delta, bounds=bounds, **options)
    except privacy.InfeasiblePrivacyError:
        return
    with mp.workdps(120):
        if not gamma:
            truth = exact_additive(mechanism, epsilon)
        elif bounds[1] / mechanism.noise < 1e4:  # above, the oracle takes minutes
            _, truth = exact_gamma(epsilon, mechanism.noise, mechanism.bounds, mechanism.clamp)
        else:
            return
        assert truth <= mp.mpf(delta) * (1 + mp.mpf(10) ** -12)
