"""Declared arrays: the only state that crosses the network or reaches a disk.

Each part of an algorithm declares its arrays by name, shape and dtype. Message sizes, checks of
received bytes, storage and the layout for compiled code follow from these declarations.

>>> specs = (ArraySpec("model", (2,)), ArraySpec("updates", (), "<i8"))
>>> content = pack(specs, {"model": np.array([1.0, 2.0]), "updates": np.array(7)})
>>> len(content), unpack(specs, content)["model"]
(24, array([1., 2.]))
"""

from __future__ import annotations

import hashlib
import io
import math
import zipfile
from collections.abc import Iterable, Mapping
from functools import lru_cache
from numbers import Integral
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

ZIP_END_BYTES = 22  # the end of a .zip file without a comment


class _Fields(NamedTuple):
    name: str
    shape: tuple[int, ...]
    dtype: str


class ArraySpec(_Fields):
    """Declaration of one array.

    Parameters
    ----------
    name
        Name of the array, unique within its part.
    shape
        Shape; empty for a single number. A whole number n stands for (n,).
    dtype
        NumPy's string for the type of its numbers, byte order included.

    Examples
    --------
    >>> import walklearn as wl
    >>> wl.ArraySpec("coef", (10, 3), "<f4").nbytes
    120
    """

    __slots__ = ()

    def __new__(cls, name: str, shape: int | tuple[int, ...] = (), dtype: str = "<f8") -> ArraySpec:
        """Make a declaration with a checked shape."""
        sizes = tuple(shape) if isinstance(shape, Iterable) else (shape,)
        if not all(isinstance(size, Integral) and size >= 0 for size in sizes):
            raise ValueError(
                f"the shape of {name!r} must be whole numbers of at least 0, got {shape!r}."
            )
        if np.dtype(dtype).kind not in "biuf":
            raise ValueError(f"the dtype of {name!r} must be numeric, got {dtype!r}.")
        return super().__new__(cls, name, tuple(map(int, sizes)), np.dtype(dtype).str)

    @property
    def nbytes(self) -> int:
        """Size of the array in bytes."""
        return math.prod(self.shape) * _dtype(self.dtype).itemsize


Array = NDArray[Any]
Vector = NDArray[np.float64]
Specs = tuple[ArraySpec, ...]
Arrays = dict[str, Array]

# Cached, because every visit looks up dtypes by name.
_dtype = lru_cache(maxsize=None)(np.dtype)


def zeros(specs: Specs) -> Arrays:
    """Return the declared arrays, filled with zeros."""
    return {spec.name: np.zeros(spec.shape, spec.dtype) for spec in specs}


def checked_specs(specs: Specs, part: object) -> Specs:
    """Return the declarations of a part, after checking their types and that names are unique."""
    if not isinstance(specs, tuple) or not all(isinstance(s, ArraySpec) for s in specs):
        raise TypeError(f"{part} declares {specs!r}. Declare arrays as a tuple of wl.ArraySpec.")
    names = [spec.name for spec in specs]
    if len(set(names)) < len(names):
        raise ValueError(f"{part} declares two arrays of the same name: {', '.join(names)}.")
    return specs


def conform(specs: Specs, arrays: Mapping[str, ArrayLike], part: object) -> Arrays:
    """Return exactly the declared arrays, in their declared shape and dtype.

    An array that already conforms is returned itself, without a copy.

    Parameters
    ----------
    specs
        The declarations.
    arrays
        An array, or a number, for each declared name.
    where
        The part that made the arrays, for error messages.

    Returns
    -------
    dict
        The arrays by name, in the order of `specs`. A ValueError is raised if names are missing or
        surplus, if a shape differs, and if integers would be truncated or out of range.
    """
    if not isinstance(arrays, dict | Mapping):  # a dict is the quick case
        raise TypeError(f"{part} must return its arrays as a dict by name, got {arrays!r}.")
    if not specs and not arrays:  # the usual case for most parts
        return {}
    result: Arrays = {}
    for spec in specs:
        name, shape, dtype = spec
        array = arrays.get(name)
        # NumPy has one object per common dtype, so identity is a fast test; a miss costs a copy.
        if type(array) is np.ndarray and array.dtype is _dtype(dtype) and array.shape == shape:
            result[name] = array
        else:
            result[name] = _converted(spec, array, part)
    if len(arrays) != len(specs):
        surplus = ", ".join(sorted(map(repr, set(arrays) - set(result))))
        declared = ", ".join(map(repr, result)) or "none"
        raise ValueError(f"{part}: arrays {surplus} are not declared. Declared: {declared}.")
    return result


def _converted(spec: ArraySpec, value: Any, part: object) -> NDArray[Any]:
    expected = f"expected {spec.dtype} of shape {spec.shape}"
    if value is None:
        raise ValueError(f"{part}: array {spec.name!r} is missing: {expected}.")
    array, target = np.asarray(value), _dtype(spec.dtype)
    is_exact = array.dtype.kind in "biu" or array.dtype.kind == target.kind == "f"
    if array.shape != spec.shape or not is_exact:
        value = f"{array.dtype.str} of shape {array.shape}"
        raise ValueError(f"{part}: array {spec.name!r} has {value}, {expected}.")
    converted = array.astype(target)
    if target.kind in "biu" and not np.array_equal(converted, array):
        raise ValueError(f"{part}: array {spec.name!r} holds {array}, out of range of {expected}.")
    return converted


def with_entry(array: Array, index: Any, value: Any) -> Array:
    """Return a copy of the array with one entry changed."""
    result = array.copy()
    result[index] = value
    return result


def sha256_of(*arrays: Array) -> str:
    """Return the SHA-256 of the arrays' bytes, one after the other, in hex."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def read_npz(content: bytes | BinaryIO) -> Arrays:
    """Return the arrays of an .npz file. Refuse Python objects, and verify all checksums."""
    file = io.BytesIO(content) if isinstance(content, bytes) else content
    with zipfile.ZipFile(file) as archive:
        if (member := archive.testzip()) is not None:  # NumPy alone may miss a wrong checksum
            raise ValueError(f"wrong checksum of {member}")
        count, is_plain = len(archive.infolist()), not archive.comment
    # A wrong length in the directory hides the members after it; its end has their true number.
    file.seek(-ZIP_END_BYTES, io.SEEK_END)
    true_count = int.from_bytes(file.read()[10:12], "little")
    if is_plain and count != true_count:
        raise ValueError(f"{count} of {true_count} members are readable")
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


def pack(specs: Specs, arrays: Mapping[str, ArrayLike]) -> bytes:
    """Return the declared arrays as bytes, one after the other and without a header."""
    return b"".join(array.tobytes() for array in conform(specs, arrays, "pack").values())


def unpack(specs: Specs, content: bytes) -> Arrays:
    """Return the arrays that `pack` wrote, as read-only views of the content.

    A ValueError is raised if the content has another size than the specs declare.
    """
    expected = sum(spec.nbytes for spec in specs)
    if len(content) != expected:
        names = ", ".join(repr(spec.name) for spec in specs) or "no arrays"
        raise ValueError(f"expected {expected} bytes for {names}, got {len(content)}.")
    result: Arrays = {}
    start = 0
    for spec in specs:
        part = content[start : start + spec.nbytes]
        result[spec.name] = np.frombuffer(part, spec.dtype).reshape(spec.shape)
        start += spec.nbytes
    return result
