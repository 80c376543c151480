"""`walklearn predict`: predictions of a trained model."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from walklearn.cli.console import Console, csv_text, with_console
from walklearn.cli.data_options import DELIMITER, with_options
from walklearn.cli.user_errors import check_new


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path),
              help="CSV file to write. Default: print the predictions.")  # fmt: skip
@click.option("--proba", is_flag=True, help="Add the probability of each class.")
@with_options([DELIMITER])
@click.option("--force", is_flag=True, help="Overwrite the file OUT.")
@with_console
def predict(
    model: Path, data: Path, out: Path | None, proba: bool, delimiter: str | None, force: bool,
    console: Console,
) -> None:  # fmt: skip
    """Predict each row of the file DATA with the model in the directory MODEL.

    DATA needs the columns that the model was trained with, in any order; other columns are
    ignored. The output is CSV with a line per row. If DATA also has the target, the accuracy or R²
    is printed on standard error.

    \b
    Examples:
      walklearn predict model/ new.csv
      walklearn predict model/ new.csv --proba --out predictions.csv
    """
    import numpy as np

    from walklearn.cli.data_warnings import unknown_labels
    from walklearn.models import Model
    from walklearn.models.score import score_of
    from walklearn.tables import DataError, read_table
    from walklearn.wording import plural

    if out is not None and out.suffix not in ("", ".csv", ".txt"):
        raise ValueError(f"{out} must end in .csv, because predictions are written as CSV.")
    trained = Model.load(model)
    table = read_table(data, delimiter=delimiter, text=trained.encoding.text_columns)
    scores = trained.scores(table)
    predicted = trained.decide(scores)
    columns: dict[str, list[Any]] = {trained.target: predicted.tolist()}
    if proba:
        shares = trained.probabilities(scores)
        names = trained.classes or ()
        columns |= {f"P({name})": shares[:, at].tolist() for at, name in enumerate(names)}
    text = csv_text(columns, zip(*columns.values(), strict=True))
    if out is None:
        console.output(text, predictions=columns)
    else:
        from walklearn.files.atomic_write import atomic_write

        check_new(out, force)
        atomic_write(out, text.encode())
        console.document["out"] = str(out)
        console.log(f"{out}: {plural(len(predicted), 'prediction')}.")
    console.document["rows"] = len(predicted)
    if trained.target in table:
        with suppress(DataError):  # the target column of new rows may be empty
            wrong = unknown_labels(table, trained.target, np.array(trained.classes or ()))
            if wrong is not None:
                console.note(f"the predictions cannot be scored. {wrong}")
                return
            score = score_of(trained.kind, predicted, table[trained.target])
            console.document["score"] = score._asdict()
            console.log(f"{data}: {score}")
