"""`walklearn completion`: what the shell needs to complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from walklearn.cli.console import Talk, talking


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
@talking
def completion(ctx: click.Context, shell: str, talk: Talk) -> None:
    """Print a script that completes commands and options with the Tab key.

    \b
    bash: walklearn completion bash >> ~/.bashrc
    zsh:  walklearn completion zsh >> ~/.zshrc
    fish: walklearn completion fish > ~/.config/fish/completions/walklearn.fish

    Then open a new shell.
    """
    found = get_completion_class(shell)
    assert found is not None
    whole = ctx.find_root().command
    script = found(whole, {}, "walklearn", "_WALKLEARN_COMPLETE").source()
    talk.give(script, shell=shell, script=script)
