"""The directory of a model: written atomically, and checked when it is read."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from walklearn import __version__
from walklearn.arrays import Arrays, read_npz
from walklearn.files.atomic_write import atomic_directory, atomic_write, no_directory
from walklearn.models.model import Model
from walklearn.models.report import report_of
from walklearn.tables.encoding import Encoding

FORMAT = "walklearn model"
VERSION = 1
FILES = ("model.json", "weights.npz", "ledger.json", "report.md")
_SETTINGS = (
    "loss", "penalty", "target", "classes", "intercept", "iterate", "updates", "walk", "privacy",
    "details",
)  # fmt: skip


class ModelFileError(ValueError):
    """A directory that is no model, is damaged, or comes from a newer walklearn."""


def save(model: Model, path: Path, overwrite: bool) -> None:
    """Write the model to a directory atomically."""
    check_target(path, overwrite)
    with atomic_directory(path.absolute(), replace=True) as fresh:
        for name, content in contents(model).items():
            atomic_write(fresh / name, content)


def check_target(path: Path, overwrite: bool) -> None:
    """Refuse to replace anything but an older model or an empty directory."""
    if not (path.exists() or path.is_symlink()):
        parent = next(parent for parent in path.absolute().parents if parent.exists())
        if not parent.is_dir():
            raise NotADirectoryError(no_directory(path.parent))
        return
    if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
        return
    try:
        _read_header(path)
    except ModelFileError:
        raise FileExistsError(
            f"{path} exists and is not a model, so it is never overwritten. Choose another path."
        ) from None
    if not overwrite:
        raise FileExistsError(
            f"{path} already holds a model. Choose another path, or overwrite it with --force "
            "(in Python: save(..., overwrite=True))."
        )


def contents(model: Model) -> dict[str, bytes]:
    """Return the files of the directory."""
    buffer = io.BytesIO()
    np.savez(buffer, model=model.weights, average=model.average)
    header = {
        "format": FORMAT, "version": VERSION, "walklearn": __version__, "kind": model.kind,
        **{name: getattr(model, name) for name in _SETTINGS},
        "columns": model.encoding.to_dict(), "features": model.encoding.feature_names,
    }  # fmt: skip
    return {
        "weights.npz": buffer.getvalue(),
        "ledger.json": _json(model.ledger),
        "report.md": (model.report or report_of(model)).encode(),
        "model.json": _json(header),
    }


def load(path: Path) -> Model:
    """Read a model directory, and check every part of it."""
    header = _read_header(path)
    try:
        weights = _read_weights(path / "weights.npz")
        return Model(
            weights["model"], weights["average"], columns=Encoding.from_dict(header["columns"]),
            ledger=json.loads((path / "ledger.json").read_text(encoding="utf-8")),
            report=(path / "report.md").read_text(encoding="utf-8"),
            **{name: header[name] for name in _SETTINGS},
        )  # fmt: skip
    except FileNotFoundError as error:
        name = Path(error.filename).name
        raise ModelFileError(f"{path} is incomplete: {name} is missing.") from error
    except KeyError as error:
        raise ModelFileError(f"{path} is damaged: {error} is missing from it.") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise ModelFileError(f"{path} is damaged: {error}") from error


def _read_header(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise ModelFileError(f"{path} does not exist. `walklearn train ... --out {path}` makes it.")
    if not (path / "model.json").is_file():
        raise ModelFileError(
            f"{path} is not a model. A model is a directory with {', '.join(FILES)}."
        )
    try:
        header = json.loads((path / "model.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelFileError(f"{path / 'model.json'} is damaged: {error}") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(f"{path / 'model.json'} does not describe a walklearn model.")
    version = header.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise ModelFileError(
            f"{path} has the model format {version} of walklearn {header.get('walklearn')}, and "
            f"walklearn {__version__} reads formats up to {VERSION}. Upgrade walklearn."
        )
    return header


def _read_weights(path: Path) -> Arrays:
    content = path.read_bytes()
    try:
        return read_npz(content)
    except Exception as error:  # the readers fail on damage in too many ways to list
        raise ValueError(f"{path.name}: {error}") from error


def _json(content: Any) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
