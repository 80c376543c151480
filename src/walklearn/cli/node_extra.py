"""Decorator of the node commands: it checks their extra and reports their errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from walklearn.cli.console import with_console
from walklearn.cli.user_errors import BadInput
from walklearn.extras import extra


def with_node_extra(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command with `with_console`, and also report errors of nodes as user errors.

    If a package is missing, the error names the extra that installs it.
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
        raise click.ClickException(f"the disk failed: {error}") from error
