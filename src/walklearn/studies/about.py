"""`about.json`: what a results directory says of itself, and whether this version can use it."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from walklearn import __version__
from walklearn.studies.cell import FORMAT

NAME = "about.json"
CURVES = "curves.parquet"  # a figure that was computed; it has no study.toml to say these things:
_OF_CURVES = {"question": str, "note": str}
_OF_ALL = {"study": str, "quick": bool, "started": str, "machine": str, "cells": dict}


class ResultsError(ValueError):
    """A results directory that cannot be used, and what to do."""


def read_about(folder: Path) -> dict[str, Any]:
    """What the directory says; a ResultsError where it is not there, damaged, or another's."""
    file = folder / NAME
    try:
        about = json.loads(file.read_bytes())
        written_by = about["format"], about["walklearn"]
    except FileNotFoundError as error:
        raise ResultsError(f"{folder} holds no results of a study (no {NAME}).") from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ResultsError(f"cannot read {file}: {error!r}") from error
    if written_by != (FORMAT, __version__):
        raise ResultsError(
            f"{folder} was written by walklearn {written_by[1]} (format {written_by[0]}), and "
            f"this is walklearn {__version__} (format {FORMAT}): read it with that version, or "
            "run the study again into another directory."
        )
    if wrong := _wrong(about, (folder / CURVES).is_file()):
        raise ResultsError(
            f"{file} is damaged ({wrong}): delete it and run the study again, which computes what "
            "is missing."
        )
    checked: dict[str, Any] = about
    return checked


def _wrong(about: dict[str, Any], of_curves: bool) -> str:
    """What is wrong with it, in a word or two; nothing where nothing is.

    >>> _wrong({"study": 1}, of_curves=False), _wrong({"study": "mine"}, of_curves=False)
    ('study is no str', 'quick is missing')
    """
    for key, kind in (_OF_ALL | (_OF_CURVES if of_curves else {})).items():
        if key not in about:
            return f"{key} is missing"
        if not isinstance(about[key], kind):
            return f"{key} is no {kind.__name__}"
    try:
        datetime.fromisoformat(about["started"])
    except ValueError:
        return "started is no time"
    names = (
        cell.get("edges") if isinstance(cell, dict) else None for cell in about["cells"].values()
    )
    return (
        "" if all(isinstance(name, str) for name in names) else "cells are not as they were written"
    )
