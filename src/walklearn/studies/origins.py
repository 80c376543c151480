"""Where workers find what a study names and this package does not bring.

A walk, loss or mechanism of one's own is registered in its registry (`WALKS`, `LOSSES`, …). A
worker is another process, maybe on another machine, and knows nothing of that; so a cell carries
the import_paths of what it names, and they are registered before it is run. Only what was
registered here
gets into a cell: a study's text cannot name a home, which would be a way to have any code run.

>>> from walklearn.studies.origins import import_paths_of, register_walk
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

Homes = Mapping[str, Mapping[str, str]]

_REGISTRIES: dict[str, Registry[Any]] = {
    registry.kind: registry
    for registry in (FAMILIES, LOSSES, DOMAINS, WALKS, UPDATES, GOSSIP, MECHANISMS)
}


# Walks and updates of single shipped studies, by the name of the study.
_PAPER = "walklearn.studies.paper"
_SHIPPED: Mapping[str, Homes] = {
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


def register_walk(name: str, home: str) -> None:
    """Let studies say `walk = name` for a walk of your own.

    It is loaded when it is first used, and workers import it themselves. A class with an argument
    `privacy` takes the keys about releases as "weighted" does.

    Parameters
    ----------
    name
        What studies call it.
    home
        Where it is, written "package.module:Class".

    Examples
    --------
    >>> register_walk("sticky", "my_walks:Sticky")
    >>> import_paths_of({"walk": "sticky"})
    {'walk': {'sticky': 'my_walks:Sticky'}}
    >>> WALKS.remove("sticky")
    """
    WALKS.register_import_path(name, home)


def register_update(name: str, home: str) -> None:
    """Let studies say `update = name` for an update of your own.

    Parameters
    ----------
    name
        What studies call it.
    home
        Where it is, written "package.module:Class".

    Examples
    --------
    >>> register_update("averaged-twice", "my_updates:AveragedTwice")
    >>> import_paths_of({"update": "averaged-twice"})
    {'update': {'averaged-twice': 'my_updates:AveragedTwice'}}
    >>> UPDATES.remove("averaged-twice")
    """
    UPDATES.register_import_path(name, home)


def import_paths_of(*tables: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The import_paths of all that these tables name and that does not come with this package."""
    texts = [text for table in tables for text in _texts(table)]
    import_paths = {
        kind: {name: home for name in texts if (home := registry.import_path_of(name)) is not None}
        for kind, registry in _REGISTRIES.items()
    }
    return {kind: known for kind, known in import_paths.items() if known}


def register_shipped(study: str) -> None:
    """Register the walks and updates that a shipped study brings, if it is one."""
    register_import_paths(_SHIPPED.get(study, {}))


def register_import_paths(import_paths: Homes) -> None:
    """Register in this process what a cell names."""
    for kind, known in import_paths.items():
        for name, home in known.items():
            _REGISTRIES[kind].register_import_path(name, home)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield key  # as in { ball = 10.0 }
            yield from _texts(each)
