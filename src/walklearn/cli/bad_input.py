"""What was given is wrong: told in its own words, without a traceback, with exit code 2."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click


class BadInput(click.ClickException):
    """A mistake of the caller; the message says where and what to do."""

    exit_code = 2


def plainly(command: Callable[..., None]) -> Callable[..., None]:
    """A wrong value, file or target that cannot be reached is told plainly."""

    @wraps(command)
    def wrapped(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except (ValueError, OSError) as error:
            raise BadInput(str(error)) from error

    return wrapped
