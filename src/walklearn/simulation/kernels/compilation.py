"""Decorators that compile kernels, and their cache on disk.

Kernels are compiled without Numba's memory management (`_nrt=False`). They count no references, so
tuples of arrays cost nothing in inlined functions and branches, and cannot allocate arrays: work
space is an argument. The cache is keyed by a digest of all files of this package, because Numba
does not notice changes of helpers in other files.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit, types
from numba.core.caching import FunctionCache
from numba.core.compiler import Compiler
from numba.core.runtime.nrt import rtsys
from numba.extending import overload

# Sums may be reordered and products fused; NaN and infinity keep their meaning. A division by zero
# gives infinity as in NumPy: Python's error would be a branch that keeps loops from vectorising.
_FAST = {"reassoc", "contract", "nsz", "arcp"}
_OPTIONS: dict[str, Any] = {
    "nogil": True, "error_model": "numpy", "fastmath": _FAST, "_nrt": False,
}  # fmt: skip

#: A helper that takes numbers.
helper: Callable[..., Any] = njit(**_OPTIONS)
#: A helper whose roundings stay as written, except for fused products.
exact_helper: Callable[..., Any] = njit(**{**_OPTIONS, "fastmath": {"contract", "nsz"}})
#: A helper whose roundings stay as written.
plain_helper: Callable[..., Any] = njit(**{**_OPTIONS, "fastmath": False})
#: A user's function of numbers: its roundings stay as written, too.
user_function: Callable[..., Any] = njit(
    **{**_OPTIONS, "fastmath": {"contract", "nsz"}}, forceinline=True
)
#: A function that is copied into its callers. It may take other inlined functions as arguments.
inlined: Callable[..., Any] = njit(**_OPTIONS, inline="always")


def by_type(function: Callable[..., Any]) -> Any:
    """Let kernels choose a version of the function by the class of its first argument.

    `function.version(*classes)` registers a version. The choice is made at compile time.
    """
    versions: dict[type, Callable[..., Any]] = {}
    options: Any = {**_OPTIONS, "forceinline": True}

    @overload(function, strict=False, jit_options=options)
    def choose(first, *rest):
        return versions[first.instance_class]

    def version(*classes: type) -> Callable[..., Any]:
        def register(implementation: Callable[..., Any]) -> Callable[..., Any]:
            versions.update(dict.fromkeys(classes, implementation))
            return implementation

        return register

    function.version = version  # type: ignore[attr-defined]
    return function


def _stamp() -> str:
    """Return a digest of every kernel file."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


_STAMP = _stamp()


class _KernelCache(FunctionCache):
    """Numba's cache, keyed by all kernel files; announces compilation on a terminal."""

    has_announced = False

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = _STAMP

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the machine code for these types, or None if it must be compiled.

        Numba's method first loads a compiler and SciPy's linear algebra, which takes 0.3 s.
        """
        rtsys.initialize(target_context)
        if _has_function(signature):
            return None
        with self._guard_against_spurious_io_errors():
            code = self._load_overload(signature, target_context)
        if code is None and not _KernelCache.has_announced and sys.stderr.isatty():
            _KernelCache.has_announced = True
            print("walklearn is compiling for this machine, once …", file=sys.stderr)
        return code

    def save_overload(self, signature: Any, data: Any) -> None:
        """Save the machine code, except for a user's functions: they may change on disk."""
        if not _has_function(signature):
            super().save_overload(signature, data)


def _has_function(types_of_arguments: Any) -> bool:
    """True if one of the types, or a part of one, is a compiled function."""
    return any(
        isinstance(each, types.Dispatcher) or _has_function(getattr(each, "types", ()))
        for each in types_of_arguments
    )


class _NoAlias(Compiler):
    """Numba's compiler, with the promise that no two arrays of a call overlap (C's `restrict`)."""

    # Without it every inner loop would check first, which takes longer than a short row.
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.state.flags.noalias = True


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, cached on disk; arrays it changes never overlap."""
    compiled = njit(**_OPTIONS, pipeline_class=_NoAlias)(function)
    compiled._cache = _KernelCache(function)
    return compiled
