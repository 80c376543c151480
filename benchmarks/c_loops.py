"""The C loops of hop.c, on walklearn's own arrays."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.graphs import Graph
from walklearn.updates import draw_start
from walklearn.visit import Setting

Array = NDArray[Any]

SOURCE = Path(__file__).with_name("hop.c")
COMPILE = ("gcc", "-O3", "-march=native", "-ffast-math", "-fPIC")


class CSetting(ctypes.Structure):
    """`Setting` of hop.c."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("indptr", "indices", "score", "scale")),
        *((name, ctypes.c_void_p) for name in ("rows", "targets", "weights", "offsets")),
        *((name, ctypes.c_int64) for name in ("dimension", "outputs", "batch")),
        *((name, ctypes.c_double) for name in ("penalty", "radius", "constant", "exponent")),
    )


class CToken(ctypes.Structure):
    """`Token` of hop.c."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("model", "sum", "gradient", "scores", "picks")),
        ("visits", ctypes.c_void_p),
        ("step_size_sum", ctypes.c_double),
        *((name, ctypes.c_int64) for name in ("node", "updates", "messages", "projections")),
        ("random", ctypes.c_uint64 * 4),
    )


def has_compiler() -> bool:
    """Whether hop.c can be built here."""
    return shutil.which(COMPILE[0]) is not None


@contextmanager
def c_library() -> Iterator[ctypes.CDLL]:
    """hop.c, built and loaded."""
    with tempfile.TemporaryDirectory() as folder:
        built, library = Path(folder, "hop.o"), Path(folder, "hop.so")
        subprocess.run([*COMPILE, "-c", str(SOURCE), "-o", str(built)], check=True)
        subprocess.run(["gcc", "-shared", str(built), "-lm", "-o", str(library)], check=True)
        loaded = ctypes.CDLL(str(library))
        for walk in (loaded.walk, loaded.walk_rows, loaded.walk_classes):
            walk.restype = None
            walk.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        loaded.gather.restype = ctypes.c_double
        loaded.gather.argtypes = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
        yield loaded


class CWalk:
    """One token in C."""

    def __init__(self, library: ctypes.CDLL, setting: Setting, graph: Graph, seed: int) -> None:
        problem, generator = setting.objective, np.random.default_rng(seed)
        walk, step_size = setting.walk, setting.update.step_size
        node, self.model = draw_start(problem, generator)
        self.sum, self._gradient = np.zeros_like(self.model), np.zeros_like(self.model)
        self._scores, self.picks = np.zeros(problem.outputs), np.zeros(problem.draws)
        self.visits = np.zeros(problem.nodes, dtype=np.int64)
        one_row = problem.row_count == problem.nodes
        self._walk = (
            library.walk_classes
            if problem.outputs > 1
            else library.walk
            if one_row
            else library.walk_rows
        )
        self._arrays = {  # also keeps them alive
            "indptr": _of_type(graph.indptr, np.int32),
            "indices": _of_type(graph.indices, np.int32),
            "score": np.ascontiguousarray(walk.announcements(graph, problem)[:, 0], np.float64),
            "scale": _of_type(walk.gradient_scale(graph, problem), np.float64),
            "rows": _of_type(problem.X, np.float64),
            "targets": _of_type(problem.y, np.float64),
            "weights": _of_type(problem.row_weights, np.float64),
            "offsets": _of_type(problem.offsets, np.int64),
        }
        self._setting = CSetting(
            **{name: array.ctypes.data for name, array in self._arrays.items()},
            dimension=problem.dimension,
            outputs=problem.outputs,
            batch=problem.draws,
            penalty=problem.penalty,
            radius=problem.domain.radius,
            constant=step_size.constant,
            exponent=step_size.exponent,
        )
        self.token = CToken(
            model=self.model.ctypes.data,
            sum=self.sum.ctypes.data,
            gradient=self._gradient.ctypes.data,
            scores=self._scores.ctypes.data,
            picks=self.picks.ctypes.data,
            visits=self.visits.ctypes.data,
            node=node,
            random=tuple(int(n) for n in generator.integers(1, 2**63, 4)),
        )

    def run(self, hops: int) -> None:
        """Go on by that many hops."""
        self._walk(ctypes.byref(self._setting), ctypes.byref(self.token), hops)

    @property
    def average(self) -> Array:
        """The average that the weighted sum is for."""
        return self.sum / self.token.step_size_sum


class Gather:
    """Random rows, new ones for every turn: the same again would come from the cache."""

    def __init__(self, library: ctypes.CDLL, rows: Array, seed: int) -> None:
        self._gather, self._rows, self.done = library.gather, rows, 0
        self._generator = np.random.default_rng(seed)

    def prepare(self, count: int) -> None:
        """Draw the rows of the next turn."""
        self._which = self._generator.integers(0, len(self._rows), count, dtype=np.int32)

    def run(self, count: int) -> None:
        """Read them."""
        rows, which = self._rows, self._which
        self._gather(rows.ctypes.data, rows.shape[1], which.ctypes.data, count)
        self.done += count


def _of_type(array: Array, dtype: Any) -> Array:
    """The very array, once it is known to be what hop.c reads."""
    if array.dtype != dtype or not array.flags.c_contiguous:
        order = "contiguous" if array.flags.c_contiguous else "strided"
        raise TypeError(
            f"hop.c reads contiguous {np.dtype(dtype)} arrays, got a {order} {array.dtype} array"
        )
    return array
