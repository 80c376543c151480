"""Exact draws: a number of an ideal law, rounded to the public grid, with no error at all.

Noise that is computed in floating point follows the law it claims only nearly, and which doubles
come out depends on the secret value: one output can give it away (Mironov 2012). Here the output is
that of the ideal law of real numbers, rounded to the grid. Rounding looks at the noisy number only,
so it costs nothing, and the continuous law's δ is exact for what is published.

**How.** X is the number whose upper tail S(X) = P(law ≥ X) is U, uniform on (0, 1). U is never
drawn whole: its first 64 binary digits confine it to an interval. A cell of the grid is guessed
from them in double precision, and ball arithmetic (python-flint) encloses S at the two edges of the
cell. Where an edge cannot be told from U's interval, more digits are drawn and the balls are made
smaller; where the guess was wrong, the neighbouring cells are tried. So a mistake of the
guess costs time, never truth.

**Bits.** ChaCha20 under a fresh key from the operating system's entropy, for each call anew, so
that nothing is kept from which a past draw could be computed, and no two processes share any.
What is claimed holds against everyone who cannot tell ChaCha20 from random bits.

>>> bits = FixedBits(bytes(range(1, 255)) * 4)     # a test gives the bits; a release never does
>>> rounded_normal(4, sigma=1.0, step=2.0**-10, bits=bits)
array([2721, 1851, 1537, 1324])
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from walklearn.files.extras import package
from walklearn.privacy import special

# Digits of U to begin with, and by how many bits a ball is finer than what it is compared with.
_FIRST_BITS, _FINER = 64, 32
# Nothing is released beyond 2^1000.
_LARGEST_EXPONENT = 1000
_standard_normal = NormalDist()
_one_at_a_time = threading.RLock()


class Bits(Protocol):
    """Where random bits come from."""

    def take(self, count: int) -> bytes:
        """Fresh random bytes, as many as asked for."""


class Keystream:
    """ChaCha20's stream under a key of the operating system's entropy."""

    def __init__(self) -> None:
        ciphers = _needed("cryptography.hazmat.primitives.ciphers")
        algorithms = _needed("cryptography.hazmat.primitives.ciphers.algorithms")
        # A key is used for one stream, so the nonce need not be random.
        algorithm = algorithms.ChaCha20(secrets.token_bytes(32), nonce=bytes(16))
        self._stream = ciphers.Cipher(algorithm, mode=None).encryptor()

    def take(self, count: int) -> bytes:
        """Fresh random bytes, as many as asked for."""
        taken: bytes = self._stream.update(bytes(count))
        return taken


class FixedBits:
    """Given bytes in their order, to test with; they protect nobody."""

    def __init__(self, content: bytes) -> None:
        self._content, self._taken = content, 0

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        begin, self._taken = self._taken, self._taken + count
        if self._taken > len(self._content):
            raise ValueError(f"only {len(self._content)} bytes were given.")
        return self._content[begin : self._taken]


class Law(Protocol):
    """A law of real numbers that can be drawn from exactly."""

    def upper(self, x: Any) -> Any:
        """A ball around P(law ≥ x), for an exact number x, at the working precision."""

    def guess(self, upper: float, lower: float) -> float:
        """About the x with these tails, which sum to 1; it may be wrong by any amount."""


@dataclass(frozen=True)
class Normal:
    """The normal law N(0, σ²)."""

    sigma: float

    def upper(self, x: Any) -> Any:
        """The chance ½ erfc(x / (σ√2)) of a draw above x."""
        arb = _arb()
        return (x / (arb(2).sqrt() * self.sigma)).erfc() / 2

    def guess(self, upper: float, lower: float) -> float:
        """About where a draw has these tails, computed from the smaller one."""
        side = 1.0 if upper < lower else -1.0
        return side * self.sigma * -_standard_normal.inv_cdf(min(upper, lower))


@dataclass(frozen=True)
class TruncatedLaplace:
    """Laplace noise of a scale, conditioned on |noise| ≤ cut, which may be infinite."""

    scale: float
    cut: float = math.inf

    def upper(self, x: Any) -> Any:
        """(e^(−x/b) − q)/(2(1 − q)) from 0 to the cut, q = e^(−cut/b); 1 minus that below 0."""
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
        """About where a draw has these tails, by inverting the smaller one."""
        small = 2.0 * min(upper, lower)
        # ln of (1 − q) small + q, which for q = 0 must not be taken as ln(1 + (small − 1)).
        beyond = math.exp(-self.cut / self.scale)
        size = -math.log(small + beyond * (1.0 - small))
        return math.copysign(min(size * self.scale, self.cut), lower - upper)


@dataclass(frozen=True)
class GammaLaw:
    """The Gamma law of shape value/θ and scale θ."""

    value: float
    theta: float

    def upper(self, x: Any) -> Any:
        """The chance Q(value/θ, x/θ) of a draw above x."""
        arb = _arb()
        if x <= 0:
            return arb(1)
        return (x / self.theta).gamma_upper(arb(self.value) / self.theta, regularized=1)

    def guess(self, upper: float, lower: float) -> float:
        """About where a draw has these tails, by SciPy's inverse of the smaller one."""
        shape = self.value / self.theta
        if upper < lower:
            return self.theta * float(special.gammainccinv(shape, upper))
        return self.theta * float(special.gammaincinv(shape, lower))


