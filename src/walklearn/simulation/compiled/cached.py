"""The decorators of the kernels, and a cache on disk that notices an edit in any of their files.

Numba keeps machine code beside the file of the function and asks only whether that file has
changed: a helper edited in another file would leave stale code behind, silently. So the kernels'
cache is stamped with a digest of all files of this package instead.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.compiler import Compiler
from numba.core.runtime.nrt import rtsys

# Sums may be reordered and products fused; NaN and infinity keep their meaning. A division by zero
# gives infinity as in NumPy: Python's error would be a branch in every loop, which then does not
# vectorise.
_FAST = {"reassoc", "contract", "nsz", "arcp"}
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": _FAST}

#: A helper that takes numbers, compiled into the kernels that call it.
helper: Callable[..., Any] = njit(**_OPTIONS)
#: One in which every rounding stays where it is written, but for fused products.
exact_helper: Callable[..., Any] = njit(**{**_OPTIONS, "fastmath": {"contract", "nsz"}})
#: One that takes arrays: written into its callers, which spares counting references in every call.
inlined: Callable[..., Any] = njit(**_OPTIONS, inline="always")


def _stamp() -> str:
    """A digest of every kernel file."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


_STAMP = _stamp()


class _KernelCache(FunctionCache):
    """Numba's cache under a digest of all kernel files; it says at a terminal that it compiles."""

    has_announced = False  # that it compiles

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = _STAMP

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The machine code for these types; None where it has yet to be compiled.

        Numba's own way begins by loading all that a compiler needs, SciPy's linear algebra too:
        .3 s. What is read from the disk needs Numba's memory only; compiling loads the rest itself.
        """
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            found = self._load_overload(signature, target_context)
        if found is None and not _KernelCache.has_announced and sys.stderr.isatty():
            _KernelCache.has_announced = True
            print("walklearn is compiling for this machine, once …", file=sys.stderr)
        return found


class _Apart(Compiler):
    """Numba's compiler, told that no two arrays of a call overlap, as C is by `restrict`.

    Otherwise every inner loop would ask first, which takes longer than a short row.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.state.flags.noalias = True


def kernel(function: Callable[..., Any]) -> Any:
    """A function that Python calls: machine code, kept on disk, running outside Python's lock.

    Of the arrays it is called with, none that it changes may overlap with another.
    """
    compiled = njit(**_OPTIONS, pipeline_class=_Apart)(function)
    compiled._cache = _KernelCache(function)
    return compiled
