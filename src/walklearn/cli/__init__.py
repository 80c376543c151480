"""The command line: `walklearn`. Each command is a file that is loaded when it is called."""

from __future__ import annotations

from importlib import import_module

import click

from walklearn import __version__

# Command -> (its module in this package, one line for the overview).
_COMMANDS = {
    "privacy": ("privacy", "Calibrate, compare, plot, attack and audit what nodes release."),
    "demo": ("demo", "The paper's comparison on a random graph, in under a minute."),
}


class _Lazy(click.Group):
    """A group that lists its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command = getattr(import_module(f"{__name__}.{_COMMANDS[name][0]}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="walklearn")
def main() -> None:
    """Train one model over a network of devices with no server.

    The model walks from neighbour to neighbour; each node it visits improves it with its own
    data.

    Example: walklearn demo
    """