def rounded_normal(
    count: int, sigma: float, step: float, bits: Bits | None = None
) -> NDArray[np.int64]:
    """Draw N(0, σ²) independently, each draw rounded exactly to the nearest multiple of a step.

    A value that is itself a multiple of the step, plus such a draw, is the value with ideal
    Gaussian noise, rounded. So with values as whole numbers of steps nothing is ever inexact.

    Parameters
    ----------
    count
        How many.
    sigma
        The deviation, exactly this double.
    step
        A power of two.
    bits
        For tests; by default the operating system's entropy through a stream cipher.

    Returns
    -------
    Whole numbers of steps. Beyond 2^62 of them, 512 σ at least, there is an `OverflowError`, which
    tells of the noise alone.

    Examples
    --------
    >>> noise = rounded_normal(3, sigma=2.0, step=2.0**-20)
    >>> noise.shape, bool((abs(noise * 2.0**-20) < 100).all())
    ((3,), True)
    """
    if sigma > step * 2.0**53:
        raise ValueError(
            f"noise of deviation {sigma:g} is not drawn in steps of {step:g}: sums of so many "
            "steps are no whole numbers of 64 bits. Take less noise, or a larger step."
        )
    # An end that holds the noise alone would show the value it is added to, so none is reached.
    most = 1 << 62
    with _own_precision():
        draw, law = _drawer(step, -most, most, bits), Normal(sigma)
        steps = [draw(law, 0.0) for _ in range(count)]
    if max(map(abs, steps), default=0) == most:
        raise OverflowError("a draw was beyond 512 deviations: the random bits cannot be right.")
    return np.array(steps, dtype=np.int64)


def rounded(
    laws: list[tuple[Law, float]],
    step: float,
    low: int | None = None,
    high: int | None = None,
    bits: Bits | None = None,
) -> list[float]:
    """Draw centre + law for each (law, centre), rounded to the nearest multiple of the step.

    What is below `low` steps or above `high` steps counts as that many. The multiples are returned
    as floats; that they are rounded to one where they have more digits is post-processing.
    """
    exponent = _exponent(step)
    most = 1 << (_LARGEST_EXPONENT - exponent)
    with _own_precision():
        draw = _drawer(step, -most if low is None else low, most if high is None else high, bits)
        return [math.ldexp(float(draw(law, centre)), exponent) for law, centre in laws]


def seconds(draws: int) -> float:
    """How long so many exact draws of Gaussian noise will take here, from a short measurement.

    >>> 0 < seconds(1) < seconds(1_000_000)
    True
    """
    return draws * _seconds_a_draw()


