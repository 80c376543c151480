"""`walklearn reproduce` from end to end: every shipped study, shrunk to a few updates."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import numpy as np
import pandas as pd
import pytest
from click.testing import Result

from tests.running import invoke, python, walklearn
from walklearn.studies import Results, Study, run_study
from walklearn.studies.paper import catalogue, figure1, findings
from walklearn.studies.paper.catalogue import COMPUTED, NAMES, STUDIES
from walklearn.studies.paper.panels import PICTURES
from walklearn.studies.report.sections import StoredResults
from walklearn.studies.tables import PROVENANCE

real_study = catalogue.shipped_study

#: Figure 2b is Figure 2a with another variance.
RUN = [name for name in NAMES if name != "fig2b"]


def tiny(name: str) -> Study:
    """The same kinds of cells and all claims, but fewer: 2 instances of 40 updates, 2 constants."""
    study = real_study(name)
    steps = {
        key: {**table, "constants": table["constants"][1:5:3]} if "constants" in table else table
        for key, table in study.step_sizes.items()
    }
    graphs = {key: table for key, table in study.graphs.items() if name != "methods" or key == "er"}
    kept = {"methods": lambda t: t.get("variance") == 10.0,
            "map": lambda t: t["spread"] in (0.0, 1.0) and t["noise"] in (0.0, 0.1),
            "bounds": lambda t: "aggregate" in t,
            "real-data": lambda t: t["data"] == "diabetes"}.get(name, bool)  # fmt: skip
    problems = {key: table for key, table in study.problems.items() if kept(table)}
    methods = {
        key: table
        for key, table in study.methods.items()
        if name != "price" or table.get("epsilon", 1) in (1, 32)
    }
    quick = {"instances": 2, "updates": 40, "records": 4, "tuning_instances": 1}
    return replace(study, graphs=graphs, problems=problems, methods=methods, step_sizes=steps,
                   quick_changes=quick)  # fmt: skip


@pytest.fixture(scope="module")
def shrunk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "shipped_study", tiny)
        patch.setattr(figure1, "CALIBRATED_AT", np.array([1.0, 4.0, 9.0]))
        yield


def call(*arguments: str | Path) -> Result:
    return invoke("reproduce", *arguments)


@pytest.fixture(scope="module")
def done(shrunk: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    out = tmp_path_factory.mktemp("reproduce") / "results"
    result = call(*RUN, "--quick", "--cores", "1", "--out", out)
    assert result.exit_code == 0, result.output
    return out, result


@pytest.mark.parametrize("name", RUN)
def test_each_has_two_picture_files(done: tuple[Path, Result], name: str) -> None:
    folder = done[0] / name
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    picture = (folder / f"{name}.svg").read_text(encoding="utf-8")
    assert picture.rstrip().endswith("</svg>")
    assert len(picture) > 20_000  # axes alone take less


@pytest.mark.parametrize("name", [name for name in RUN if name in STUDIES])
def test_each_claim_has_its_verdicts(done: tuple[Path, Result], name: str) -> None:
    out, result = done
    results = Results.open(out / name)
    verdicts = results.verdicts()
    assert set(verdicts["claim"]) == {claim.number for claim in results.study.claims}
    assert set(verdicts["verdict"]) == {"undecided"}  # two instances decide nothing
    assert (verdicts.groupby("claim")["replicates"].max() == 2).all()
    for text in verdicts["text"].unique():
        assert text in result.output


@pytest.mark.parametrize("name", COMPUTED)
def test_figure_1_is_kept_as_points(done: tuple[Path, Result], name: str) -> None:
    points = pd.read_parquet(done[0] / name / "curves.parquet")
    assert {"panel", "series", "x", "y", "x_label", "y_label", "y_log"} <= set(points)
    assert points["panel"].nunique() == 2


def test_every_row_of_every_table_has_its_provenance(done: tuple[Path, Result]) -> None:
    files = sorted(done[0].rglob("*.parquet"))
    assert {file.parent.name for file in files} >= {"cells", "facts", "nodes", "edges", *RUN}
    for file in files:
        rows = pd.read_parquet(file)
        assert not rows[list(PROVENANCE)].isna().any(axis=None), file


def test_the_page_shows_everything(done: tuple[Path, Result]) -> None:
    page = (done[0] / "report.html").read_text(encoding="utf-8")
    for name in RUN:
        assert name in page
    assert "The weighted walk beats the uniform one at v = 10" in page


def test_a_page_of_stored_results_is_drawn_by_a_new_process(done: tuple[Path, Result]) -> None:
    """A new process knows the walks and updates of a single study."""
    page = done[0].parent / "again.html"
    for name in ("fig3", "memory-private"):
        result = walklearn("report", done[0] / name, "--out", page)
        assert result.returncode == 0, result.stderr
        assert sections(page) == [name]


def test_panels_of_predictions_have_a_colour_per_graph_and_their_correlations(
    done: tuple[Path, Result],
) -> None:
    stored = StoredResults(Results.open(done[0] / "bounds"), done[0])
    blocks = PICTURES["bounds"](stored).blocks
    study = stored.results.study
    assert len({block.caption for block in blocks}) == 1
    for block in blocks:
        assert f"{study.instances} instances" in block.caption
        assert [block.style(graph) for graph in study.graphs] == list(range(len(study.graphs)))
        assert len(block.figures) == len(study.methods) * len(study.step_sizes)
        assert all("ρ = " in figure.title for figure in block.figures)


def test_stored_results_are_read_by_a_new_process(done: tuple[Path, Result]) -> None:
    code = """
        import sys
        from walklearn.studies import Results
        from walklearn.studies.paper import figure1
        from walklearn.updates import UPDATES
        from walklearn.walks import WALKS
        print("unclamped" in WALKS, Results.open(sys.argv[1]).study.name, "unclamped" in WALKS)
        print("noisy-sgd" in UPDATES, Results.open(sys.argv[2]).study.name, "noisy-sgd" in UPDATES)
    """
    result = python(dedent(code), done[0] / "fig3", done[0] / "memory-private")
    assert result.stdout.split() == ["False", "fig3", "True", "False", "memory-private", "True"]


def test_findings_have_a_table_for_each_target_and_cost(done: tuple[Path, Result]) -> None:
    names = ("communication", "methods", "slope")
    text = findings.markdown(Results.open(done[0] / name) for name in names)
    heads = re.findall(r"^\| (\w+) to ", text, flags=re.MULTILINE)
    assert heads == 2 * ["updates"] + 3 * ["updates", "time"]
    assert text.count("| finito-16 |") == 6  # a row: here settings are fewer than methods


def test_finished_cells_are_not_computed_again(done: tuple[Path, Result], shrunk: None) -> None:
    out, _ = done
    cells = sorted((out / "slope" / "cells").iterdir())
    before = [cell.stat().st_mtime_ns for cell in cells]
    result = call("slope", "--quick", "--cores", "1", "--out", out, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["studies"]["slope"]["verdicts"]
    assert [cell.stat().st_mtime_ns for cell in cells] == before


def sections(page: Path) -> list[str]:
    return re.findall(r'id="study-([^"]+)"', page.read_text(encoding="utf-8"))


def named(name: str) -> Study:
    """A study that is not shipped."""
    study = tiny("slope").quick()
    return replace(study, name=name, text=study.text.replace('name = "slope"', f'name = "{name}"'))


def test_the_page_of_one_keeps_what_is_stored_beside_it(shrunk: None, tmp_path: Path) -> None:
    for name in ("mine", "slope"):
        run_study(named(name), tmp_path, cores=1)
    Results.prepare(tmp_path / "begun", named("begun"))
    shutil.copytree(tmp_path / "slope", tmp_path / "slope-copy")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "about.json").write_text('{"format": 1, "walklearn": "0.0.1"}')
    result = call("fig1a", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert sections(tmp_path / "report.html") == ["fig1a", "slope", "mine"]
    assert "not on the page:" in result.output
    assert "walklearn 0.0.1" in result.output


def test_unknown_figure_exits_with_2_and_the_list() -> None:
    result = walklearn("reproduce", "fig9")
    assert result.returncode == 2
    assert "'fig9'" in result.stderr
    assert all(name in result.stderr for name in NAMES)


def test_a_directory_that_cannot_be_written(tmp_path: Path, shrunk: None) -> None:
    (tmp_path / "file").write_text("in the way")
    for name in ("fig1a", "slope"):
        result = call(name, "--quick", "--cores", "1", "--out", tmp_path / "file" / "results")
        assert result.exit_code == 2
        assert "file" in result.output
    assert (tmp_path / "file").read_text() == "in the way"


def test_results_of_another_version_are_found_before_anything_is_written(
    tmp_path: Path, shrunk: None
) -> None:
    for old in ("fig1b", "slope"):
        out = tmp_path / old
        (out / old).mkdir(parents=True)
        (out / old / "about.json").write_text('{"format": 1, "walklearn": "0.0.1"}')
        result = call("fig1", "slope", "--quick", "--cores", "1", "--out", out)
        assert result.exit_code == 2
        assert "walklearn 0.0.1" in result.output
        assert [file.name for file in out.rglob("*")] == [old, "about.json"]


def test_an_invalid_engine_is_found_before_anything_is_written(tmp_path: Path) -> None:
    result = call("fig1a", "slope", "--address", "somewhere:1", "--out", tmp_path / "results")
    assert result.exit_code == 2
    assert "address" in result.output
    assert not (tmp_path / "results").exists()
