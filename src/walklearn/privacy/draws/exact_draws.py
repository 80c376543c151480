"""Exact draws: random numbers of an ideal distribution, rounded to the public grid without error.

Noise that is computed in floating point follows its distribution only approximately, and the set of
doubles that can occur depends on the secret value: one output can reveal it (Mironov 2012). These
draws follow the ideal distribution of real numbers, rounded to the grid. Rounding depends on the
noisy number only, so it costs no privacy, and the δ of the continuous distribution is exact for the
published number.

**One draw.** X is the number whose upper tail S(X) = P(noise ≥ X) is U, uniform on (0, 1). U is
drawn lazily: its first 64 binary digits confine it to an interval. A cell of the grid is guessed
from them in double precision, and ball arithmetic (python-flint) encloses S at the two edges of the
cell. While an enclosure overlaps with U's interval, more digits are drawn and the balls are made
smaller. If the guess was wrong, the neighbouring cells are tried. A wrong guess costs time, never
correctness.

**Gaussian noise in bulk.** U's first digit is the sign of X, and the other 63 are those of the tail
probability of |X|, complemented if X is negative. `half_normal` rounds |X| for thousands of draws
at once and proves nearly all of them; the others are drawn as above, from the same digits.

**Timing.** A duration must not reveal the noise. Gaussian noise is drawn in blocks, before it is
used (`prepare`), into the memory of this process only. `rounded_normal` then copies a part of it
and overwrites that part with zeros. A lock protects the memory, and a child process forgets it
after `fork`. Draws that ball arithmetic decides work on |X|: a draw and its negative cost the same.
`rounded` mirrors Laplace and Gaussian noise in the same way. Its duration may still depend on |X|,
and on X for the Gamma distribution, which has no mirror image; a draw at an end of the public range
is faster. A node calls it once, when it is created, before it sends any message.

**Bits.** ChaCha20 under a fresh key from the operating system's entropy for each block. The key is
dropped after the block, so used draws cannot be computed from what remains. The claim holds against
everyone who cannot distinguish ChaCha20 from random bits.

>>> from io import BytesIO
>>> bits = BytesIO(bytes(range(1, 255)) * 4)     # for tests: it protects nobody
>>> rounded_normal(4, sigma=1.0, step=2.0**-10, bits=bits)
array([2721, 1851, 1537, 1324])
"""

from __future__ import annotations

import math
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from walklearn.extras import package
from walklearn.privacy.accounting import special
from walklearn.privacy.draws import half_normal

# The number of digits of U to begin with, and the additional precision of balls in bits.
_FIRST_BITS, _FINER = 64, 32
# Size of a block of Gaussian draws, and the number of deviations that have a buffer.
BLOCK, _MAX_DEVIATIONS = 8192, 8
# Releases are cut at ±2^1000.
_LARGEST_EXPONENT = 1000
_standard_normal = NormalDist()
_one_at_a_time = threading.RLock()


class Bits(Protocol):
    """Source of random bits; tests read fixed ones from an `io.BytesIO`."""

    def read(self, count: int, /) -> bytes:
        """Return this number of fresh random bytes."""


class Keystream:
    """ChaCha20's stream under a key of the operating system's entropy."""

    def __init__(self) -> None:
        ciphers = _needed("cryptography.hazmat.primitives.ciphers")
        algorithms = _needed("cryptography.hazmat.primitives.ciphers.algorithms")
        # A key is used for one stream, so the nonce need not be random.
        algorithm = algorithms.ChaCha20(secrets.token_bytes(32), nonce=bytes(16))
        self._stream = ciphers.Cipher(algorithm, mode=None).encryptor()

    def read(self, count: int, /) -> bytes:
        """Return this number of fresh random bytes."""
        taken: bytes = self._stream.update(bytes(count))
        return taken


class Distribution(Protocol):
    """A distribution of real numbers that can be drawn from exactly.

    One with the attribute `is_symmetric = True` is symmetric about 0: its negative draws are
    mirror images of positive ones and take the same time.
    """

    def upper(self, x: Any) -> Any:
        """Return a ball around P(draw ≥ x), for an exact number x, at the working precision."""

    def guess(self, upper: float, lower: float) -> float:
        """Return about the x with these tails, which sum to 1; any error is allowed."""


