"""The page: one HTML file with everything in it, drawn from stored results.

Nothing is computed anew and nothing is fetched: scripts and numbers are inside the file, Plotly's
compressed, and its Content-Security-Policy allows only those very scripts, by their hash, and no
network at all. So a
text of a study that looks like a script stays a text, twice over: it is escaped, and it would not
run.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from walklearn import __version__
from walklearn.extras import package
from walklearn.files.atomic_write import atomic_write
from walklearn.studies.report.sections import Section, section
from walklearn.studies.report.verdict_table import SYMBOLS
from walklearn.studies.results import Results

POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)

MANY_VERDICTS = 40  # beyond, the readings of a claim are folded under its tally


def write_report(
    directories: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    path: str | os.PathLike[str],
    shipped: Collection[str] = (),
) -> Path:
    """Draw the stored results of one or several studies as one page.

    The file appears whole or not at all.

    Parameters
    ----------
    directories
        Studies' directories, or directories of such.
    path
        Where to write the page.
    shipped
        The texts of the studies that `walklearn reproduce` runs, which the page then says of
        them.

    Returns
    -------
    Path
        The path written.

    Raises
    ------
    ValueError
        Where a directory cannot be used; the message says what is wrong with it.
    """
    target = Path(path)
    results = [Results.open(found) for found in study_directories(directories)]
    names = [one.about["study"] for one in results]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two of these are results of a study called {min(twice)}; give one")
    sections = [section(one, target.parent, shipped) for one in results]
    command = f"walklearn report {' '.join(one.directory for one in sections)} --out {target.name}"
    content = render(sections, command).encode()
    target.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(target, content)
    return target


def study_directories(
    directories: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
) -> list[Path]:
    """Find the directories of the studies that are meant; ValueError if there are none."""
    if isinstance(directories, str | os.PathLike):
        directories = [directories]
    found: list[Path] = []
    for directory in map(Path, directories):
        if not directory.is_dir():
            raise ValueError(f"{directory} is not a directory; give one that a study was run into")
        if (directory / "about.json").is_file():
            found.append(directory)
            continue
        inside = sorted((file.parent for file in directory.glob("*/about.json")), key=_age)
        if not inside:
            raise ValueError(
                f"{directory} holds no results: no about.json in it nor one level below; give a "
                "directory that walklearn run or reproduce has written"
            )
        found += inside
    return list(dict.fromkeys(found))


def _age(directory: Path) -> tuple[str, Path]:
    """When a study was started, which is the order in which studies appear."""
    return str(Results.open(directory).about["started"]), directory


def render(sections: Sequence[Section], command: str) -> str:
    """Make the text of the page; it says that ``command`` draws it again."""
    jinja2, plotly = (
        package(name, "experiments", "the page needs") for name in ("jinja2", "plotly.offline")
    )
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("walklearn.studies.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}  # and in our order
    templates = files("walklearn.studies.report") / "templates"
    unpacking, drawing, behaviour, style = (
        (templates / name).read_text(encoding="utf-8")
        for name in ("unpack.js", "figures.js", "page.js", "page.css")
    )
    palette = (files("walklearn.plots") / "pages.css").read_text(encoding="utf-8")
    library: str = plotly.get_plotlyjs()
    # In a function of their own the scripts' names don't meet those of the browser.
    script = f'"use strict";\n(async () => {{\n{unpacking}{drawing}{behaviour}}})();\n'
    found = Counter(row.verdict for one in sections for claim in one.claims for row in claim.rows)
    text: str = environment.get_template("page.html").render(
        sections=sections,
        blocks={
            f"{one.name}/{place}": block.plain()
            for one in sections
            for place, block in enumerate(one.blocks)
        },
        library=base64.b64encode(gzip.compress(library.encode(), mtime=0)).decode(),
        script=script,
        policy=POLICY.format(scripts=f"{_fingerprint(library)} {_fingerprint(script)}"),
        style=palette + style,
        symbols=SYMBOLS,
        counts={verdict: found[verdict] for verdict in SYMBOLS},
        folded=sum(found.values()) > MANY_VERDICTS,
        title="walklearn report" + (f": {sections[0].name}" if len(sections) == 1 else ""),
        command=command,
        footing=("walklearn", "seed", "cells finished", "machine"),
        version=__version__,
        now=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
    return text


def _fingerprint(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{digest}'"
