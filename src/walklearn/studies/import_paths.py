"""Import paths of a study's own walks, losses and other parts that are not in walklearn.

A worker is another process, perhaps on another machine, in which these parts are not registered.
A cell therefore contains the import paths of its parts, and the worker registers them first. The
text of a study cannot contain an import path, because a text could then run any code.

>>> register_walk("sticky", "my_walks:Sticky")
>>> import_paths_of({"walk": "sticky"}, {"loss": "huber"})
{'walk': {'sticky': 'my_walks:Sticky'}}
>>> WALKS.remove("sticky")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from walklearn.graphs import FAMILIES
from walklearn.objectives.linear.domains import DOMAINS
from walklearn.objectives.linear.losses import LOSSES
from walklearn.privacy import MECHANISMS
from walklearn.registry import Registry
from walklearn.simulation.averaging import GOSSIP
from walklearn.updates import UPDATES
from walklearn.walks import WALKS

_REGISTRIES: dict[str, Registry[Any]] = {
    registry.kind: registry
    for registry in (FAMILIES, LOSSES, DOMAINS, WALKS, UPDATES, GOSSIP, MECHANISMS)
}
_PAPER = "walklearn.studies.paper"
# Walks and updates of single shipped studies.
_SHIPPED = {
    "fig3": {
        "walk": {
            "unclamped": f"{_PAPER}.figure3_walks:Unclamped",
            "equal-variance-gamma": f"{_PAPER}.figure3_walks:equal_variance_gamma",
        }
    },
    "memory-private": {
        "update": {
            "noisy-sgd": f"{_PAPER}.noisy_memory:NoisySgd",
            "noisy-saga": f"{_PAPER}.noisy_memory:NoisySaga",
        }
    },
}


def register_walk(name: str, import_path: str) -> None:
    """Register a walk of your own for studies; it is imported when a study uses it.

    Each worker imports it. If the class has an argument `privacy`, a study can set the keys about
    releases, as for "weighted".

    Parameters
    ----------
    name
        Name in studies.
    import_path
        "package.module:Class".
    """
    WALKS.register_import_path(name, import_path)


def import_paths_of(*tables: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the import paths of the parts in these tables that are not in walklearn, by kind."""
    texts = [text for table in tables for text in _texts(table)]
    import_paths = {
        kind: {name: path for name in texts if (path := registry.import_path_of(name)) is not None}
        for kind, registry in _REGISTRIES.items()
    }
    return {kind: known for kind, known in import_paths.items() if known}


def register_shipped(study: str) -> None:
    """Register the walks and updates of a shipped study; do nothing for another one."""
    register_import_paths(_SHIPPED.get(study, {}))


def register_import_paths(import_paths: Mapping[str, Mapping[str, str]]) -> None:
    """Register the parts of a cell in this process."""
    for kind, known in import_paths.items():
        for name, path in known.items():
            _REGISTRIES[kind].register_import_path(name, path)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield key  # as in { ball = 10.0 }
            yield from _texts(each)