@dataclass(frozen=True)
class Normal:
    """The normal distribution N(0, σ²)."""

    sigma: float
    is_symmetric: ClassVar[bool] = True

    def upper(self, x: Any) -> Any:
        """Return the probability ½ erfc(x / (σ√2)) of a draw above x."""
        arb = _arb()
        return (x / (arb(2).sqrt() * self.sigma)).erfc() / 2

    def guess(self, upper: float, lower: float) -> float:
        """Return about the draw with these tails, computed from the smaller one."""
        side = 1.0 if upper < lower else -1.0
        return side * self.sigma * -_standard_normal.inv_cdf(min(upper, lower))


@dataclass(frozen=True)
class TruncatedLaplace:
    """Laplace noise of a scale, conditioned on |noise| ≤ cut, which may be infinite."""

    scale: float
    cut: float = math.inf
    is_symmetric: ClassVar[bool] = True

    def upper(self, x: Any) -> Any:
        """Return S(x) = (e^(−x/b) − q)/(2(1 − q)), q = e^(−cut/b), for x ≥ 0, else 1 − S(−x)."""
        arb = _arb()
        size = abs(x)
        if math.isinf(self.cut):
            tail = (-size / self.scale).exp() / 2
        elif size >= self.cut:
            tail = arb(0)
        else:
            cut = arb(self.cut) / self.scale
            rest = (arb(self.cut) - size) / self.scale
            tail = (-cut).exp() * rest.expm1() / (-2 * (-cut).expm1())
        return tail if x >= 0 else 1 - tail

    def guess(self, upper: float, lower: float) -> float:
        """Return about the draw with these tails, by inverting the smaller one."""
        small = 2.0 * min(upper, lower)
        # ln of (1 − q) small + q; for q = 0, ln(1 + (small − 1)) would lose the digits of small.
        beyond = math.exp(-self.cut / self.scale)
        size = -math.log(small + beyond * (1.0 - small))
        return math.copysign(min(size * self.scale, self.cut), lower - upper)


@dataclass(frozen=True)
class GammaDistribution:
    """The Gamma distribution of shape value/θ and scale θ."""

    value: float
    theta: float

    def upper(self, x: Any) -> Any:
        """Return the probability Q(value/θ, x/θ) of a draw above x."""
        arb = _arb()
        if x <= 0:
            return arb(1)
        return (x / self.theta).gamma_upper(arb(self.value) / self.theta, regularized=1)

    def guess(self, upper: float, lower: float) -> float:
        """Return about the draw with these tails, by SciPy's inverse of the smaller one."""
        shape = self.value / self.theta
        if upper < lower:
            return self.theta * float(special.gammainccinv(shape, upper))
        return self.theta * float(special.gammaincinv(shape, lower))


def rounded_normal(
    count: int, sigma: float, step: float, bits: Bits | None = None
) -> NDArray[np.int64]:
    """Draw N(0, σ²) independently, each draw rounded exactly to the nearest multiple of a step.

    A value that is itself a multiple of the step, plus such a draw, is the value with ideal
    Gaussian noise, rounded. The results are whole numbers of steps, so sums are exact. σ is exactly
    this double, and the step a power of two. `bits` are for tests; by default they come from the
    operating system's entropy. A draw beyond 2^62 steps, 512 σ at least, is an `OverflowError`,
    which reveals the noise only.

    >>> noise = rounded_normal(3, sigma=2.0, step=2.0**-20)
    >>> noise.shape, bool((abs(noise * 2.0**-20) < 100).all())
    ((3,), True)
    """
    deviation = _in_steps(sigma, step)
    return _prepared.take(count, deviation) if bits is None else _normal(count, deviation, bits)


def prepare(count: int, sigma: float, step: float) -> None:
    """Draw ahead, so that the next `rounded_normal` of this size only copies.

    >>> prepare(3, sigma=2.0, step=2.0**-20)
    >>> is_prepared(3, sigma=2.0, step=2.0**-20)
    True
    """
    _prepared.fill(count, _in_steps(sigma, step))


def is_prepared(count: int, sigma: float, step: float) -> bool:
    """True if at least `count` draws were made ahead and are unused."""
    return _prepared.has(count, _in_steps(sigma, step))


def rounded(
    distributions: list[tuple[Distribution, float]],
    step: float,
    low: int | None = None,
    high: int | None = None,
    bits: Bits | None = None,
) -> list[float]:
    """Draw centre + noise for each (noise, centre), rounded to the nearest multiple of the step.

    Numbers below `low` or above `high` steps count as these. The multiples are returned as floats;
    rounding one that has too many digits for a float is post-processing.
    """
    exponent = _exponent(step)
    end = 1 << (_LARGEST_EXPONENT - exponent)
    with _exclusive_precision():
        draw = _drawer(step, -end if low is None else low, end if high is None else high, bits)
        return [math.ldexp(float(draw(*noise)), exponent) for noise in distributions]


