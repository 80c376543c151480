"""The page as a file: nothing is fetched, and every number is in the stored rows."""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pandas
import pytest

from tests.studies.examples import SMALL
from tests.studies.report.everything import HOSTILE
from walklearn.studies import Results, Study, run_study
from walklearn.studies.report import write_report
from walklearn.studies.report.sections import Section, section


@pytest.fixture(scope="module")
def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def blocks(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    return dict(json.loads(found[1]))


def without_scripts(text: str) -> str:
    return re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)


def test_nothing_is_fetched_and_only_the_page_s_scripts_can_run(text: str) -> None:
    assert text.count("<script>") == 1  # ours, which unpacks Plotly's
    assert len(text) < 4_000_000
    own = without_scripts(text)
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", own)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', own)
    assert policy
    rules = html.unescape(policy[1])
    assert rules.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in rules
    assert "'unsafe-inline'" not in rules.split("style-src")[0]
    assert "connect-src" not in rules  # so default-src forbids every connection
    assert "http" not in rules


def test_texts_are_escaped(text: str) -> None:
    own = without_scripts(text)
    assert "<img" not in own
    assert "<script>" not in own
    assert html.escape(HOSTILE).replace("&#x27;", "&#39;") in own


def test_numbers_are_those_of_the_named_file(drawn: Section, page: Path) -> None:
    """The last mean of each series of the convergence curves is that of its stored rows."""
    (curves,) = (block for block in drawn.blocks if block.heading == "Convergence")
    series = [one for figure in curves.figures for one in figure.series]
    for one in series:
        rows = pandas.read_parquet(page.parent / one.source)
        last = rows[rows["updates"] == rows["updates"].max()]
        for metric in ("gap", "average_distance"):
            found = last.groupby("instance")[metric].mean().mean()
            assert one.plain()["columns"][f"{metric} mean"][-1] == pytest.approx(found, rel=1e-3)
    assert len(series) > 8


def test_every_series_names_existing_files(blocks: dict[str, Any], page: Path) -> None:
    figures = [figure for block in blocks.values() for figure in block["figures"]]
    sources = {one["source"] for figure in figures for one in figure["series"]}
    assert sources
    for file in ", ".join(sources).split(", "):
        assert (page.parent / file).is_file(), file


def test_verdicts_are_the_stored_ones(results: Results, drawn: Section, page: Path) -> None:
    stored = results.verdicts()
    rows = [row for claim in drawn.claims for row in claim.rows]
    assert [row.verdict for row in rows] == stored["verdict"].tolist()
    assert [row.instances for row in rows] == stored["replicates"].tolist()
    for row in rows:
        file, number = row.files[0].split(", row ")
        found = pandas.read_parquet(page.parent / file).iloc[int(number)]
        assert row.verdict == found["verdict"]
        assert float(row.estimate.replace(",", "").replace("−", "-").replace("∞", "inf")) == (
            pytest.approx(found["ratio"], rel=0.006)
        )
        assert [Path(each).stem for each in row.files[1:]] == list(found["cells"])
        for each in row.files[1:]:
            assert (page.parent / each).is_file()


def test_every_claim_has_a_sentence_that_counts_its_readings(drawn: Section, text: str) -> None:
    for claim in drawn.claims:
        head, _, tail = claim.sentence.partition(": ")
        numbers = list(map(int, re.findall(r"in (\d+)", tail)))
        assert numbers == sorted(claim.counts.values(), reverse=True)
        assert f"in {numbers[0]} of {len(claim.rows)} reading" in tail
        most = max(claim.counts, key=claim.counts.__getitem__)
        assert (most in head.lower()) == (2 * numbers[0] > len(claim.rows))
        assert html.escape(claim.sentence) in text
    assert "weighted is better" in drawn.claims[0].sentence


def test_readings_stand_side_by_side(drawn: Section) -> None:
    beats, rank, cost = drawn.claims
    assert [at for _, at in beats.columns] == ["50 updates", "200 updates"] * 2
    assert sum(len(line) for line in beats.lines.values()) == len(beats.rows)
    assert beats.lines["ring, 11 nodes · variance 4, λ = 1"].keys() == set(beats.columns)
    assert rank.columns == []
    assert [at for _, at in cost.columns] == ["updates to 0.8", "messages to 0.8"]


