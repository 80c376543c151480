"""What all commands about nodes share: the extra they need, and how their errors are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from walklearn.cli.console import talking
from walklearn.cli.user_errors import BadInput
from walklearn.extras import extra


def with_node_extra(command: Callable[..., None]) -> Callable[..., None]:
    """Name the extra that brings a missing package, and tell errors of the store plainly.

    What is not about nodes alone is that of every command (`talking`).
    """
    return _node_errors()(talking(command))


@contextmanager
def _node_errors() -> Iterator[None]:
    with extra("node", "nodes need"):
        from walklearn.node.disk.database import DiskError, StoreError
        from walklearn.node.process.control import NotAnsweringError, NotRunningError
    try:
        yield
    except (StoreError, NotRunningError, NotAnsweringError) as error:
        raise BadInput(str(error)) from error
    except DiskError as error:
        raise click.ClickException(f"the disk fails: {error}") from error
