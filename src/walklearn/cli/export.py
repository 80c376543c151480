"""`walklearn export`: a trained model for other tools."""

from __future__ import annotations

import io
from pathlib import Path

import click

import walklearn as wl
from walklearn.cli.console import Console, with_console
from walklearn.cli.user_errors import check_new

SUFFIXES = {".onnx": "ONNX", ".joblib": "a scikit-learn estimator"}


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite the file OUT.")
@with_console
def export(model: Path, out: Path, force: bool, console: Console) -> None:
    """Write the model directory MODEL to the file OUT, in the format of its suffix.

    OUT.onnx is an ONNX model, which runs on inference servers and in other languages. OUT.joblib
    is a fitted scikit-learn estimator for joblib.load; load it only if you trust its source, as it
    is a pickle.

    \b
    Examples:
      walklearn export model/ model.onnx
      walklearn export model/ model.joblib
    """
    from walklearn.files.atomic_write import atomic_write

    if out.suffix not in SUFFIXES:
        known = " or ".join(f"{suffix} ({what})" for suffix, what in SUFFIXES.items())
        raise ValueError(f"{out} has an unknown suffix. Use {known}.")
    trained = wl.Model.load(model)
    check_new(out, force)
    if out.suffix == ".onnx":
        content = trained.to_onnx().SerializeToString()
    else:
        estimator, buffer = trained.to_sklearn(), io.BytesIO()
        import joblib  # installed with scikit-learn

        joblib.dump(estimator, buffer)
        content = buffer.getvalue()
    atomic_write(out, content)
    console.document |= {"out": str(out), "format": out.suffix[1:], "bytes": len(content)}
    console.print(f"{out}: {trained!r} as {SUFFIXES[out.suffix]}")
