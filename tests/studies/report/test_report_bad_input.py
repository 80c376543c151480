"""Results that cannot be drawn give a message and exit code 2, and no file."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.running import invoke
from walklearn.cli.report import report
from walklearn.studies import Results
from walklearn.studies.paper.figure1 import compute


def drawn(*arguments: object) -> Result:
    return CliRunner().invoke(report, [str(argument) for argument in arguments])


def refused(result: Result, *words: str) -> None:
    assert result.exit_code == 2, result.output
    for word in words:
        assert word in result.output
    assert "Traceback" not in result.output


@pytest.fixture
def copy(results: Results, tmp_path: Path) -> Path:
    return Path(shutil.copytree(results.directory, tmp_path / "everything"))


def change_about(folder: Path, change: Callable[[dict], object]) -> None:
    about = json.loads((folder / "about.json").read_text())
    change(about)
    (folder / "about.json").write_text(json.dumps(about))


def test_a_study_or_a_directory_of_studies(copy: Path) -> None:
    result = drawn(copy)
    assert result.exit_code == 0, result.output
    assert f"Report: {copy / 'report.html'}" in result.output
    assert drawn(copy.parent, "--out", copy.parent / "page.html").exit_code == 0
    assert (copy.parent / "page.html").read_bytes() != b""


def test_not_results(tmp_path: Path) -> None:
    refused(drawn(tmp_path / "nothing"), "nothing", "not a directory")
    refused(drawn(tmp_path), str(tmp_path), "no results", "walklearn run")
    (tmp_path / "file").write_text("")
    refused(drawn(tmp_path / "file"), "not a directory")
    assert not list(tmp_path.glob("*.html"))


def test_results_of_another_version(copy: Path) -> None:
    change_about(copy, lambda about: about.update(walklearn="9.9"))
    (copy / "report.html").write_text("the earlier page")
    refused(drawn(copy), "9.9")
    assert (copy / "report.html").read_text() == "the earlier page"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cells": None}, "cells"),
        ({"cells": {"f00d": 1}}, "cells"),
        ({"study": ["a"]}, "study"),
        ({"quick": "no"}, "quick"),
        ({"started": "yesterday"}, "started"),
    ],
)
def test_invalid_about(copy: Path, change: dict, words: str) -> None:
    change_about(copy, lambda about: about.update(change))
    refused(drawn(copy), "about.json", words, "damaged")
    refused(drawn(copy.parent, "--out", copy.parent / "page.html"), "about.json", words)


@pytest.mark.parametrize("key", ["study", "quick", "started", "machine", "cells"])
def test_incomplete_about(copy: Path, key: str) -> None:
    change_about(copy, lambda about: about.pop(key))
    refused(drawn(copy), "about.json", key)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'"x"', b"null", b"\xff\xfe\x00", b"{}"])
def test_about_that_is_no_table(copy: Path, content: bytes) -> None:
    (copy / "about.json").write_bytes(content)
    refused(drawn(copy), "cannot read", "about.json")


def test_a_computed_figure_without_its_question(tmp_path: Path) -> None:
    folder, _ = compute("fig1a", tmp_path)
    change_about(folder, lambda about: about.pop("question"))
    refused(drawn(folder), "about.json", "question")


def test_no_finished_cell(copy: Path) -> None:
    shutil.rmtree(copy / "cells")
    refused(drawn(copy), "no finished cell", "walklearn run")
    assert not (copy / "report.html").exists()


def test_damaged_results(copy: Path) -> None:
    next((copy / "cells").iterdir()).write_bytes(b"PAR1 not really")
    refused(drawn(copy), "damaged")


def test_where_to_write(copy: Path, tmp_path: Path) -> None:
    refused(drawn(copy, copy), "--out")
    again = shutil.copytree(copy, tmp_path / "again")
    refused(drawn(copy, again, "--out", tmp_path / "page.html"), "everything")
    (tmp_path / "file").write_text("in the way")
    refused(drawn(copy, "--out", tmp_path / "file" / "page.html"), "file")


def test_a_missing_extra_is_named(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    refused(invoke("report", copy), "jinja2", "[experiments]")
    assert not (copy / "report.html").exists()
