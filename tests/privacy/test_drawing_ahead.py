"""Noise that is drawn ahead: its duration reveals no sign, and every draw is used once."""

from __future__ import annotations

import itertools
import os
import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

import numpy as np
import pytest

from tests.running import python
from walklearn.privacy import ModelNoise
from walklearn.privacy.draws import exact_draws
from walklearn.privacy.draws.exact_draws import BLOCK, Normal, TruncatedLaplace

NOISE = ModelNoise(clip=1.0, noise_multiplier=3.0, max_contributions=1)
DEVIATION = 3.0 * 2.0**24


class SeededBits:
    """A keystream of a seed, each with the next one."""

    seeds = itertools.count()

    def __init__(self) -> None:
        self._generator = np.random.default_rng(next(self.seeds))

    def read(self, count: int) -> bytes:
        return self._generator.bytes(count)


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An empty store of draws, which come from seeds."""
    monkeypatch.setattr(exact_draws, "Keystream", SeededBits)
    monkeypatch.setattr(SeededBits, "seeds", itertools.count())
    empty = exact_draws._NoiseBuffer()
    monkeypatch.setattr(exact_draws, "_prepared", empty)
    return empty


class Operations:
    """Counts what drawing does: balls and their precision, and bytes of randomness."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[Any] = []
        for distribution in (Normal, TruncatedLaplace):
            monkeypatch.setattr(distribution, "upper", self._noted(distribution.upper))

    def _noted(self, upper: Any) -> Any:
        def noted(distribution: Any, x: Any) -> Any:
            self.seen.append((exact_draws._needed("flint").ctx.prec, float(x)))
            return upper(distribution, x)

        return noted

    def of(self, distribution: Any, centre: float, content: bytes) -> tuple[float, list[Any]]:
        self.seen.clear()
        (drawn,) = exact_draws.rounded([(distribution, centre)], 1.0, bits=BytesIO(content))
        return drawn, self.seen.copy()


@pytest.mark.parametrize("distribution", [Normal(2.0**52), Normal(3.0), TruncatedLaplace(1e9),
                                 TruncatedLaplace(50.0, 90.0)], ids=repr)  # fmt: skip
