"""Registries by name: losses, domains, walks, gossip, mechanisms, graph families.

Each entry is named once, in its definition, and there is one registry per kind of entry.
Simulations, studies, estimators, plans and the command line all use it, so a new entry only needs
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

An entry can also be registered by its import path, "package.module:Class". It is imported at its
first use, also in the worker processes of a study.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, TypeVar

from walklearn.wording import did_you_mean

T = TypeVar("T")
_Registered = TypeVar("_Registered")


class Registry(Mapping[str, T]):
    """Entries of one kind by name, in the order of registration."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}
        self._import_paths: dict[str, str] = {}  # of entries from outside this package

    def register(self, entry: _Registered) -> _Registered:
        """Register a class or function under its `name`. Also a decorator."""
        new: Any = entry
        name = getattr(new, "name", None)
        if name is None and not isinstance(new, type):
            name = new.__name__
        if not isinstance(name, str):
            raise ValueError(f"{new!r} has no name to be registered by. Give it a `name`.")
        import_path = self._checked_import_path(name, _import_path(new))
        self._entries[name] = new
        if not import_path.startswith("walklearn."):
            self._import_paths[name] = import_path
        return entry

    def register_import_path(self, name: str, import_path: str) -> None:
        """Register an entry by its import path, "package.module:Class", without importing it."""
        self._import_paths[name] = self._checked_import_path(name, import_path)

    def _checked_import_path(self, name: str, import_path: str) -> str:
        """Return the path; raise a ValueError if another entry has this name."""
        registered_path = self._import_paths.get(name)
        if registered_path is None and name in self._entries:
            registered_path = _import_path(self._entries[name])
        if registered_path not in (None, import_path):
            raise ValueError(f"there is already a {self.kind} {name!r}. Use another name.")
        return import_path

    def remove(self, name: str) -> None:
        """Remove the entry with this name."""
        self._entries.pop(name, None)
        self._import_paths.pop(name, None)

    def import_path_of(self, name: str) -> str | None:
        """Return the import path of an entry; None if it comes with this package."""
        return self._import_paths.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """All registered names."""
        return tuple(self)

    def names_of(self, base: type, to_load: object = None) -> tuple[str, ...]:
        """Return the names of loaded subclasses of `base`, after loading the entry `to_load`."""
        if isinstance(to_load, str) and to_load in self:
            self[to_load]
        entries = self._entries.items()
        return tuple(
            n for n, entry in entries if isinstance(entry, type) and issubclass(entry, base)
        )

    def by_name(self, name: object) -> T:
        """Return the entry with this name; a ValueError lists the names."""
        if any(name is entry for entry in self._entries.values()):
            raise ValueError(f"expected the name of a {self.kind}: write {self.name_of(name)!r}.")
        if not isinstance(name, str) or name not in self:
            hint = did_you_mean(name, self) if isinstance(name, str) else "."
            raise ValueError(
                f"there is no {self.kind} {name!r}{hint} Choose one of {', '.join(self)}."
            )
        return self[name]

    def name_of(self, entry: object) -> str:
        """Return the name of an entry, or of an instance of one."""
        for name, registered in self._entries.items():
            if registered is entry or registered is type(entry):
                return name
            if type(registered) is type(entry) and getattr(entry, "name", None) == name:
                return name  # a copy of a registered object, such as a rescaled loss
        raise ValueError(f"{entry!r} is not a registered {self.kind}. Register it first.")

    def __getitem__(self, name: str) -> T:
        if name not in self._entries:
            entry = _at(self._import_paths[name], self.kind)
            self._entries.setdefault(name, entry)  # its module may have registered it
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._entries, *self._import_paths]))

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._import_paths

    def __len__(self) -> int:
        return len(list(iter(self)))


def _import_path(entry: Any) -> str:
    return getattr(entry, "import_path", None) or f"{entry.__module__}:{entry.__qualname__}"


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
