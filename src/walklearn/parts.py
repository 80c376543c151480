"""Base of walks, updates and protections: small frozen objects with declared needs."""

from __future__ import annotations

import copy
from abc import ABC
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from functools import lru_cache, wraps
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np


@dataclass(frozen=True)
class _Frozen:
    """Make subclasses of `Part` frozen dataclasses, with or without the decorator."""


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
class Part(_Frozen, ABC):
    """Base of walks, updates and protections.

    Every subclass becomes a frozen dataclass: printable, comparable, hashable and picklable. Arrays
    among its fields are compared by value and cannot be written to.

    Attributes
    ----------
    needs
        Capabilities that the part needs, each with a remedy if it is missing.
    uncounted
        Names of its arrays on the token that do not count in the size of a message: they are kept
        for records only, or the receiver knows them.

    Examples
    --------
    >>> class Constant(Part):
    ...     number: float = 1.0
    >>> Constant(2.0), Constant() == Constant(1.0)
    (Constant(number=2.0), True)
    """

    uncounted: ClassVar[tuple[str, ...]] = ()

    @property
    def needs(self) -> dict[str, str]:
        """Capability → remedy."""
        return {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(frozen=True, repr=False, eq=False)(cls)
        cls.__init__ = _with_frozen_arrays(cls, cls.__init__)  # type: ignore[method-assign]
        # So that a user can add @dataclass(frozen=True), which refuses or replaces these methods.
        del cls.__setattr__, cls.__delattr__
        for name in ("__eq__", "__hash__", "__repr__"):
            setattr(cls, name, getattr(cls, name))

    def bound(self, **values: Any) -> Self:
        """Return a copy with bound values, which are not settings: repr and comparison ignore them.

        Parameters
        ----------
        **values
            Attributes that the class has with a default.

        Returns
        -------
        Part
            The copy.
        """
        result = copy.copy(self)
        for name, value in values.items():
            object.__setattr__(result, name, value)
        return result

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"{type(self).__name__} cannot be changed: make a new one.")

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Freeze the arrays after unpickling."""
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        self.__dict__.update(state)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            _equal(mine, theirs) for mine, theirs in zip(_values(self), _values(other), strict=True)
        )

    def __hash__(self) -> int:
        values = (v.tobytes() if isinstance(v, np.ndarray) else v for v in _values(self))
        return hash((type(self), *values))

    def __repr__(self) -> str:
        """Show the settings that differ from their defaults; an array as …"""
        settings = []
        for item in (item for item in fields(self) if item.repr):
            value = getattr(self, item.name, None)
            default = item.default if item.default_factory is MISSING else item.default_factory()
            if isinstance(value, np.ndarray):
                settings.append(f"{item.name}=…")
            elif not _equal(value, default):
                settings.append(f"{item.name}={value!r}")
        return f"{type(self).__name__}({', '.join(settings)})"


@lru_cache(maxsize=1024)
def is_current(cls: type, twin: str, *originals: str) -> bool:
    """True if a class or one of its bases defines `twin` at least as late as the originals.

    A fast twin stands for methods that it was written for. A subclass that overrides one of these
    methods, but not the twin, must not use the twin.

    Parameters
    ----------
    kind
        A class.
    twin
        The name of the attribute that stands for the others.
    *originals
        The names of the methods that it stands for.

    Returns
    -------
    bool
        False if a subclass has overridden an original.

    Examples
    --------
    >>> class Walk:
    ...     compiled = "walk"
    ...     def hop(self): ...
    >>> class Other(Walk):
    ...     def hop(self): ...
    >>> is_current(Walk, "compiled", "hop"), is_current(Other, "compiled", "hop")
    (True, False)
    """
    depths = {
        name: next((i for i, base in enumerate(cls.__mro__) if name in vars(base)), np.inf)
        for name in (twin, *originals)
    }
    return all(depths[twin] <= depths[name] for name in originals)


def _with_frozen_arrays(cls: type, init: Any) -> Any:
    """Wrap a constructor, so that fields that are arrays become read-only copies."""

    @wraps(init)
    def construct(self: Part, *args: Any, **settings: Any) -> None:
        init(self, *args, **settings)
        if type(self) is not cls:
            return
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray) and value.flags.writeable:
                value = value.copy()
                value.setflags(write=False)
                object.__setattr__(self, item.name, value)

    return construct


def _values(part: Part) -> list[Any]:
    return [getattr(part, item.name) for item in fields(part) if item.compare]


def _equal(first: Any, second: Any) -> bool:
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return first is not None and second is not None and bool(np.array_equal(first, second))
    return bool(first == second)
