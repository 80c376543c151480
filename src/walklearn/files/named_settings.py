"""Losses and domains in TOML: a name, or a name with one or two numbers.

`"everywhere"` has no numbers, `{ ball = 10.0 }` has one, `{ box = [-1.0, 1.0] }` has two. The
numbers are the fields of the class, so every registered class can be written in this form.

>>> from walklearn.files.checked_table import CheckedTable
>>> from walklearn.objectives.linear.domains import DOMAINS
>>> table = CheckedTable.parse("domain = { ball = 10.0 }", "plan.toml", ValueError)
>>> ball = read_named(table, "domain", DOMAINS)
>>> ball, written(ball, DOMAINS)
(Ball(radius=10.0), {'ball': 10.0})
"""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Any

from walklearn.files.checked_table import CheckedTable, is_text
from walklearn.registry import Registry


def read_named(table: CheckedTable, key: str, registry: Registry[Any]) -> Any:
    """Read the loss or domain that the key names, with its numbers."""
    if is_text(table.get(key, "")):
        kind = registry[table.choice(key, registry)]
        if any(item.default is MISSING for item in _settings(kind)):
            raise table.error(key, f"needs numbers, such as {key} = {{ {table[key]} = … }}.")
        return kind()
    inner = table.table(key)
    numbered = [name for name, kind in registry.items() if _settings(kind)]
    inner.only(numbered, f"a {registry.kind}")
    if len(inner) != 1:
        raise table.error(key, f"must name one {registry.kind}; it names {len(inner)}.")
    (name,) = inner
    pair = len(_settings(registry[name])) == 2
    return registry[name](*(inner.pair(name) if pair else [inner.number(name, above=0.0)]))


def written(thing: object, registry: Registry[Any]) -> Any:
    """Return the value that `read_named` reads."""
    name = registry.name_of(thing)
    values = [getattr(thing, item.name) for item in _settings(registry[name])]
    return {name: values if len(values) > 1 else values[0]} if values else name


def _settings(kind: Any) -> list[Field[Any]]:
    """Return the fields of a class, except the number of classes; an object has none."""
    named = fields(kind) if isinstance(kind, type) else ()
    return [item for item in named if item.name != "classes"]
