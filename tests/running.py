"""Running the command line and other processes, waiting for them, asking for what they need."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from walklearn.cli import main

PROJECT = Path(__file__).parents[1]
WALKLEARN = [sys.executable, "-m", "walklearn.cli"]
SECONDS = 300  # no test should come near it, however busy the machine


def invoke(*arguments: object) -> Result:
    """The command line in this process, which saves a second of imports."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def invoke_ok(*arguments: object) -> Result:
    """Run the command line in this process, successfully."""
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result


def refusal(*arguments: object) -> str:
    """Return the message of a command with bad input, without line breaks."""
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    return " ".join(result.stderr.split())


def run(*command: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own, with what it said."""
    words = [str(word) for word in command]
    caught = {"capture_output": True, "text": True, "timeout": SECONDS, "check": False}
    return subprocess.run(words, **(caught | options))


def walklearn(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command line as a user runs it."""
    return run(*WALKLEARN, *arguments, **options)


def python(code: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Lines of Python in a new interpreter."""
    return run(sys.executable, "-c", code, *arguments, **options)


@contextmanager
def started(*command: object, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A program that runs meanwhile, and is not left behind whatever becomes of the test."""
    with subprocess.Popen([str(word) for word in command], text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(condition: Callable[[], Any], what: str = "this", seconds: float = 60.0) -> Any:
    """What the condition gives once it is true; the limit only ends what would fail anyway."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.01)
    return found


async def until(condition: Callable[[], Any], seconds: float = 60.0) -> None:
    """The same, while everything else of the loop goes on."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


def missing(what: str) -> None:
    """Skip a test for want of a system package; CI has them all and sets WALKLEARN_NO_SKIPS."""
    pytest.fail(what) if os.environ.get("WALKLEARN_NO_SKIPS") else pytest.skip(what)
