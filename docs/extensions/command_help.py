"""The help of every command, as a directive: `.. commands::`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from docutils import nodes
from docutils.parsers.rst import Directive

from walklearn.cli import main

WIDTH = 88


class Commands(Directive):
    """A section for each command, with what its --help prints."""

    def run(self) -> list[nodes.Node]:
        """Build the sections."""
        return [_section(name, text) for name, text in _helps(main, "walklearn", None)]


def _helps(
    command: click.Command, name: str, parent: click.Context | None
) -> Iterator[tuple[str, str]]:
    context = click.Context(
        command,
        info_name=name.split()[-1],
        parent=parent,
        max_content_width=WIDTH,
        terminal_width=WIDTH,
    )
    if not isinstance(command, click.Group):
        yield name, command.get_help(context)
        return
    for each in command.list_commands(context):
        found = command.get_command(context, each)
        assert found is not None
        yield from _helps(found, f"{name} {each}", context)


def _section(name: str, text: str) -> nodes.section:
    section = nodes.section(ids=[nodes.make_id(name)], names=[name])
    section += nodes.title(text=name)
    section += nodes.literal_block(text, text, language="text")
    return section


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("commands", Commands)
    return {"version": "1", "parallel_read_safe": True}
