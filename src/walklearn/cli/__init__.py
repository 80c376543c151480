"""The command line: `walklearn`. Each command is a file that is loaded when it is called.

Exit codes: 0 done; 1 it went wrong on the way; 2 what was asked or given is wrong, or needs an
extra that is not installed; 3 a node ended with a model that some participant did not confirm;
130 Ctrl-C.
"""

from __future__ import annotations

import atexit
import gc
from importlib import import_module
from typing import Any

import click

from walklearn import __version__
from walklearn.cli.user_errors import BadInput
from walklearn.errors import MissingExtraError

# Heading -> command -> one line of help. Each command is in the module of its name.
_SECTIONS = {
    "Learn from your data": {
        "example": "Write files to try the commands on: rows, edges, schema, plan.",
        "train": "Train a model on a file of rows.",
        "schema": "Write a schema of a file's columns, to be filled in.",
        "predict": "Predict with a trained model.",
        "advise": "Recommend walk, noise, laziness and step from public facts.",
        "export": "Hand a trained model to scikit-learn or ONNX.",
    },
    "Take part in a network": {
        "up": "Try it: a network of real node processes on this machine.",
        "plan": "Make the plan that all nodes share, check one, explain it.",
        "node": "Run a node beside its own data: it talks to its neighbours only.",
    },
    "Understand": {
        "demo": "The paper's comparison on a random graph, in under a minute.",
        "reproduce": "The paper's figures and a verdict on every claim.",
        "run": "Run a study of your own: a grid described in a TOML file.",
        "report": "Draw stored results again as one HTML page.",
        "privacy": "Calibrate, compare, plot, attack and audit what nodes release.",
    },
}
_COMMANDS = {name: entry for section in _SECTIONS.values() for name, entry in section.items()}
_EXAMPLES = """\
  walklearn demo
  walklearn train data.csv --target label --out model/
  walklearn predict model/ new.csv --out predictions.csv
  walklearn advise --graph edges.txt --rows 5000 --schema schema.toml --epsilon 3 --delta 1e-5"""


class _Lazy(click.Group):
    """A group that lists its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            from walklearn.wording import closest

            close = closest(name, _COMMANDS)
            if close and not ctx.resilient_parsing:
                ctx.fail(f"No such command {name!r}, did you mean {close!r}?")
            return None
        command = getattr(import_module(f"{__name__}.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _COMMANDS))
        for heading, commands in _SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples"):
            formatter.write(_EXAMPLES + "\n")

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("\nInterrupted.", err=True)
            raise SystemExit(130) from None
        except MissingExtraError as error:
            raise BadInput(str(error)) from error


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="walklearn")
def main() -> None:
    """Train one model over a network of devices with no server.

    The model walks from neighbour to neighbour; each node it visits improves it with its own
    data.
    """
    # All memory is given back at once when the process ends; Python would first look through the
    # modules that a command has loaded for garbage, a tenth of the time that `train` takes.
    atexit.register(gc.freeze)