def seconds(draws: int) -> float:
    """Estimate the time of this number of exact Gaussian draws, by a short measurement.

    >>> 0 < seconds(1) < seconds(1_000_000)
    True
    """
    return draws * _seconds_per_draw()


@cache
def _seconds_per_draw() -> float:
    deviation = 2.0**30  # 64 times the clip
    _normal(1, deviation, Keystream())  # loads what it needs
    begin = time.perf_counter()
    _normal(4 * BLOCK, deviation, Keystream())
    return (time.perf_counter() - begin) / (4 * BLOCK)


def _in_steps(sigma: float, step: float) -> float:
    """Return σ in steps, which is exact; refuse a σ whose sums would overflow 64 bits."""
    _exponent(step)
    if not 0.0 < sigma <= step * 2.0**53:
        raise ValueError(
            f"noise of deviation {sigma:g} cannot be drawn in steps of {step:g}: it must be "
            "positive, and at most 2^53 steps so that sums fit 64-bit integers. Use less noise, or "
            "a larger step."
        )
    # Anything smaller gives 0 steps too, and might underflow.
    return max(sigma / step, 2.0**-900)


def _normal(count: int, deviation: float, bits: Bits) -> NDArray[np.int64]:
    """Draw N(0, deviation²) in blocks, rounded to whole numbers."""
    if count > BLOCK:
        sizes = (min(BLOCK, count - first) for first in range(0, count, BLOCK))
        return np.concatenate([_normal(size, deviation, bits) for size in sizes])
    words = np.frombuffer(bits.read(8 * count), dtype=">i8").astype(np.int64)
    negative = words >> 63  # −1 for a negative draw, otherwise 0
    steps, is_proved = half_normal.magnitudes((words ^ negative) & (2**63 - 1), deviation)
    steps ^= negative
    steps -= negative
    undecided = np.flatnonzero(~is_proved)
    if undecided.size:
        # A draw at the end of the range would reveal the value it is added to: none is released.
        end = 1 << 62
        with _exclusive_precision():
            draw, normal = _drawer(1.0, -end, end, bits), Normal(deviation)
            for place in undecided.tolist():
                steps[place] = draw(normal, 0.0, int(words[place]) % 2**64)
        if (np.abs(steps[undecided]) == end).any():
            raise OverflowError(
                "a draw was beyond 512 standard deviations: the random bits must be wrong."
            )
    return steps


