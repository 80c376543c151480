"""The shipped studies are complete, and can be chosen by name."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from walklearn.plots import COSTS
from walklearn.studies import Study
from walklearn.studies.paper import catalogue
from walklearn.studies.paper.catalogue import COMPUTED, NAMES, STUDIES, select, shipped_study
from walklearn.studies.paper.panels import PICTURES

FILES = Path(catalogue.__file__).parent / "studies"


def test_every_file_is_listed_and_has_a_picture() -> None:
    assert sorted(file.stem for file in FILES.glob("*.toml")) == sorted(STUDIES)
    assert sorted(PICTURES) == sorted(STUDIES)


@pytest.fixture(scope="module", params=STUDIES)
def study(request: pytest.FixtureRequest) -> Study:
    """Read and built once: every graph, problem and method is really made."""
    return shipped_study(request.param)


def test_a_shipped_study_states_its_choices(study: Study) -> None:
    text = (FILES / f"{study.name}.toml").read_text(encoding="utf-8")
    assert text.startswith("# ")  # what is open in the paper and chosen here
    assert text.index("\nname") > 300
    assert study.question.endswith("?")
    assert study.claims
    assert all(claim.source and claim.text for claim in study.claims)


def test_a_shipped_study_is_large_enough_and_has_a_quick_version(study: Study) -> None:
    assert study.instances >= 100
    quick = study.quick()
    assert 10 <= quick.instances < study.instances  # fewer than 10 decide nothing
    assert quick.updates <= study.updates


@pytest.mark.parametrize(
    ("wanted", "names"),
    [([], list(NAMES)), (["fig2"], ["fig2a", "fig2b"]), (["fig3", "fig3"], ["fig3"]),
     (["map", "fig1"], ["fig1a", "fig1b", "map"])],
)  # fmt: skip
def test_select(wanted: list[str], names: list[str]) -> None:
    assert select(wanted) == names


@pytest.mark.parametrize("unknown", ["fig9", "", " "])
def test_unknown_names_are_answered_with_the_list(unknown: str) -> None:
    with pytest.raises(ValueError, match=f"'{unknown}'") as caught:
        select(["fig2", unknown])
    assert all(name in str(caught.value) for name in NAMES)


def test_communication_compares_each_walk_with_each_gossip() -> None:
    claims = shipped_study("communication").claims
    compared = {(*claim.better, *claim.worse, claim.target) for claim in claims}
    for walk, gossip in product(("uniform", "weighted"), ("gossip", "synchronous")):
        assert {(walk, gossip, 0.3), (walk, gossip, 0.1)} <= compared
    assert all("messages" in claim.costs for claim in claims)


def test_methods_has_every_method_in_every_setting() -> None:
    study = shipped_study("methods")
    cells = [(cell.graph, cell.problem) for cell in study.cells()]
    assert all(cells.count(setting) == len(study.methods) for setting in cells)
    assert len(set(cells)) == 18
    assert study.graphs["large"]["nodes"] == 1000
    assert {claim.target for claim in study.claims} == {0.1, 0.01, 1e-6}
    assert {cost for claim in study.claims for cost in claim.costs} == set(COSTS)
    tokens = {name: table.get("tokens", 1) for name, table in study.methods.items()}
    for name in study.methods:
        found = {cell.description["step_size"].get("found", False)
                 for cell in study.cells() if cell.method == name}  # fmt: skip
        assert found == {name.startswith(("saga", "finito"))}
        assert tokens[name] == (int(name[7:]) if name.startswith("finito") else 1)


def test_all_arms_of_memory_under_noise_are_private_alike() -> None:
    study = shipped_study("memory-private")
    for epsilon in (1, 3):
        arms = [study.methods[f"{kind}-{epsilon}"]["update"] for kind in ("sgd", "saga")]
        assert [arm["name"] for arm in arms] == ["noisy-sgd", "noisy-saga"]
        assert all({**arm, "name": ""} == {**arms[0], "name": ""} for arm in arms)
        assert arms[0]["epsilon"] == epsilon


def test_the_paper_s_settings() -> None:
    for name, variance in (("fig2a", 10.0), ("fig2b", 1.0)):
        figure = shipped_study(name)
        graph = figure.graphs["er"]
        assert (graph["nodes"], graph["probability"]) == (100, 0.3)
        assert {problem["variance"] for problem in figure.problems.values()} == {variance}
        assert {problem["penalty"] for problem in figure.problems.values()} == {1.0}
    private = shipped_study("fig3")
    assert private.graphs["er"]["nodes"] == 20
    gamma, laplace = private.methods["gamma-released"], private.methods["laplace-released"]
    assert (gamma["epsilon"], gamma["delta"]) == (3.0, 0.03)
    assert (laplace["epsilon"], laplace["delta"]) == (3.0, 0.0)
    assert set(COMPUTED) == {"fig1a", "fig1b"}