@cache
def _seconds_a_draw() -> float:
    rounded_normal(1, 1.0, 2.0**-30)  # what it needs is loaded
    begin = time.perf_counter()
    rounded_normal(200, 1.0, 2.0**-30)
    return (time.perf_counter() - begin) / 200


class _Uniform:
    """U, as far as it is drawn: it lies between digits/2^count and (digits + 1)/2^count."""

    __slots__ = ("_bits", "count", "digits", "ends")

    def __init__(self, bits: Bits) -> None:
        self._bits, self.count, self.digits = bits, 0, 0
        self._take(_FIRST_BITS)

    def _take(self, count: int) -> None:
        arb = _arb()
        taken = int.from_bytes(self._bits.take(count // 8), "big")
        self.digits, self.count = self.digits << count | taken, self.count + count
        self.ends = arb((self.digits, -self.count)), arb((self.digits + 1, -self.count))

    @property
    def tails(self) -> tuple[float, float]:
        """U and 1 − U in double precision, both positive."""
        whole, doubled = 1 << (self.count + 1), 2 * self.digits + 1
        return doubled / whole, (whole - doubled) / whole

    def is_below(self, ball: Callable[[], Any]) -> bool:
        """Whether U is below a number, told by balls around it."""
        while True:
            _flint().ctx.prec = self.count + _FINER
            enclosed = ball()
            if self.ends[1] <= enclosed:
                return True
            if enclosed <= self.ends[0]:
                return False
            self._take(self.count)


def _drawer(step: float, low: int, high: int, bits: Bits | None) -> Callable[[Law, float], int]:
    """Make the function that draws a law around a centre, as a cell low..high of one grid."""
    arb, exponent = _arb(), _exponent(step)
    source = Keystream() if bits is None else bits

    def draw(law: Law, centre: float) -> int:
        # Edge j is (2j − 1)/2 steps. As whole numbers of a common unit, minus the centre, edges
        # are exact.
        numerator, denominator = centre.as_integer_ratio()
        unit = min(exponent - 1, 1 - denominator.bit_length())
        half = 1 << (exponent - 1 - unit)
        origin = numerator * (1 << -unit) // denominator if unit < 0 else numerator >> unit
        uniform = _Uniform(source)

        def beyond(cell: int) -> bool:
            """Whether the draw lies beyond the lower edge of a cell."""
            edge = arb(((2 * cell - 1) * half - origin, unit))
            return uniform.is_below(lambda: law.upper(edge))

        guessed = (centre + law.guess(*uniform.tails)) / step
        start = math.floor(min(max(guessed, -1e300), 1e300) + 0.5)
        return _last(beyond, min(max(start, low), high), low, high)

    return draw


def _last(holds: Callable[[int], bool], start: int, low: int, high: int) -> int:
    """The largest number in low..high for which `holds` is true; it is taken to be true for low.

    Where it holds for a number, it holds for all smaller ones. The search begins at `start`: if
    that is the answer, `holds` is asked twice only, for it and for the next.
    """
    stride = 1
    if start > low and not holds(start):
        high = start - 1
        while (low_guess := max(low, start - stride)) > low and not holds(low_guess):
            high, stride = low_guess - 1, 2 * stride
        low = low_guess
    else:
        low = start
        while low < high and holds(further := min(high, low + stride)):
            low, stride = further, 2 * stride
        if low < high:
            high = further - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def _exponent(step: float) -> int:
    mantissa, exponent = math.frexp(step)
    if mantissa != 0.5:
        raise ValueError(f"the step of the grid must be a power of two, got {step!r}.")
    return exponent - 1


@contextmanager
def _own_precision() -> Iterator[None]:
    """Let one thread at a time change flint's precision, which is global; then put it back."""
    context = _flint().ctx
    with _one_at_a_time:
        before = context.prec
        try:
            yield
        finally:
            context.prec = before


@cache
def _needed(module: str) -> Any:
    return package(module, "privacy", "an exact release needs")


def _flint() -> Any:
    return _needed("flint")


def _arb() -> Any:
    return _needed("flint").arb
