"""Exponentials, random numbers, step sizes and prefetching for all kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array
from numpy.typing import NDArray

from walklearn.simulation.kernels.compilation import exact_helper, inlined, kernel

Array = NDArray[Any]

U = np.uint64  # of indices: Numba then does not check for negative ones
_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_SHIFT = 1.5 * 2.0**52
POWERS_FROM, POWERS_EVERY = 4096, 32  # in `step_sizes`; a power costs ten times the series
_LARGEST_EXPONENT = 708.0  # beyond, e^(−x) is not a normal number and counts as 0


@intrinsic
def prefetch(typing_context, array, index):
    """Request the cache line of array[index] without waiting for it."""

    def generate(context, builder, signature, arguments):
        data = make_array(signature.args[0])(context, builder, arguments[0]).data
        byte = ir.IntType(8).as_pointer()
        whole = ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte, whole, whole, whole]),
            "llvm.prefetch.p0",
        )
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        read, keep_close, is_data = (ir.Constant(whole, flag) for flag in (0, 3, 1))
        builder.call(function, [address, read, keep_close, is_data])
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


def _reinterpretation(signature, kind):
    """Return a function that takes the 64 bits of a number as a number of another type."""

    @intrinsic
    def reinterpret(typing_context, number):
        return signature, lambda context, builder, _, numbers: builder.bitcast(numbers[0], kind)

    return reinterpret


_float_of_bits = _reinterpretation(types.float64(types.int64), ir.DoubleType())
_bits_of_float = _reinterpretation(types.int64(types.float64), ir.IntType(64))


@exact_helper
def exp_of_minus(x):
    """Return e^(−x) for x ≥ 0 within two ulps, without a call, so that loops over it vectorise.

    x = n ln 2 + r with |r| ≤ ln 2 / 2. A Taylor polynomial gives e^(−r), the bits of n give 2^(−n).
    """
    x = min(x, _LARGEST_EXPONENT)
    # Adding _SHIFT rounds x / ln 2 to n in the last bits of the sum, because processors have no
    # vector instruction that converts doubles to integers.
    shifted = x * _LOG2_E + _SHIFT
    n = shifted - _SHIFT
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    s = -r
    e = 1.0 / 6227020800.0
    e = (e * s + 1.0 / 479001600.0) * s + 1.0 / 39916800.0
    e = (e * s + 1.0 / 3628800.0) * s + 1.0 / 362880.0
    e = (e * s + 1.0 / 40320.0) * s + 1.0 / 5040.0
    e = (e * s + 1.0 / 720.0) * s + 1.0 / 120.0
    e = (e * s + 1.0 / 24.0) * s + 1.0 / 6.0
    e = (e * s + 0.5) * s + 1.0
    e = e * s + 1.0
    return e * _float_of_bits((np.int64(1023) - _bits_of_float(shifted)) << np.int64(52))


@exact_helper
def log_of_one_plus(t):
    """Return ln(1 + t) for 0 ≤ t ≤ 1 as 2 artanh(t / (2 + t)), which vectorises."""
    # With np.log1p instead, a fit by Saga on 569 rows takes 1.4 times as long.
    s = t / (2.0 + t)
    q = s * s
    c = 1.0 / 35.0
    c = (c * q + 1.0 / 33.0) * q + 1.0 / 31.0
    c = (c * q + 1.0 / 29.0) * q + 1.0 / 27.0
    c = (c * q + 1.0 / 25.0) * q + 1.0 / 23.0
    c = (c * q + 1.0 / 21.0) * q + 1.0 / 19.0
    c = (c * q + 1.0 / 17.0) * q + 1.0 / 15.0
    c = (c * q + 1.0 / 13.0) * q + 1.0 / 11.0
    c = (c * q + 1.0 / 9.0) * q + 1.0 / 7.0
    c = (c * q + 1.0 / 5.0) * q + 1.0 / 3.0
    return 2.0 * s + 2.0 * s * (q * c)


@kernel
def step_sizes(constant, exponent, done, total, steps, totals):
    """Compute c / k^q for k = done + 1, …, and the running sums, which continue from `total`.

    For large k, powers are computed for every `POWERS_EVERY`-th k, and the binomial series of
    (1 + x)^(−q) gives those in between. Its eighth term is below the rounding.
    """
    c1 = -exponent
    c2 = c1 * (c1 - 1.0) / 2.0
    c3 = c2 * (c1 - 2.0) / 3.0
    c4 = c3 * (c1 - 3.0) / 4.0
    c5 = c4 * (c1 - 4.0) / 5.0
    c6 = c5 * (c1 - 5.0) / 6.0
    c7 = c6 * (c1 - 6.0) / 7.0
    k, end = done + 1, done + 1 + steps.size
    while k < end:
        base = k if k < POWERS_FROM else k - k % POWERS_EVERY
        last = k + 1 if k < POWERS_FROM else min(end, base + POWERS_EVERY)
        step, inverse = constant / np.float64(base) ** exponent, 1.0 / base
        for number in range(k, last):
            x = (number - base) * inverse
            series = c4 + x * (c5 + x * (c6 + x * c7))
            gamma = step + step * x * (c1 + x * (c2 + x * (c3 + x * series)))
            steps[U(number - done - 1)] = gamma
        for number in range(k, last):  # apart, so that the loop above vectorises
            total += steps[U(number - done - 1)]
            totals[U(number - done - 1)] = total
        k = last


@inlined
def next_uniform(stream):
    """Return the next number of NumPy's PCG64: state ← state · M + increment, modulo 2¹²⁸.

    The stream holds the high and low halves of state and increment, and changes in place.
    """
    half, mask = U(32), U(0xFFFFFFFF)
    high, low = stream[0], stream[1]
    m_high, m_low = U(2549297995355413924), U(4865540595714422341)
    # The upper half of low · m_low, by products of 32 bits.
    a, b, c, d = low >> half, low & mask, m_low >> half, m_low & mask
    middle = (b * d >> half) + (a * d & mask) + (b * c & mask)
    carry = a * c + (a * d >> half) + (b * c >> half) + (middle >> half)
    high = carry + high * m_low + low * m_high + stream[2]
    low = low * m_low + stream[3]
    high += U(low < stream[3])
    stream[0], stream[1] = high, low
    bits, rotation = high ^ low, high >> U(58)
    bits = (bits >> rotation) | (bits << ((U(64) - rotation) & U(63)))
    return np.float64(bits >> U(11)) * 2.0**-53
