"""What was given is wrong: told in its own words, without a traceback, with exit code 2."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import click

# What messages for people who write Python call things, and what the command line does.
_IN_SHELL = {
    "feature_bound": "--feature-bound",
    "max_rows": "--max-rows",
    "total_rows": "--total-rows",
    'protect="node"': "--protect node",
    "max_steps": "--max-steps",
    "another target or another node_column": "another --target or another --node-column",
    "it cannot be dropped: take it out": "leave out --drop",
    "never overwritten: choose another place": "never overwritten: choose another --out",
    "already holds a model: choose another place": "already holds a model: choose another --out",
    "ask to overwrite it (--force, or save(..., overwrite=True))": "overwrite it with --force",
    'keep its largest piece: graphs.as_graph and graphs.from_edges take connected="largest"': (
        "leave all but the largest piece out of the file"
    ),
    ": train with the logistic loss, or use `scores`": ": leave --proba out, or train with --loss "
    "logistic",
    "steps=...": "--steps N",
    " tol,": " --tol,",
    "step_size out, take": "--step-constant out or take",
    ", or pass a bounded domain such as domains.Ball(10.0)": "",
    "(penalty=1.0) or a domain (domains.Ball(10.0))": "(--penalty 0.001)",
    ", or a loss such as losses.SquaredHinge()": "",
    ", or a loss such as losses.Huber(10.0)": "",
    "loss='logistic'": "--loss logistic",
    "epsilon was given without delta": "--epsilon was given without --delta",
    "delta was given without epsilon": "--delta was given without --epsilon",
    "epsilon=3.0, delta=1e-5": "--epsilon 3 --delta 1e-5",
    "Pass nodes=…": "Pass --nodes",
    "Weighted() tells": "--walk weighted tells",
    "leave model_privacy out": "leave --model-noise out",
    "Pass Weighted(privacy=...), use Uniform(), or say Weighted(importance, public=True) if the "
    "importance depends on no node's rows": "Pass --epsilon and --delta too, or --walk uniform",
}


class BadInput(click.ClickException):
    """A mistake of the caller; the message says where and what to do."""

    exit_code = 2


def plainly(command: Callable[..., None]) -> Callable[..., None]:
    """Turn the errors of bad input into plain messages: wrong values, files or privacy targets."""

    @wraps(command)
    def wrapped(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except BrokenPipeError:
            raise  # whoever read has seen enough, as in `walklearn predict … | head`
        except OSError as error:
            raise BadInput(in_shell_words(_of_the_system(error))) from error
        except ValueError as error:
            raise BadInput(in_shell_words(str(error))) from error

    return wrapped


def _of_the_system(error: OSError) -> str:
    """What the operating system refused, in words and without an error number."""
    from walklearn.files.atomic_write import no_directory

    if error.filename is None or error.strerror is None:
        return str(error)
    folder = Path(error.filename).parent
    if isinstance(error, FileNotFoundError | NotADirectoryError) and not folder.is_dir():
        return no_directory(folder)
    return f"{error.filename}: {error.strerror}."


@contextmanager
def told_of_options(source: str) -> Iterator[None]:
    """What is wrong in a text that options made, and that nobody has seen, is told of the option.

    source: what the text is called in messages.
    """
    options = {option.name for option in click.get_current_context().command.params}

    def named(found: re.Match[str]) -> str:
        return f"--{found[1].replace('_', '-')}" if found[1] in options else found[0]

    try:
        yield
    except ValueError as error:
        place = rf"^{re.escape(source)}, line \d+: (?:privacy\.)?(\w+)"
        raise ValueError(re.sub(place, named, str(error))) from error


def in_shell_words(message: str) -> str:
    """Return a message about parameters in terms of options; keys of a file keep their names.

    >>> in_shell_words("Raise max_steps or tol, or say steps=... if so many are enough.")
    'Raise --max-steps or --tol, or say --steps N if so many are enough.'
    >>> in_shell_words("plan.toml, line 23: privacy.feature_bound is missing.")
    'plan.toml, line 23: privacy.feature_bound is missing.'
    """
    if re.match(r".*\.toml, line \d+: ", message):
        return message
    names = "|".join(map(re.escape, _IN_SHELL))
    return re.sub(rf"(?<!\w\.)(?:{names})", lambda found: _IN_SHELL[found[0]], message)
