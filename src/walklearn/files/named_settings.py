"""A thing with a name and a few numbers, as a TOML file writes it: a loss, a domain.

`"everywhere"` needs nothing beside its name, `{ ball = 10.0 }` one number, `{ box = [-1.0, 1.0] }`
two. What a class needs is read off its fields, so that one that is registered can be written so.

>>> from walklearn.files.checked_table import CheckedTable
>>> from walklearn.objectives.linear.domains import DOMAINS
>>> table = CheckedTable.parse("domain = { ball = 10.0 }", "plan.toml", ValueError)
>>> ball = read_named(table, "domain", DOMAINS)
>>> ball, written(ball, DOMAINS)
(Ball(radius=10.0), {'ball': 10.0})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from walklearn.files.checked_table import CheckedTable
from walklearn.registry import Registry
from walklearn.wording import either


def read_named(table: CheckedTable, key: str, registry: Registry[Any], *also: str) -> Any:
    """Read the thing that the key names, with its numbers; `also` lists forms read elsewhere."""
    given = table.get(key)
    if not isinstance(given, Mapping):
        plain = [name for name, kind in registry.items() if not _settings(kind)]
        table.value(key, wanted=forms(registry, *also), fits=lambda value: value in plain)
        return registry[str(given)]()
    inner = table.table(key)
    known = [name for name, kind in registry.items() if _settings(kind)]
    inner.only(known, f"a {registry.kind}")
    if len(inner) != 1:
        raise table.error(key, f"must be one of {forms(registry, *also)}.")
    (name,) = inner
    pair = len(_settings(registry[name])) == 2
    return registry[name](*(inner.pair(name) if pair else [inner.number(name, above=0.0)]))


def written(thing: object, registry: Registry[Any]) -> Any:
    """The setting of a thing as `read_named` reads it."""
    name = registry.name_of(thing)
    values = [getattr(thing, setting) for setting in _settings(registry[name])]
    return {name: values if len(values) > 1 else values[0]} if values else name


def forms(registry: Registry[Any], *also: str) -> str:
    """How each of them is written.

    >>> from walklearn.objectives.linear.domains import DOMAINS
    >>> forms(DOMAINS)
    '"everywhere", { ball = 10.0 } or { box = [-1.0, 1.0] }'
    """
    examples = ('"{}"', "{{ {} = 10.0 }}", "{{ {} = [-1.0, 1.0] }}")
    shown = [examples[len(_settings(kind))].format(name) for name, kind in registry.items()]
    return either([*shown, *also])


def _settings(kind: Any) -> list[str]:
    """What must be said of it beside the name; how many classes there are is said elsewhere."""
    if not isinstance(kind, type):  # a registered object is complete
        return []
    return [item.name for item in fields(kind) if item.name != "classes"]
