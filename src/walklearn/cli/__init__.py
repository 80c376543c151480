"""The command line: `walklearn`. Each command is a module that is loaded when it is called.

Exit codes: 0 done; 1 failed while running; 2 bad input or a missing extra; 3 a neighbour did not
confirm a node's final model; 130 Ctrl-C.
"""

from __future__ import annotations

import atexit
import gc
from importlib import import_module
from typing import Any

import click

from walklearn import __version__

# Heading -> command -> one line of help. Each command is in the module of its name.
_SECTIONS = {
    "Learn from your data": {
        "example": "Write example files: rows, edges, a schema and a plan.",
        "train": "Train a model on a file of rows.",
        "schema": "Write a schema template for the columns of a file.",
        "predict": "Predict with a trained model.",
        "advise": "Recommend a walk, noise, laziness and step from public facts.",
        "export": "Convert a trained model to ONNX or scikit-learn.",
    },
    "Take part in a network": {
        "up": "Run a network of real node processes on this machine.",
        "plan": "Make, check and explain the plan that all nodes share.",
        "node": "Create, run and inspect a node of a network.",
    },
    "Understand": {
        "demo": "Compare walks and gossip on a random graph, in about a minute.",
        "reproduce": "Reproduce the paper's figures and judge its claims.",
        "run": "Run your own study: a grid described in a TOML file.",
        "report": "Draw stored results on one HTML page.",
        "privacy": "Calibrate, compare, plot, attack and audit releases.",
    },
}
_COMMANDS = {name: entry for section in _SECTIONS.values() for name, entry in section.items()}


class _Lazy(click.Group):
    """Command group that imports a command only when it is called."""

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

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("\nInterrupted.", err=True)
            raise SystemExit(130) from None


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="walklearn")
def main() -> None:
    """Train one model over a network of devices with no server.

    The model walks from neighbour to neighbour. Each visited node improves it with its own data.

    \b
    Examples:
      walklearn demo
      walklearn train data.csv --target label --out model/
      walklearn predict model/ new.csv --out predictions.csv
      walklearn advise --graph edges.txt --rows 5000 --schema schema.toml --epsilon 3 --delta 1e-5
    """
    # The end of the process frees all memory. Without this, Python would first search the loaded
    # modules for garbage, which takes a tenth of the time of `train`.
    atexit.register(gc.freeze)
