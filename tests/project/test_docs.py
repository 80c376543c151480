"""What README and docs show is what happens.

The blocks of a page run one after the other in an empty directory: `python` is executed, the
commands of a `console` block are run, those of a `sh` block are checked against the command line
but not run (`docs/run_blocks.py` runs all of README and docs/start.md). A `text` block is what the
Python block before it prints, or how it fails; after a command of a `console` block comes what it
prints. In both, ... stands for anything.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import inspect
import io
import itertools
import json
import re
import shlex
import sys
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import matplotlib as mpl
import pytest
from click.testing import CliRunner

import walklearn as wl
from tests.running import PROJECT, run
from walklearn.cli import main
from walklearn.objectives.linear.losses import LOSSES
from walklearn.privacy import MECHANISMS
from walklearn.updates import UPDATES
from walklearn.walks import WALKS

DOCS = PROJECT / "docs"
PAGES = [PROJECT / "README.md", *sorted(DOCS.glob("*.md"))]
NOTEBOOKS = sorted(DOCS.glob("notebooks/*.ipynb"))
BLOCK = re.compile(r"^```(python|console|sh|text)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)

_checker = doctest.OutputChecker()
_options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def name_of(page: Path) -> str:
    return page.name


def blocks_of(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=name_of)
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    for registry in (WALKS, UPDATES, LOSSES, MECHANISMS):  # other tests may use the pages' names
        for content in ("_entries", "_import_paths"):
            monkeypatch.setattr(registry, content, dict(getattr(registry, content)))
    names: dict[str, object] = {}
    blocks = blocks_of(page)
    for (kind, content), (following, expected) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if kind == "python":
            happened = outcome(content, names, page)
            if following == "text":
                assert_same(happened, expected)
            else:
                assert not FAILURE.match(happened), happened
        elif kind == "console":
            for command, shown in commands_of(content):
                assert_same(output_of(command), shown)
        elif kind == "sh":
            for command in re.split(r"(?<!\\)\n|&&", content):
                check_command(command)


FAILURE = re.compile(r"^\w+(Error|Warning): ", flags=re.MULTILINE)


def outcome(code: str, names: dict[str, object], page: Path) -> str:
    """What the code prints, and the error that ends it if there is one."""
    printed = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(printed):
        warnings.simplefilter("error")
        try:
            exec(compile(code, str(page), "exec"), names)
        except Exception as error:
            printed.write(f"{type(error).__name__}: {error}\n")
    return printed.getvalue()


def assert_same(happened: str, expected: str) -> None:
    assert _checker.check_output(expected, happened, _options), f"{expected}\n--- but:\n{happened}"


def commands_of(content: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block, with what should come after it."""
    _, *pieces = re.split(r"^\$ ((?:.*\\\n)*.*)\n", content, flags=re.MULTILINE)
    assert pieces, content
    yield from zip(pieces[::2], pieces[1::2], strict=True)


def output_of(command: str) -> str:
    program, *arguments = words_of(command)
    assert program == "walklearn", command
    return CliRunner().invoke(main, arguments, prog_name="walklearn").output


def words_of(command: str) -> list[str]:
    return shlex.split(command.replace("\\\n", " "), comments=True)


