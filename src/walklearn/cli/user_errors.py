"""Errors of the user: a message without a traceback, and exit code 2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from walklearn.errors import CapabilityError, InputError, MissingExtraError


class BadInput(click.ClickException):
    """An error of the user."""

    exit_code = 2


@contextmanager
def report_user_errors() -> Iterator[None]:
    """Report wrong values, files and missing extras without a traceback."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader closed the pipe, as in `walklearn predict … | head`
    except OSError as error:
        raise BadInput(_of_the_system(error)) from error
    except (ValueError, CapabilityError, MissingExtraError) as error:
        raise BadInput(str(error)) from error


def _of_the_system(error: OSError) -> str:
    """Return the message of an error of the operating system, without its number."""
    from walklearn.files.atomic_write import no_directory

    if error.filename is None or error.strerror is None:
        return f"{error.strerror}." if error.strerror else str(error)
    folder = Path(error.filename).parent
    if isinstance(error, FileNotFoundError | NotADirectoryError) and not folder.is_dir():
        return no_directory(folder)
    return f"{error.filename}: {error.strerror}."


@contextmanager
def name_options_in_errors() -> Iterator[None]:
    """Replace the key by the option in errors about a plan that was made from options."""
    options = {option.name for option in click.get_current_context().command.params}
    try:
        yield
    except InputError as error:
        name = error.key.rpartition(".")[2]
        if name not in options:
            raise
        raise InputError(error.problem, f"--{name.replace('_', '-')}") from error


def check_new(path: Path, force: bool) -> None:
    """Refuse to overwrite a file without --force."""
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists. Choose another file, or overwrite it with --force.")