class _NoiseBuffer:
    """Gaussian noise drawn ahead, for each deviation; every draw is handed out once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._unused: dict[float, NDArray[np.int64]] = {}

    def has(self, count: int, deviation: float) -> bool:
        """True if `count` are unused."""
        return len(self._unused.get(deviation, ())) >= count

    def fill(self, count: int, deviation: float) -> None:
        """Draw until `count` are unused."""
        with self._lock:
            self._fill(count, deviation)

    def take(self, count: int, deviation: float) -> NDArray[np.int64]:
        """Return `count` unused draws, and erase them from the buffer."""
        with self._lock:
            unused = self._fill(count, deviation)
            taken = unused[:count].copy()
            unused[:count] = 0
            self._unused[deviation] = unused[count:]
        return taken

    def _fill(self, count: int, deviation: float) -> NDArray[np.int64]:
        """Draw until `count` are unused, and return all unused draws."""
        unused = self._unused.pop(deviation, np.zeros(0, np.int64))
        if missing := max(0, count - len(unused)):
            fresh = _normal(max(missing, BLOCK), deviation, Keystream())
            joined = np.concatenate([unused, fresh])
            unused[:] = fresh[:] = 0
            unused = joined
        self._unused[deviation] = unused  # the deviation that was used last comes last
        if len(self._unused) > _MAX_DEVIATIONS:
            self._unused.pop(next(iter(self._unused)))[:] = 0
        return unused


_prepared = _NoiseBuffer()


def _forget() -> None:
    """Give a child process no draws of its parent, and locks that are free."""
    global _one_at_a_time, _prepared
    _one_at_a_time, _prepared = threading.RLock(), _NoiseBuffer()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class _Uniform:
    """U, as far as it is drawn: it lies between digits/2^count and (digits + 1)/2^count.

    first: the first 64 digits. sign: −1 for 1 − U in place of U, which complements every digit.
    """

    __slots__ = ("_bits", "_complement", "count", "digits", "ends")

    def __init__(self, bits: Bits, first: int, sign: int) -> None:
        self._bits, self._complement, self.count, self.digits = bits, (1 - sign) // 2, 0, 0
        self._append(first, _FIRST_BITS)

    def _append(self, taken: int, count: int) -> None:
        arb = _arb()
        taken ^= ((1 << count) - 1) * self._complement
        self.digits, self.count = self.digits << count | taken, self.count + count
        self.ends = arb((self.digits, -self.count)), arb((self.digits + 1, -self.count))

    @property
    def tails(self) -> tuple[float, float]:
        """U and 1 − U in double precision, both positive."""
        whole, doubled = 1 << (self.count + 1), 2 * self.digits + 1
        return doubled / whole, (whole - doubled) / whole

    def is_below(self, ball: Callable[[], Any]) -> bool:
        """True if U is below the number that the balls enclose."""
        while True:
            _needed("flint").ctx.prec = self.count + _FINER
            enclosed = ball()
            if self.ends[1] <= enclosed:
                return True
            if enclosed <= self.ends[0]:
                return False
            self._append(int.from_bytes(self._bits.read(self.count // 8), "big"), self.count)


def _drawer(step: float, low: int, high: int, bits: Bits | None) -> Callable[..., int]:
    """Return a function that draws noise around a centre, as a cell low..high of one grid."""
    arb, exponent = _arb(), _exponent(step)
    source = Keystream() if bits is None else bits

    def draw(noise: Distribution, centre: float, first: int | None = None) -> int:
        """Draw one number. first: U's first 64 digits, if they are drawn already."""
        if first is None:
            first = int.from_bytes(source.read(_FIRST_BITS // 8), "big")
        # Negative symmetric noise is drawn as the mirror image of positive noise, by the same
        # operations, so that both take the same time. U is at most ½, S at least ½ below 0.
        is_symmetric = getattr(noise, "is_symmetric", False)
        sign = 1 - 2 * (first >> (_FIRST_BITS - 1)) * is_symmetric
        start, end = sorted((sign * low, sign * high))
        centre *= sign
        # Edge j is (2j − 1)/2 steps. As whole numbers of a common unit, minus the centre, edges
        # are exact.
        numerator, denominator = centre.as_integer_ratio()
        unit = min(exponent - 1, 1 - denominator.bit_length())
        half = 1 << (exponent - 1 - unit)
        origin = numerator * (1 << -unit) // denominator if unit < 0 else numerator >> unit
        uniform = _Uniform(source, first, sign)

        def beyond(cell: int) -> bool:
            """True if the draw lies beyond the lower edge of a cell."""
            edge = (2 * cell - 1) * half - origin
            if is_symmetric and edge <= 0:
                return True
            return uniform.is_below(lambda: noise.upper(arb((edge, unit))))

        guessed = (centre + noise.guess(*uniform.tails)) / step
        guess = math.floor(min(max(guessed, -1e300), 1e300) + 0.5)
        return sign * _find_last(beyond, min(max(guess, start), end), start, end)

    return draw


def _find_last(holds: Callable[[int], bool], start: int, low: int, high: int) -> int:
    """Return the largest number in low..high for which `holds` is true; it must be true for low.

    If it holds for a number, it holds for all smaller ones. The search begins at `start`: if that
    is the result, `holds` is called for it and for the next number only.
    """
    below, above, stride = start, start + 1, 1
    if start == low or holds(start):
        while above <= high and holds(above):
            below, above, stride = above, min(high + 1, above + stride), 2 * stride
    else:
        below, above = start - 1, start
        while below > low and not holds(below):
            below, above, stride = max(low, below - 2 * stride), below, 2 * stride
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (middle, above) if holds(middle) else (below, middle)
    return below


def _exponent(step: float) -> int:
    mantissa, exponent = math.frexp(step)
    if mantissa != 0.5:
        raise ValueError(f"the step of the grid must be a power of two, got {step!r}.")
    return exponent - 1


@contextmanager
def _exclusive_precision() -> Iterator[None]:
    """Let one thread at a time change flint's global precision, and restore it."""
    context = _needed("flint").ctx
    with _one_at_a_time, context.workprec(context.prec):
        yield


@cache
def _needed(module: str) -> Any:
    return package(module, "privacy", "an exact release needs")


def _arb() -> Any:
    return _needed("flint").arb
