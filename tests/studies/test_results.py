"""Results are stored atomically, read back unchanged, and refused by other versions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

import walklearn as wl
from tests.studies.examples import INFEASIBLE, PRIVATE, SMALL, TUNED
from walklearn.privacy.accounting.printing import format_upper
from walklearn.studies import Results, ResultsError, Study, run_cell, run_study
from walklearn.studies.import_paths import register_shipped
from walklearn.studies.instances import DATA, GRAPH, RUN, WALK, stream
from walklearn.studies.provenance import notes
from walklearn.studies.tables import PROVENANCE, seed_name


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_study(Study.from_text(SMALL), tmp_path_factory.mktemp("out"), cores=1).directory


@pytest.fixture
def folder(kept: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(kept, tmp_path / "small"))


def test_tables_are_those_of_the_cells(kept: Path) -> None:
    results = Results.open(kept)
    study = Study.from_text(SMALL)
    records, facts, nodes = results.records(), results.facts(), results.nodes()
    assert records.columns[:6].tolist() == [*study.cells()[0].names, "cell"]
    for cell in study.cells():
        assert results.is_finished(cell)
        expected = run_cell(cell)
        for frame, table in ((records, expected.records), (facts, expected.facts)):
            mine = frame[frame["cell"] == cell.hash]
            for name, column in table.items():
                np.testing.assert_array_equal(mine[name].to_numpy(), column)
            for name, value in cell.names.items():
                assert set(mine[name]) == {value}
    assert len(nodes) == 2 * 9
    assert results.edges()[["source", "target"]].to_numpy().shape == (9, 2)
    assert set(results.edges()["graph"]) == {"ring"}
    assert results.verdicts().empty
    assert results.study == study
    assert results.finished_count == 2


def test_about(kept: Path) -> None:
    about = Results.open(kept).about
    assert (about["format"], about["walklearn"], about["quick"]) == (2, wl.__version__, False)
    assert set(about["cells"]) == {cell.hash for cell in Study.from_text(SMALL).cells()}
    assert (kept / "study.toml").read_text() == SMALL


def test_cells_that_the_study_no_longer_has_are_not_read(folder: Path) -> None:
    fewer = SMALL.replace('[methods.uniform]\nwalk = "uniform"\n', "")
    results = run_study(Study.from_text(fewer), folder.parent, cores=1)
    assert set(results.records()["method"]) == {"weighted"}
    assert len(list((folder / "cells").iterdir())) == 2
    again = run_study(Study.from_text(SMALL), folder.parent, cores=1)
    assert set(again.records()["method"]) == {"uniform", "weighted"}


CLAIM = """
[[claims]]
kind = "beats"
text = "The weighted walk beats the uniform one"
better = "weighted"
worse = "uniform"
"""


def test_claims_are_judged_at_the_end(tmp_path: Path) -> None:
    study = Study.from_text(SMALL.replace("instances = 4", "instances = 12") + CLAIM)
    results = run_study(study, tmp_path, cores=1)
    verdicts = results.verdicts()
    (row,) = verdicts[["better", "worse", "replicates"]].to_numpy().tolist()
    assert row == ["weighted", "uniform", 12]
    gaps = results.records().query("updates == 200").groupby("method")["gap"].mean()
    assert verdicts["ratio"][0] == pytest.approx(gaps["uniform"] / gaps["weighted"])
    assert set(verdicts["cells"][0]) == {cell.hash for cell in study.cells()}
    Results.prepare(results.directory, study.quick())
    assert results.verdicts().empty  # they were about other cells


def test_every_row_has_its_provenance(tmp_path: Path) -> None:
    study = Study.from_text(SMALL + CLAIM)
    folder = run_study(study, tmp_path, cores=1).directory
    cells = {cell.hash for cell in study.cells()}
    graphs = {cell.graph_hash for cell in study.cells()}
    instances = {f"3:0.{number}" for number in range(4)}
    expected = {
        "cells": (cells, {f"{instance}.2.0" for instance in instances}),
        "facts": (cells, instances),
        "nodes": (cells, {"3:0.0"}),
        "edges": (graphs, {"3:0.0.0"}),
        "verdicts.parquet": ({study.hash}, {"3"}),
    }
    for name, (specs, seeds) in expected.items():
        rows = pd.read_parquet(folder / name)
        assert (set(rows["spec"]), set(rows["seed"])) == (specs, seeds), name
        assert set(rows["version"]) == {wl.__version__}
        assert rows["stored_at"].str.endswith("+00:00").all()
        assert rows["machine"].str.contains("cores, Python").all()


def test_the_seed_of_an_instance_spawns_its_streams() -> None:
    streams = np.random.SeedSequence(3, spawn_key=(RUN, 7)).spawn(3)
    assert seed_name(3, RUN, 7) == "3:0.7"
    for purpose in (GRAPH, DATA, WALK):
        assert streams[purpose].spawn_key == stream(3, RUN, 7, purpose).spawn_key


def test_rows_kept_before_they_had_a_seed_are_read_beside_new_ones(folder: Path) -> None:
    every = list(PROVENANCE)
    added = {"cells": ["spec"], "facts": ["spec", "seed"], "nodes": every, "edges": every}
    for file in folder.rglob("*.parquet"):
        before = parquet.read_table(file).drop_columns(added[file.parent.name])
        parquet.write_table(before, file)
    more = SMALL + '[methods.simple]\nwalk = "simple"\n'
    results = run_study(Study.from_text(more), folder.parent, cores=1)
    assert results.facts().groupby("method")["seed"].count().to_dict() == {
        "simple": 4, "uniform": 0, "weighted": 0
    }  # fmt: skip
    assert len(results.records()) == 3 * 4 * 5
    assert results.records()["seed"].notna().all()
    assert set(results.nodes()["method"]) == {"simple", "uniform", "weighted"}


def test_quick_results_are_apart(folder: Path) -> None:
    study = Study.from_text(SMALL)
    quick = run_study(study.quick(), folder.parent, cores=1)
    assert quick.records()["updates"].max() == 50
    assert Results.open(folder).study == study.quick()
    assert run_study(study, folder.parent, cores=1).records()["updates"].max() == 200


@pytest.mark.parametrize(
    ("change", "message"),
    [({"format": 1}, r"format 1"), ({"walklearn": "0.0.9"}, r"written by walklearn 0\.0\.9")],
)
def test_results_of_another_version_are_refused(folder: Path, change: dict, message: str) -> None:
    about = json.loads((folder / "about.json").read_text())
    (folder / "about.json").write_text(json.dumps(about | change))
    before = {file: file.read_bytes() for file in folder.rglob("*.*")}
    with pytest.raises(ResultsError, match=message):
        Results.open(folder)
    with pytest.raises(ResultsError, match="another directory"):
        run_study(Study.from_text(SMALL), folder.parent, cores=1)
    assert {file: file.read_bytes() for file in folder.rglob("*.*")} == before


def test_missing_and_damaged_results(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="no results"):
        Results.open(tmp_path)
    cell = next((folder / "cells").iterdir())
    cell.write_bytes(cell.read_bytes()[:-100])
    with pytest.raises(ResultsError, match=r"parquet is damaged"):
        Results.open(folder).records()
    content = bytearray(next((folder / "facts").iterdir()).read_bytes())
    content[200] ^= 1
    next((folder / "facts").iterdir()).write_bytes(content)
    with pytest.raises(ResultsError, match="parquet is damaged"):
        Results.open(folder).facts()
    cell.unlink()
    assert len(run_study(Study.from_text(SMALL), folder.parent, cores=1).records()) == 40
    (folder / "about.json").write_text("{")
    with pytest.raises(ResultsError, match="cannot read"):
        Results.open(folder)


def test_notes_warn_of_every_problem(tmp_path: Path) -> None:
    oracle = PRIVATE.replace(".private]", ".oracle]").replace("[1.0, 300.0]", '"instance"')
    narrow = PRIVATE.replace(".private]", ".narrow]").replace("300.0", "2.0")
    text = SMALL.replace("{ ball = 5.0 }", '"everywhere"')
    text = text.replace("variance = 4.0", 'variance = 4.0\nloss = "squared"')
    text = text.replace("constant = 0.1", "constant = 1000.0")
    tuned = TUNED.replace("[0.001, 0.01, 0.1, 1.0]", "[1e-9, 1e-8]")
    study = Study.from_text(text + INFEASIBLE + 'infeasible = "skip"\n' + oracle + narrow + tuned)
    results = run_study(study, tmp_path, cores=1)
    assert results.finished_count == len(study.cells())
    assert "private" not in set(results.records()["method"])
    facts = results.facts().set_index("method").loc["private"]
    assert facts["infeasible"].all()
    assert np.isfinite(facts["floor"]).all()
    warnings = notes(results)
    for start in (
        "ring, two, printed, uniform: 4 of 4 instances diverged",
        "ring, two, printed, private: no noise reaches (ε, δ) = (3, 0.03) on 4 of 4 instances",
        "ring, two, printed, oracle: bounds",
        "ring, two, printed, narrow: on 4 of 4 instances some L_i are outside",
        "ring, two, tuned, weighted: the best step",
    ):
        assert any(note.startswith(start) for note in warnings), start
    assert notes(Results(tmp_path, {"cells": {}})) == []


def test_notes_name_the_constant_as_its_grid_does(tmp_path: Path) -> None:
    steps = "step_sizes.a = {constants=[1e-9, 1e-8], relative=true, tuning_instances=1}\n"
    text = steps + SMALL[: SMALL.index("[step_sizes")]
    warnings = notes(run_study(Study.from_text(text), tmp_path, cores=1))
    assert len(warnings) == 2
    assert all("step constant, 1e-08," in note for note in warnings)


def test_notes_warn_of_another_delta(tmp_path: Path) -> None:
    register_shipped("fig3")
    equal = PRIVATE.replace("private", "equal").replace('"weighted"', '"equal-variance-gamma"')
    study = Study.from_text(SMALL.replace("[step_sizes", f"{PRIVATE}{equal}[step_sizes"))
    results = run_study(study, tmp_path, cores=1)
    (warnings,) = (note for note in notes(results) if "as requested" in note)
    facts = results.facts()
    delta = facts[facts["method"] == "equal"]["achieved_delta"].iloc[0]
    assert delta > 0.5
    printed = format_upper(delta, 3)
    assert warnings.startswith(f"ring, two, printed, equal: δ is {printed} at ε = 3")
