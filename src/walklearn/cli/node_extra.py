"""Shared parts of the commands about nodes: the extra that they need, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from walklearn.cli.console import with_console
from walklearn.cli.user_errors import BadInput
from walklearn.extras import extra


def with_node_extra(command: Callable[..., None]) -> Callable[..., None]:
    """Name the extra of a missing package, and report errors of the store as user errors.

    The rest is that of every command (`with_console`).
    """
    return _node_errors()(with_console(command))


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
