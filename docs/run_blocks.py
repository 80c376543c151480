"""Run every block of README and docs/start.md as a newcomer would; the first that fails ends it.

    python docs/run_blocks.py                  # both
    python docs/run_blocks.py docs/start.md    # that one

A block that installs (`pip install …`) is run in a copy of the clone, in a new virtual environment.
The blocks after it are run with what it installed, in a directory that was empty at the top of the
page: `sh` and the commands of `console` blocks in one shell, so that `cd` lasts, and `python` ones
with the names of their section. The test command is left to whoever runs the tests.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/start.md")
NOT_COPIED = (".*", "__pycache__", "build", "dist", "results", "walklearn-*")
BLOCK = re.compile(r"^```(python|console|sh)\n(.*?)^```$|^## ", flags=re.DOTALL | re.MULTILINE)
MAX_SECONDS = 20 * 60  # for a page, on a machine with much else to do


class Block(NamedTuple):
    """Commands of a page, and the line they begin on."""

    line: int
    commands: str

    @property
    def installs(self) -> bool:
        """Whether it needs the clone, and a new environment."""
        return self.commands.lstrip().startswith("pip install")


def blocks_of(page: Path) -> Iterator[Block]:
    """The blocks of a page as commands of a shell."""
    text, section = page.read_text(encoding="utf-8"), ""
    for found in BLOCK.finditer(text):
        kind, content = found.groups()
        line = text.count("\n", 0, found.start()) + 2
        if kind is None:
            section = ""  # a heading: names of Python do not outlive it
        elif kind == "python":
            section += content
            yield Block(line, f"python - <<'END OF PYTHON'\n{section}\nEND OF PYTHON\n")
        elif kind == "console":
            commands = re.findall(r"^\$ ((?:.*\\\n)*.*\n)", content, flags=re.MULTILINE)
            yield Block(line, "".join(commands))
        elif "pytest" not in content:
            yield Block(line, content)


class Newcomer:
    """A copy of the clone, and an environment for each way of installing it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._clone = folder, folder / "clone"
        shutil.copytree(PROJECT, self._clone, ignore=shutil.ignore_patterns(*NOT_COPIED))
        self._environments: dict[str, Path] = {}

    def follow(self, name: str) -> None:
        """Run the blocks of a page of the clone from top to bottom."""
        page = self._clone / name
        empty = Path(tempfile.mkdtemp(prefix=f"{page.stem}-", dir=self._folder))
        script = [f"cd {shlex.quote(str(empty))}"]
        for block in blocks_of(page):
            script.append(f"echo; echo '== {page.name}, line {block.line}'")
            script += self._installing(block) if block.installs else [block.commands]
        self._run("\n".join(script), page)

    def _installing(self, block: Block) -> Iterator[str]:
        known = block.commands in self._environments
        place = self._environments.setdefault(
            block.commands, self._folder / f"environment-{len(self._environments)}"
        )
        if not known:
            yield f"{shlex.quote(sys.executable)} -m venv {shlex.quote(str(place))}"
        yield f'export PATH={shlex.quote(str(place / "bin"))}:"$PLAIN_PATH"'
        if not known:
            yield f"pushd {shlex.quote(str(self._clone))} > /dev/null"
            yield block.commands.replace("pip install", "pip install -q", 1)
            yield "popd > /dev/null"

    def _run(self, script: str, page: Path) -> None:
        """In a session of its own, so that what is left in the background can be ended."""
        path = os.environ["PATH"]
        state = {"PLAIN_PATH": path, "XDG_STATE_HOME": str(self._folder / "state")}
        others = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        shell = subprocess.Popen(
            ["bash", "-e", "-o", "pipefail", "-c", script],
            env=others | state, start_new_session=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            code = shell.wait(MAX_SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):  # nothing was left
                os.killpg(shell.pid, signal.SIGKILL)
        if code:
            raise SystemExit(f"{page.name}: the last block above ended with exit code {code}.")


def main() -> None:
    """Run the pages that were named, or both, and say how long they took."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was begun is ended
    with tempfile.TemporaryDirectory(prefix="newcomer-") as folder:
        newcomer = Newcomer(Path(folder))
        for page in sys.argv[1:] or PAGES:
            begin = time.monotonic()
            newcomer.follow(page)
            seconds = time.monotonic() - begin
            print(f"\n{page}: every block ran, in {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