def test_the_cost_of_a_target_agrees_with_the_verdict(results: Results, drawn: Section) -> None:
    """The ratio of the bars of two methods is the ratio that the claim was judged by."""
    (bars,) = (b for b in drawn.blocks if b.kind == "bars")
    verdicts = results.verdicts().query("kind == 'cost-to-target' and graph == 'er'")
    compared = 0
    for row in verdicts.itertuples():
        figure = bars.panel("", graph="er", problem=row.problem)
        spent = {one.name: one.plain()["columns"] for one in figure.series}
        worse, better = (spent[name][f"{row.cost} median"][0] for name in (row.worse, row.better))
        if worse is not None and better is not None:
            assert worse / better == pytest.approx(row.ratio, rel=1e-3)
            compared += 1
    assert compared


def test_figures_that_suit_the_study(drawn: Section) -> None:
    found = {block.heading: block for block in drawn.blocks}
    assert list(found) == [
        "Ratio of errors by problem",
        "Error against ε",
        "Cost of reaching a target",
        "Measured error against mixing time, in steps",
        "Convergence",
    ]
    (price,) = found["Error against ε"].figures  # elsewhere no method has an ε
    assert price.title == "erdos renyi, 12 nodes, p = 0.5 · variance 1, λ = 0.5"
    (laplace,) = (one for one in price.series if one.name == "laplace")
    assert list(laplace.columns["epsilon"]) == [1.0, 3.0, 9.0]
    first = found["Ratio of errors by problem"].figures[0].series[0]
    assert set(zip(first.columns["x"], first.columns["y"], strict=True)) == {
        (1.0, 0.5), (1.0, 1.0), (4.0, 0.5), (4.0, 1.0),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("figure", "heading"),
    [
        ('kind = "convergence"', ""),
        ('kind = "scatter"\nx = "spectral_gap"', "Measured error against spectral gap"),
        ('kind = "tradeoff"\nx = "epsilon"', "Error against ε"),
        ('kind = "map"\nx = "penalty"\ny = "variance"', "Ratio of errors by problem"),
        ('kind = "cost"', "Cost of reaching a target"),
    ],
)
def test_a_study_can_select_its_first_figure(
    results: Results, tmp_path: Path, figure: str, heading: str
) -> None:
    shutil.copytree(results.directory, tmp_path / "everything")
    text = results.study.text + f"\n[figure]\n{figure}\n"
    (tmp_path / "everything" / "study.toml").write_text(text, encoding="utf-8")
    blocks = section(Results.open(tmp_path / "everything"), tmp_path).blocks
    assert [block.heading for block in blocks] == [*filter(None, [heading]), "Convergence"]


def test_several_studies_on_one_page(tmp_path: Path, results: Results) -> None:
    """An unfinished study is drawn as far as it goes, one without claims too."""
    small = Study.from_text(SMALL)
    found = run_study(small, tmp_path, cores=1)
    (found.directory / "cells" / f"{small.cells()[1].hash}.parquet").unlink()
    page = write_report([found.directory, results.directory], tmp_path / "deep" / "page.html")
    own = without_scripts(page.read_text(encoding="utf-8"))
    assert own.index('id="study-small"') < own.index('id="study-everything"')
    assert "1 of 2 cells are finished" in own
    assert "../small/cells/" in own
    alone = write_report([tmp_path], tmp_path / "alone.html").read_text(encoding="utf-8")
    assert "make no claim" in alone


def test_the_command_to_run_it_again(results: Results, drawn: Section, page: Path) -> None:
    assert drawn.command == "walklearn run everything/study.toml"
    known = section(results, page.parent, shipped=[results.study.text])
    assert known.command == "walklearn reproduce everything"


def test_computed_curves(tmp_path: Path, results: Results) -> None:
    directory = tmp_path / "fig1"
    directory.mkdir()
    about = {**results.about, "study": "fig1", "question": "Which δ?", "note": "bounds 1 to 3"}
    (directory / "about.json").write_text(json.dumps(about))
    pandas.DataFrame({
        "panel": "a", "series": ["θ = 1", "θ = 1", "θ = 2"], "style": [0, 0, 1],
        "x": [0.0, 1.0, 1.0], "y": [0.5, 0.25, float("nan")], "x_label": "ε",
        "y_label": "δ", "y_log": False,
    }).to_parquet(directory / "curves.parquet")  # fmt: skip
    (block,) = section(Results.open(directory), tmp_path).blocks
    assert block.heading == "δ against ε"
    assert [one.plain()["columns"]["y"] for one in block.figures[0].series] == [[0.5, 0.25], [None]]
    assert "bounds 1 to 3" in write_report([tmp_path], tmp_path / "r.html").read_text("utf-8")