def test_a_draw_and_its_negative_take_the_same_operations(
    distribution: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Complementing U's digits turns the sign: the balls evaluated are the same, one by one."""
    operations, generator = Operations(monkeypatch), np.random.default_rng(2)
    negative = 0
    for _ in range(300):
        content = generator.bytes(64)
        drawn, done = operations.of(distribution, 0.0, content)
        mirrored, done_mirrored = operations.of(distribution, 0.0, bytes(255 - b for b in content))
        assert drawn == -mirrored
        assert done == done_mirrored
        negative += drawn < 0
    assert 50 < negative < 250


def test_around_a_centre_the_sign_does_not_show_in_the_number_of_operations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Laplace noise on a value: two balls for either sign, but where a cell holds the value."""
    operations, generator = Operations(monkeypatch), np.random.default_rng(4)
    counts: dict[bool, list[int]] = {True: [], False: []}
    for _ in range(400):
        drawn, done = operations.of(TruncatedLaplace(1e6), 123.4, generator.bytes(64))
        assert all(x > 0 for _, x in done)
        counts[drawn > 123].append(len(done))
    assert set(counts[True]) == set(counts[False]) == {2}


def test_undecided_draws_of_a_block_do_the_same_for_both_signs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the largest deviation nearly all draws of a block are left to ball arithmetic."""
    operations = Operations(monkeypatch)
    content = np.random.default_rng(5).bytes(8 * 500) + bytes([0x55]) * 4096
    flipped = bytes(255 - b for b in content)
    steps = exact_draws.rounded_normal(500, 2.0**53, 1.0, BytesIO(content))
    done = operations.seen.copy()
    operations.seen.clear()
    np.testing.assert_array_equal(
        exact_draws.rounded_normal(500, 2.0**53, 1.0, BytesIO(flipped)), -steps
    )
    assert len(done) > 500
    assert done == operations.seen


def test_every_draw_is_handed_out_once(prepared: Any) -> None:
    sizes = [5, 1, 3000, BLOCK, 7, 0, 2 * BLOCK + 3, 40]
    found = np.concatenate([NOISE.draw(size) for size in sizes])
    streams, left, expected = itertools.count(), 0, []
    for size in sizes:
        if size > left:
            bits = SeededBits.__new__(SeededBits)
            bits._generator = np.random.default_rng(next(streams))
            fresh = max(size - left, BLOCK)
            expected.append(exact_draws.rounded_normal(fresh, DEVIATION, 1.0, bits))
            left += fresh
        left -= size
    np.testing.assert_array_equal(found, np.concatenate(expected)[: len(found)])


def test_used_draws_are_erased(prepared: Any) -> None:
    NOISE.prepare(10)
    memory = prepared._unused[DEVIATION]
    drawn = NOISE.draw(10)
    assert drawn.any()
    assert not memory[:10].any()
    assert memory[10:].all()
    drawn[:] = 1  # a caller's array is its own
    assert not memory[:10].any()


def test_prepared_noise_is_only_copied(prepared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not NOISE.is_prepared(2 * BLOCK)
    NOISE.prepare(2 * BLOCK)
    assert NOISE.is_prepared(2 * BLOCK)
    assert not ModelNoise(1.0, 2.0, 1).is_prepared(1)
    monkeypatch.setattr(exact_draws, "_normal", None)
    assert NOISE.draw(2 * BLOCK).shape == (2 * BLOCK,)
    assert not NOISE.is_prepared(1)


def test_noise_of_few_deviations_is_kept(prepared: Any) -> None:
    for multiplier in range(1, 30):
        ModelNoise(1.0, float(multiplier), 1).draw(1)
    kept = [deviation / 2.0**24 for deviation in prepared._unused]
    assert kept == list(range(22, 30))


def test_threads_share_no_draw(prepared: Any) -> None:
    """At σ = 2^44 two of 40,000 draws are equal with probability 2e-5; the seeds are fixed."""
    with ThreadPoolExecutor(8) as pool:
        parts = pool.map(lambda _: exact_draws.rounded_normal(10, 2.0**44, 1.0), range(4000))
        found = np.concatenate(list(parts))
    assert len(np.unique(found)) == len(found) == 40_000


def test_draws_are_not_pickled() -> None:
    NOISE.draw(1)
    with pytest.raises(TypeError):
        pickle.dumps(exact_draws._prepared)
    assert len(pickle.dumps(NOISE)) < 1000


# Windows has no fork, so there is no child that could share draws.
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_process_shares_no_draw_and_no_lock() -> None:
    """Also when another thread of the parent is drawing at that moment."""
    done = python("""
import os, threading
from walklearn.privacy import ModelNoise
from walklearn.privacy.draws import exact_draws
noise = ModelNoise(clip=1.0, noise_multiplier=3.0, max_contributions=1)
noise.draw(1)
assert noise.is_prepared(100)
reading, writing = os.pipe()
held, finished = threading.Event(), threading.Event()
def hold():
    with exact_draws._prepared._lock, exact_draws._exclusive_precision():
        held.set()
        finished.wait()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
import warnings
warnings.simplefilter("ignore")  # newer Pythons warn of threads
if (child := os.fork()) == 0:
    assert not noise.is_prepared(1)
    exact_draws.rounded([(exact_draws.Normal(1.0), 0.0)], 1.0)
    os.write(writing, repr(noise.draw(100).tolist()).encode())
    os._exit(0)
finished.set()
thread.join()
assert os.waitpid(child, 0)[1] == 0
theirs = set(eval(os.read(reading, 65536)))
assert noise.is_prepared(100)
# Independent draws share one number with probability 0.005; copies would share them all.
assert len(theirs & set(noise.draw(8000).tolist())) < 50
""")
    assert done.returncode == 0, done.stderr


def test_the_lock_is_held_while_draws_are_taken(prepared: Any) -> None:
    assert isinstance(prepared._lock, type(threading.Lock()))
    with prepared._lock, ThreadPoolExecutor(1) as pool:
        taking = pool.submit(NOISE.draw, 3)
        with pytest.raises(TimeoutError):
            taking.result(timeout=0.05)
        prepared._lock.release()
        assert taking.result(timeout=60).shape == (3,)
        prepared._lock.acquire()
