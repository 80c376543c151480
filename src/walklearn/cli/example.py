"""`walklearn example`: files of five hospitals, to try the commands on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from walklearn.cli.console import Console, csv_text, with_console

TARGET, CLASSES = "diagnosis", ("benign", "malignant")
ROWS_OF = {"oslo": 120, "lima": 100, "cairo": 80, "osaka": 60, "quebec": 40}
EDGES = ("oslo lima", "lima cairo", "cairo osaka", "osaka quebec", "quebec oslo", "lima osaka")
TEST_ROWS = 100  # of the 569 patients; those in no other file are published
_SCHEMA = """\
# The columns to learn from, and their public scales. The scales come from the {count} patients in
# published.csv, who are in no hospital's file.
"""
_NEXT = """\
{folder} has the patients of {count} hospitals: patients.csv (all patients, with their site), sites/
(one file per hospital), test.csv, edges.txt, and the public files published.csv, schema.toml and
plan.toml. Next:

  cd {folder}
  walklearn train patients.csv --target diagnosis --node-column site --graph edges.txt \\
      --test test.csv --out model/
  walklearn predict model/ test.csv --out predictions.csv
  walklearn train patients.csv --target diagnosis --node-column site --graph edges.txt \\
      --test test.csv --schema schema.toml --task classification --epsilon 3 --delta 1e-5 \\
      --out private/
  walklearn plan check plan.toml --data sites/oslo.csv
  walklearn node init nodes/oslo --plan plan.toml --data sites/oslo.csv

The commands after node init: docs/network.md."""


@click.command()
@click.argument("name", type=click.Choice(["hospitals"]))
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path, file_okay=False),
                default=None, required=False)  # fmt: skip
@with_console
def example(name: str, folder: Path | None, console: Console) -> None:
    """Write the example NAME to DIR: rows of each site, edges, a schema and a plan.

    The patients are real: they come from scikit-learn's breast cancer data. 500 of them are
    assigned to hospitals at random, and 69 serve as published data.

    \b
    Examples:
      walklearn example hospitals
    """
    from walklearn.cli.plan import plan_from

    folder = Path(name) if folder is None else folder
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty. Choose another directory.")
    features, rows = _patients()
    (folder / "sites").mkdir(parents=True, exist_ok=True)
    header = [*features, TARGET]
    test, rows = rows[:TEST_ROWS], rows[TEST_ROWS:]
    _write(folder / "test.csv", csv_text(header, test))
    owned = list[list[Any]]()
    for site, count in ROWS_OF.items():
        rows_of_site, rows = rows[:count], rows[count:]
        _write(folder / "sites" / f"{site}.csv", csv_text(header, rows_of_site))
        owned += [[site, *row] for row in rows_of_site]
    _write(folder / "patients.csv", csv_text(["site", *header], owned))
    _write(folder / "published.csv", csv_text(header, rows))
    _write(folder / "edges.txt", "\n".join(EDGES) + "\n")
    _write(folder / "schema.toml", _schema(features, rows))
    plan = plan_from(
        schema=folder / "schema.toml", graph=str(folder / "edges.txt"), target=TARGET,
        classes=",".join(CLASSES), rows=len(owned), epsilon=3.0, delta=1e-5, protect="rows",
        penalty=1e-3, name="hospitals",
    )  # fmt: skip
    _write(folder / "plan.toml", plan)
    console.document |= {"folder": str(folder), "sites": ROWS_OF}
    console.print(_NEXT.format(folder=folder, count=len(ROWS_OF)))


def _patients() -> tuple[list[str], list[list[Any]]]:
    """Return the names of ten features, and all patients in random order, the diagnosis last."""
    import numpy as np

    from walklearn.extras import extra

    with extra("sklearn", "the example's data come with"):
        from sklearn.datasets import load_breast_cancer
    data = load_breast_cancer()
    names = [str(name).removeprefix("mean ").replace(" ", "_") for name in data.feature_names[:10]]
    labels = [str(data.target_names[target]) for target in data.target]
    order = np.random.default_rng(1).permutation(len(labels))
    return names, [[*data.data[at, :10].tolist(), labels[at]] for at in order]


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="")


def _schema(features: Sequence[str], published: Sequence[Sequence[Any]]) -> str:
    """Return the schema of the example, with the public scales of published rows."""
    import numpy as np

    numbers = np.array([row[:-1] for row in published])
    scales = zip(features, numbers.mean(axis=0), numbers.std(axis=0), strict=True)
    tables = [f"[{name}]\ncentre = {c:.3g}\nspread = {s:.3g}\n" for name, c, s in scales]
    return "\n".join([_SCHEMA.format(count=len(published)), *tables])
