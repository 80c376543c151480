"""`walklearn run`: a study in a TOML file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

import walklearn as wl
from walklearn.cli.console import Console, with_console
from walklearn.cli.data_options import with_options
from walklearn.cli.user_errors import BadInput
from walklearn.wording import plural

MAX_LINES = 40  # of a table of verdicts
MAX_NOTES = 3  # printed for a study without --verbose

# fmt: off
WORKERS = [
    click.option("--engine", type=click.Choice(["local", "ray"]), default="local",
                 show_default=True, help="Run on this machine's cores, or on a Ray cluster."),
    click.option("--address",
                 help="Address of the Ray cluster. Default: a new one on this machine."),
    click.option("--cores", type=click.IntRange(1), help="Number of cores. Default: all."),
]
# fmt: on


@click.command()
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("results"),
              show_default=True, help="Directory in which the study gets its own.")  # fmt: skip
@click.option("--quick", is_flag=True, help="Run the smaller version that the study describes.")
@with_options(WORKERS)
@with_console
def run(study: Path, out: Path, quick: bool, console: Console, **workers: Any) -> None:
    """Run the study in the file STUDY: a grid of graphs, problems, methods and step sizes.

    Each finished cell of the grid is stored in OUT/name-of-the-study. The same command continues
    where an earlier one stopped, and computes no cell twice. See docs/studies.md.

    \b
    Examples:
      walklearn run study.toml
      walklearn run study.toml --quick
      walklearn run study.toml --engine ray --address auto
    """
    from walklearn.studies.paper import findings

    described = wl.studies.Study.read(study)
    results = run_to_end(described.quick() if quick else described, out, console, **workers)
    verdicts = results.verdicts()
    if len(verdicts) > MAX_LINES:  # then one line per claim
        console.print_table(findings.HEADER, findings.tally(results.study.name, verdicts))
    elif not verdicts.empty:  # one line per reading of a claim
        console.print_table(findings.READING_HEADER, findings.lines(verdicts))


def run_to_end(
    study: wl.studies.Study, out: Path, console: Console, **workers: Any
) -> wl.studies.Results:
    """Run a study, judge its claims, and print a summary."""
    from walklearn.studies.pools import WorkerDiedError
    from walklearn.studies.provenance import notes

    cells = len(study.cells())
    console.print(
        f"{study.name}: {plural(cells, 'cell')}, {plural(study.instances, 'instance')} of "
        f"{plural(study.updates, 'update')}" + (" (quick)" if study.is_quick else "")
    )
    folder = out / study.name
    try:
        results = wl.studies.run_study(study, out, **workers)
    except KeyboardInterrupt:
        click.echo(
            f"\nInterrupted: {_finished(folder)} of {cells} cells are stored in {folder}. The same "
            "command continues from there.",
            err=True,
        )
        raise SystemExit(130) from None
    except WorkerDiedError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise BadInput(
            f"cannot write to {folder}: {error.strerror or error}. {_finished(folder)} of {cells} "
            "cells are stored. Free some space, and repeat the command."
        ) from error
    all_notes = notes(results)
    for note in all_notes if console.verbose else all_notes[:MAX_NOTES]:
        console.print(f"Note: {note}")
    if len(all_notes) > MAX_NOTES and not console.verbose:
        console.print(f"Note: … and {len(all_notes) - MAX_NOTES} more with --verbose.")
    console.print(f"Results: {results.directory}")
    console.document.setdefault("studies", {})[study.name] = {
        "results": str(results.directory),
        "cells": cells,
        "quick": study.is_quick,
        "notes": all_notes,
        "verdicts": json.loads(results.verdicts().to_json(orient="records")),
    }
    return results


def _finished(folder: Path) -> int:
    """Return the number of finished cells of the study."""
    try:
        return wl.studies.Results.open(folder).finished_count
    except (wl.studies.ResultsError, OSError):
        return 0
