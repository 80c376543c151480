"""Registries of things by name: losses, domains, walks, gossip, mechanisms, graph families.

A thing has its name once, beside its definition, and there is one registry for each kind of thing.
Simulations, studies, estimators, plans and the command line all use it, so a new thing only needs
to be registered:

>>> from walklearn.registry import Registry
>>> SHAPES = Registry("shape")
>>> @SHAPES.register
... class Circle:
...     name = "circle"
>>> SHAPES.by_name("circle") is Circle, SHAPES.name_of(Circle()), SHAPES.names
(True, 'circle', ('circle',))
>>> SHAPES.by_name("cirlce")
Traceback (most recent call last):
    ...
ValueError: there is no shape 'cirlce', did you mean 'circle'? Choose one of circle.

A thing can also be registered by its import path, "package.module:Class". It is imported when it is
first used, in worker processes of a study, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, TypeVar

from walklearn.wording import did_you_mean

T = TypeVar("T")
_Registered = TypeVar("_Registered")


class Registry(Mapping[str, T]):
    """The things of one kind, by name, in the order in which they were registered."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._things: dict[str, T] = {}
        self._import_paths: dict[str, str] = {}  # of things outside this package

    def register(self, thing: _Registered) -> _Registered:
        """Register a class or function under its `name`. Also a decorator."""
        new: Any = thing
        name = getattr(new, "name", None)
        if name is None and not isinstance(new, type):
            name = new.__name__
        if not isinstance(name, str):
            raise ValueError(f"{new!r} has no name to be registered by. Give it a `name`.")
        import_path = self._checked_import_path(name, _import_path(new))
        self._things[name] = new
        if not import_path.startswith("walklearn."):
            self._import_paths[name] = import_path
        return thing

    def register_import_path(self, name: str, import_path: str) -> None:
        """Register a thing by its import path, "package.module:Class", without importing it."""
        self._import_paths[name] = self._checked_import_path(name, import_path)

    def _checked_import_path(self, name: str, import_path: str) -> str:
        """Return the path, unless another thing has this name. A module may be loaded twice."""
        known = self._import_paths.get(name)
        if known is None and name in self._things:
            known = _import_path(self._things[name])
        if known not in (None, import_path):
            raise ValueError(f"there is already a {self.kind} {name!r}. Use another name.")
        return import_path

    def remove(self, name: str) -> None:
        """Remove the thing with this name."""
        self._things.pop(name, None)
        self._import_paths.pop(name, None)

    def import_path_of(self, name: str) -> str | None:
        """Return the import path of a thing; None if it comes with this package."""
        return self._import_paths.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """All registered names."""
        return tuple(self)

    def names_of(self, base: type, also: object = None) -> tuple[str, ...]:
        """Return the names of loaded subclasses of `base`, after loading the one named `also`."""
        if isinstance(also, str) and also in self:
            self[also]
        known = self._things.items()
        return tuple(n for n, thing in known if isinstance(thing, type) and issubclass(thing, base))

    def by_name(self, name: object) -> T:
        """Return the thing with this name; a ValueError lists the names."""
        if any(name is thing for thing in self._things.values()):
            raise ValueError(f"expected the name of a {self.kind}: write {self.name_of(name)!r}.")
        if not isinstance(name, str) or name not in self:
            hint = did_you_mean(name, self) if isinstance(name, str) else "."
            raise ValueError(
                f"there is no {self.kind} {name!r}{hint} Choose one of {', '.join(self)}."
            )
        return self[name]

    def name_of(self, thing: object) -> str:
        """Return the name of a thing, or of its class."""
        for name, known in self._things.items():
            if known is thing or known is type(thing):
                return name
            if type(known) is type(thing) and getattr(thing, "name", None) == name:
                return name  # a copy of a registered object, such as a rescaled loss
        raise ValueError(f"{thing!r} is not a registered {self.kind}. Register it first.")

    def __getitem__(self, name: str) -> T:
        if name not in self._things:
            thing = _at(self._import_paths[name], self.kind)
            self._things.setdefault(name, thing)  # its module may have registered it
        return self._things[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._things, *self._import_paths]))

    def __contains__(self, name: object) -> bool:
        return name in self._things or name in self._import_paths

    def __len__(self) -> int:
        return len(list(iter(self)))


def _import_path(thing: Any) -> str:
    return getattr(thing, "import_path", None) or f"{thing.__module__}:{thing.__qualname__}"


def _at(import_path: str, kind: str) -> Any:
    module, _, attribute = import_path.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"there is no {kind} {import_path}: {error}. Every worker must be able to import it. "
            "Put it in a module of its own, not in the script that is run, and install that "
            "module or add it to PYTHONPATH."
        ) from error
