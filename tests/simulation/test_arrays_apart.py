"""No array that a kernel changes overlaps with another it is given: they are compiled for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import walklearn as wl
from walklearn import updates, walks
from walklearn.simulation import compiled_batches, kernels
from walklearn.simulation.kernels.compilation import _KernelCache
from walklearn.simulation.kernels.visits.sgd import SHORT

GRAPH = wl.graphs.erdos_renyi(12, 0.5, seed=1)
MODULES = [import_module(found.name)
           for found in walk_packages(kernels.__path__, f"{kernels.__name__}.")]  # fmt: skip
KERNELS = [(module, name) for module in MODULES for name, value in vars(module).items()
           if isinstance(getattr(value, "_cache", None), _KernelCache)]  # fmt: skip
GIVEN = np.random.default_rng(1).standard_normal((36, 5))


def arrays_of(argument: Any) -> Iterator[np.ndarray[Any, Any]]:
    if isinstance(argument, np.ndarray):
        yield argument
    elif isinstance(argument, tuple):
        for part in argument:
            yield from arrays_of(part)


def watched(kernel: Callable[..., Any], name: str, called: set[str]) -> Callable[..., Any]:
    """The kernel, which fails where an array that it has changed is not the only one there."""

    def call(*arguments: Any) -> Any:
        arrays = [array for array in arrays_of(arguments) if array.nbytes]
        before = [array.copy() for array in arrays]
        result = kernel(*arguments)
        called.add(name)
        for i, (array, old) in enumerate(zip(arrays, before, strict=True)):
            if array.tobytes() != old.tobytes():
                others = arrays[:i] + arrays[i + 1 :]
                assert not any(np.shares_memory(array, other) for other in others), name
        return result

    return call


def problem_of(rows: Any, count: int) -> wl.Problem:
    y = np.where(GIVEN[:count, 0] > 0, 1.0, -1.0)
    domain = wl.domains.Everywhere() if count == 12 else wl.domains.Ball(2.0)
    return wl.Problem(rows[:count], y, penalty=0.1, domain=domain,
                      node_of_row=np.arange(count) % 12)  # fmt: skip


def test_arrays_that_kernels_change_are_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    called: set[str] = set()
    for module, name in KERNELS:
        full = f"{module.__name__}.{name}"
        monkeypatch.setattr(module, name, watched(getattr(module, name), full, called))
    methods = [walks.Weighted(), walks.NonBacktracking(), walks.Jumping(), walks.HistoryDriven(),
               walks.Independent(), wl.AsynchronousGossip(), wl.SynchronousGossip(),
               wl.GradientTracking()]  # fmt: skip
    settings: list[dict[str, Any]] = [{"method": method} for method in methods]
    settings += [{"method": walks.OldestFirst()}, {"method": walks.Tour()}]
    settings += [{"method": walks.Uniform(), "update": updates.Saga()}]
    for walk, tokens in ((walks.OldestFirst(), 1), (walks.OldestFirst(), 3), (walks.Tour(), 3)):
        finito = updates.Finito(estimates_gradient=tokens == 3)
        settings += [{"method": walk, "update": finito, "tokens": tokens}]
    settings += [{"method": walks.Weighted(), "mean_importance": "estimated", "streams": "node"}]
    long = np.tile(GIVEN, SHORT)
    few = sparse.csr_array(np.where(abs(GIVEN) > 0.8, GIVEN, 0.0))
    for rows, cache in ((GIVEN, 2**20), (GIVEN, 0), (long, 2**20), (long, 0), (few, 0)):
        monkeypatch.setattr(compiled_batches, "CACHE_BYTES", cache)
        for count in (12, 36):
            for setting in settings:
                update = setting.get("update")
                step = {} if update else {"step_size": wl.PowerStep(0.05, 0.75)}
                options = {key: value for key, value in setting.items() if key != "method"}
                wl.simulate(problem_of(rows, count), GRAPH, setting["method"], steps=60,
                            replicates=2, records=5, seed=1, engine="compiled",
                            **step, **options)  # fmt: skip
    assert called == {f"{module.__name__}.{name}" for module, name in KERNELS}