def check_command(command: str) -> None:
    """A command that begins with walklearn has subcommands, options and values that exist."""
    words = words_of(command)
    if not words or words[0] != "walklearn":
        return
    # What is for the shell: where output goes, that it goes on in the background.
    words = list(itertools.takewhile(lambda word: not re.match(r"\d?[<>&|]", word), words))
    found, arguments = main, words[1:]
    context = click.Context(main, info_name="walklearn")
    while isinstance(found, click.Group):
        name, found, arguments = found.resolve_command(context, arguments)
        assert found is not None
    found.make_context(name, arguments, parent=context)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages as a browser gets them; building runs the notebooks."""
    folder = tmp_path_factory.mktemp("site")
    built = run(
        sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-E", "-j", "2",
        "-d", folder / "doctrees", DOCS, folder / "html", timeout=600,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "html"


def test_pages_build_without_warnings(site: Path) -> None:
    for page in DOCS.glob("**/*.md"):
        assert (site / page.relative_to(DOCS)).with_suffix(".html").exists(), page


def test_notebooks_ran_and_show_what_they_drew(site: Path) -> None:
    assert len(NOTEBOOKS) == 2
    for notebook in NOTEBOOKS:
        page = (site / "notebooks" / notebook.name).with_suffix(".html").read_text("utf-8")
        assert page.count("data:image/png;base64") >= 2


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=name_of)
def test_notebooks_are_kept_without_outputs(notebook: Path) -> None:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    for cell in code:
        assert cell["outputs"] == []
        assert cell["execution_count"] is None


def test_reference_has_every_public_name(site: Path) -> None:
    inventory = zlib.decompress((site / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode()
    known = {line.split()[0] for line in inventory.splitlines()}
    # These are under graphs, walks and updates.
    elsewhere = {
        f"walklearn.{name}" for name in ("DisconnectedGraphError", "Graph", "Walk", "Update")
    }
    public = {f"walklearn.{name}": getattr(wl, name) for name in wl.__all__}
    for name, module in list(public.items()):
        if inspect.ismodule(module):  # shown where it is: walklearn.objectives.linear.losses
            public[module.__name__] = public.pop(name)
            names = getattr(module, "__all__", ())
            public |= {f"{module.__name__}.{name}": getattr(module, name) for name in names}
    shown = {
        name for name, value in public.items()
        if inspect.ismodule(value) or inspect.isclass(value) or inspect.isroutine(value)
    }  # fmt: skip
    # A name that a package passes on is shown at the top, or where it is defined.
    passed_on = {
        name for name in shown if not inspect.ismodule(value := public[name])
        and {f"walklearn.{value.__name__}", f"{value.__module__}.{value.__qualname__}"} & known
    }  # fmt: skip
    assert not shown - elsewhere - known - passed_on


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pictures_can_be_drawn_anew(tmp_path: Path) -> None:
    pictures = loaded(DOCS / "pictures.py")
    for draw in pictures.PICTURES:
        draw(tmp_path, **({"steps": 2} if draw is pictures.walk else {}))
    made = {path.name for path in tmp_path.iterdir()}
    # These take a study or a network, or are drawn by hand.
    others = {"comparison.png", "panel.svg", "network_page.png", "visit.svg"}
    assert made | others == {path.name for path in DOCS.glob("pictures/*")}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), link


def test_messages_that_are_only_quoted_are_in_the_source() -> None:
    """A text block that no Python block precedes is a message of some file."""
    blocks = blocks_of(DOCS / "troubleshooting.md")
    quoted = [
        content
        for (before, _), (kind, content) in itertools.pairwise(blocks)
        if kind == "text" and before != "python"
    ]
    assert quoted
    sources = [path.read_text(encoding="utf-8") for path in PROJECT.glob("src/**/*.py")]
    for message in quoted:
        # Which package is missing and which extra has it is put in by files.extras.
        message = re.sub(r" \S+ In the clone of walklearn: pip install '\.\[\w+\]'", "", message)
        parts = [" ".join(part.split()) for part in message.split("...")]
        assert any(all(part in source for part in parts) for source in sources), message


def test_blocks_are_run_as_a_newcomer_would(tmp_path: Path) -> None:
    """What the runner makes of a page: names last for a section, tests are left out."""
    runner = loaded(DOCS / "run_blocks.py")
    page = tmp_path / "page.md"
    page.write_text(
        "## One\n```sh\nmkdir a && cd a\n```\n```python\nx = 1\n```\n```text\nno\n```\n"
        "```python\nprint(x)\n```\n## Two\n```console\n$ touch b \\\n  c\nsaid\n$ ls\n```\n"
        "```sh\npip install -e . && python -m pytest\n```\n```sh\npip install .\n```\n"
    )
    blocks = list(runner.blocks_of(page))
    assert [block.line for block in blocks] == [3, 6, 12, 16, 25]
    assert "x = 1\nprint(x)" in blocks[2].commands
    assert blocks[3].commands == "touch b \\\n  c\nls\n"
    assert [block.installs for block in blocks] == [False, False, False, False, True]
    assert all(
        any(block.installs for block in runner.blocks_of(PROJECT / page)) for page in runner.PAGES
    )


def test_commands_that_do_not_exist_are_found_out() -> None:
    check_command("walklearn privacy compare --epsilon 3 --delta 0.03 --bounds 1 50")
    for wrong in ("walklearn prvacy", "walklearn privacy compare --epsilom 3"):
        with pytest.raises(click.UsageError):
            check_command(wrong)
