"""A study is read, checked, and expanded to cells; errors have their line."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from tests.studies.examples import PRIVATE, SMALL, TUNED, cell
from walklearn.studies import Study, StudyError


def changed(old: str, new: str, text: str = SMALL) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


# A change of SMALL, and the names and values in the message.
MISTAKES = {
    "not TOML": ("seed = 3", "seed = ", "study.toml is not TOML", "line 3"),
    "unknown key": (
        "records = 5", "record = 5",
        "line 6: record", "records", "name, question, seed"),
    "key of a graph": (
        "nodes = 9", "node = 9",
        "line 12: graphs.ring.node", "nodes", "family, nodes"),
    "key of a problem": (
        "variance = 4.0", "varianc = 4.0",
        "line 17: problems.two.varianc", "variance"),
    "key of a walk": (
        'walk = "weighted"', 'walk = "weighted"\nlazyness = 0.1',
        "line 26: methods.weighted.lazyness", "laziness"),
    "key of a domain": (
        "{ ball = 5.0 }", "{ ball = 5.0, relativ = true }",
        "line 19: problems.two.domain.relativ", "relative"),
    "family": ('"ring"', '"rings"', "line 11: graphs.ring.family", '"rings"', '"ring"'),
    "data": ('"two_gaussians"', '"gaussians"', '"two_gaussians"?'),
    "walk": ('walk = "uniform"', 'walk = "unifrom"', '"uniform"?'),
    "update": (
        'walk = "uniform"', 'walk = "uniform"\nupdate = "sagaa"',
        "line 23: methods.uniform.update", '"sagaa"', '"saga"'),
    "argument of an update": (
        'walk = "uniform"', 'walk = "uniform"\nupdate = { name = "sgd", avarage = true }',
        "line 23: methods.uniform.update.avarage", "average"),
    "steps of a method": (
        'walk = "uniform"', 'walk = "uniform"\nsteps = { constant = -1.0 }',
        "line 23: methods.uniform.steps.constant"),
    "update of gossip": (
        'walk = "uniform"', 'gossip = "asynchronous"\nupdate = "saga"',
        "line 23: methods.uniform.update", "AsynchronousGossip"),
    "metric of a trace": ('"gap"', '"loss"', "line 7: metric", '"loss"'),
    "metric": ('"gap"', '"gaps"', "line 7: metric", '"gaps"'),
    "loss": (
        "penalty = 1.0", 'penalty = 1.0\nloss = "logstic"',
        "line 19: problems.two.loss", '"logstic"', '"logistic"'),
    "argument of a loss": (
        "penalty = 1.0", 'penalty = 1.0\nloss = { name = "huber", threshold = true }',
        "line 19: problems.two.loss.threshold", "true"),
    "domain": ("{ ball = 5.0 }", '"ball"', "line 19: problems.two.domain ", "{ ball = … }"),
    "box": ("{ ball = 5.0 }", "{ box = 5.0 }", "line 19: problems.two.domain.box"),
    "split": ("penalty = 1.0", 'penalty = 1.0\nsplit = "even"', "line 19: problems.two.split"),
    "rows without split": (
        "penalty = 1.0", "penalty = 1.0\nrows = 20",
        "line 14: problems.two ", "20 rows"),
    "half a seed": ("seed = 3", "seed = 3.5", "line 3: seed", "3.5"),
    "negative": ("seed = 3", "seed = -3", "line 3: seed", "-3"),
    "too much": ("instances = 4", f"instances = {10**30}", "line 4: instances", "1,0"),
    "nothing to do": ("instances = 4", "instances = 0", "line 4: instances"),
    "type": ("nodes = 9", 'nodes = "9"', "line 12: graphs.ring.nodes", '"9"'),
    "value": ("nodes = 9", "nodes = 0", "line 10: graphs.ring: nodes"),
    "penalty": ("penalty = 1.0", "penalty = -1.0", "line 18: problems.two.penalty"),
    "laziness": (
        'walk = "weighted"', 'walk = "weighted"\nlaziness = 1.0',
        "line 24: methods.weighted: laziness", "1.0"),
    "no walk": ('walk = "weighted"', "", "line 24: methods.weighted", "simple"),
    "no family": ('family = "ring"', "", "line 10: graphs.ring.family", "erdos_renyi"),
    "no argument": ("nodes = 9", "", "line 10: graphs.ring.nodes"),
    "no constant": ("constant = 0.1", "", "line 27: step_sizes.printed", "constant"),
    "constant": ("constant = 0.1", "constant = 0", "line 28: step_sizes.printed.constant"),
    "name": ('"small"', '"My study"', "line 1: name", '"My study"'),
    "quick": ("updates = 50 }", "update = 50 }", "line 8: quick.update"),
    "quick count": ("updates = 50 }", "updates = 0 }", "line 8: quick.updates"),
    "where": (
        'walk = "weighted"', 'walk = "weighted"\nproblems = ["tow"]',
        "line 26: methods.weighted.problems", '"two"?'),
    "not a list": (
        'walk = "weighted"', 'walk = "weighted"\nproblems = "two"',
        "line 26: methods.weighted.problems"),
    "code": (
        'walk = "weighted"', 'walk = "weighted"\nhome = "subprocess:Popen"\nargs = "true"',
        "line 26: methods.weighted.home"),
    "nowhere": (
        'walk = "weighted"', 'walk = "weighted"\nproblems = []',
        "line 26: methods.weighted.problems"),
    "no minimiser": (
        "penalty = 1.0\ndomain = { ball = 5.0 }", "domain = { ball = 2.0, relative = true }\n"
        "mean = 100.0",
        "line 14: problems.two: ", "minimiser"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_reported_with_their_line(mistake: str) -> None:
    old, new, *parts = MISTAKES[mistake]
    with pytest.raises(StudyError) as caught:
        Study.from_text(changed(old, new), "study.toml")
    message = str(caught.value)
    assert message.startswith("study.toml")
    assert all(part in message for part in parts), message


# The same for a private method, written below SMALL.
PRIVATE_MISTAKES = {
    "epsilon": ("epsilon = 3.0", "epsilon = -1", "line 31: methods.private: epsilon"),
    "no delta": ("delta = 0.0", "", "line 31: methods.private", "delta"),
    "mechanism": ('"laplace"', '"laplac"', "methods.private.mechanism", '"laplac"'),
    "no bounds": ("bounds = [1.0, 300.0]", "", "line 31: methods.private.bounds"),
    "bounds": ("[1.0, 300.0]", "[1.0]", "line 36: methods.private.bounds"),
    "inside out": ("[1.0, 300.0]", "[3.0, 1.0]", "line 31: methods.private: bounds"),
    "public": ("[1.0, 300.0]", '"public"', 'bounds = "public"', "feature_bound"),
    "noise": ("delta = 0.0", "theta = 1.0", "line 35: methods.private.theta"),
    "reweight": (
        "delta = 0.0", 'delta = 0.0\nreweight = "no"', "line 36: methods.private.reweight"),
    "no mechanism": ('mechanism = "laplace"', "", "line 34: methods.private.epsilon"),
    "unclamped": ("delta = 0.0", "delta = 0.0\nclamp = false", "unclamped laplace"),
    "infeasible": ('"laplace"', '"gamma"', "delta <= 0"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", PRIVATE_MISTAKES)
def test_mistakes_of_private_methods(mistake: str) -> None:
    old, new, *parts = PRIVATE_MISTAKES[mistake]
    with pytest.raises(StudyError) as caught:
        Study.from_text(SMALL + changed(old, new, PRIVATE), "study.toml")
    assert all(part in str(caught.value) for part in parts), caught.value


WRONG = [
    "true", "-1", "0", "1.5", '"x"', "[]", "[[1]]", "{}", "nan", "inf", "1e300", "1" + "0" * 30,
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_every_value_is_accepted_or_refused(wrong: str) -> None:
    """No other error comes out, and each names the line, or that of its table."""
    lines = (SMALL + PRIVATE + TUNED).splitlines()
    table, refusals = 0, []
    for number, line in enumerate(lines, start=1):
        key, equals, _ = line.partition(" = ")
        table = number if line.startswith("[") else table
        if not equals:
            continue
        text = "\n".join([*lines[: number - 1], f"{key} = {wrong}", *lines[number:]])
        try:
            Study.from_text(text, "study.toml")
        except StudyError as error:
            refusals.append((number, table, str(error)))
    assert len(refusals) > 20
    for number, table, message in refusals:
        assert message.startswith((f"study.toml, line {number}: ", f"study.toml, line {table}: "))


def test_grids_must_not_be_empty() -> None:
    text = changed('[graphs.ring]\nfamily = "ring"\nnodes = 9', "graphs.ring = 1")
    with pytest.raises(StudyError, match=r"study.toml, line 10: graphs.ring"):
        Study.from_text(text, "study.toml")
    for name in ("updates", "name"):
        line = next(line for line in SMALL.splitlines() if line.startswith(f"{name} ="))
        with pytest.raises(StudyError, match=f"study.toml: {name} is missing"):
            Study.from_text(changed(line + "\n", ""), "study.toml")
    text = SMALL.replace("[methods.uniform]", "[metods.uniform]").replace(
        "[methods.weighted]", "[metods.weighted]"
    )
    with pytest.raises(StudyError, match=r"metods .*methods"):
        Study.from_text(text, "study.toml")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"nowhere\.toml"):
        Study.read(tmp_path / "nowhere.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StudyError, match=r"cannot read .*binary\.toml"):
        Study.read(tmp_path / "binary.toml")


def test_the_grid_in_order() -> None:
    study = Study.from_text(SMALL + TUNED)
    names = [(cell.step_size, cell.method) for cell in study.cells()]
    assert names == list(product(["printed", "tuned"], ["uniform", "weighted"]))
    kept = changed('walk = "weighted"', 'walk = "weighted"\nstep_sizes = ["tuned"]')
    cells = Study.from_text(kept + TUNED).cells()
    assert [cell.method for cell in cells] == ["uniform", "uniform", "weighted"]


def test_a_method_may_have_an_update_and_steps_of_its_own() -> None:
    text = changed('walk = "uniform"', 'walk = "uniform"\nupdate = "saga"')
    assert cell(text, method="uniform").description["step_size"] == {"found": True}
    own = text.replace('"saga"', '"saga"\nsteps = { constants = [0.1, 0.2], exponent = 0 }')
    steps = cell(own, method="uniform").description["step_size"]
    assert steps["constants"] == [0.1, 0.2]
    assert "steps" not in cell(own, method="uniform").description["method"]
    quick = replace(Study.from_text(own), quick_changes={"tuning_instances": 2}).quick()
    assert {c.tuning_instances for c in quick.cells() if c.method == "uniform"} == {2}


def test_memory_and_a_private_walk_are_refused_when_the_study_is_read() -> None:
    text = SMALL + PRIVATE + 'update = "saga"'
    with pytest.raises(StudyError, match="release of L_i"):
        Study.from_text(text)


def test_quick() -> None:
    study = Study.from_text(
        changed("updates = 50 }", "updates = 50, tuning_instances = 1 }") + TUNED
    )
    quick = study.quick()
    assert (quick.instances, quick.updates, quick.records, quick.is_quick) == (2, 50, 5, True)
    assert quick.step_sizes["tuned"]["tuning_instances"] == 1
    assert quick.step_sizes["printed"] == study.step_sizes["printed"]
    assert not {cell.hash for cell in quick.cells()} & {cell.hash for cell in study.cells()}
    with pytest.raises(StudyError, match="quick"):
        replace(study, quick_changes={}).quick()


# Changes to SMALL that must, or must not, change the hash of the cell of the weighted walk.
DECISIVE = [
    ("seed = 3", "seed = 4"),
    ("instances = 4", "instances = 5"),
    ("updates = 200", "updates = 201"),
    ("records = 5", "records = 6"),
    ("records = 5", "records = 5\nreplicates = 2"),
    ("records = 5", "records = 5\nfacts = true"),
    ("nodes = 9", "nodes = 10"),
    ("variance = 4.0", "variance = 5.0"),
    ("constant = 0.1", "constant = 0.2"),
    ('walk = "weighted"', 'walk = "weighted"\nlaziness = 0.1'),
    ('"small"', '"smaller"'),
]
IRRELEVANT = [
    ("Which walk", "What walk"),
    ("quick = { instances = 2, updates = 50 }", ""),
    ('"gap"', '"distance"'),
    ('[methods.uniform]\nwalk = "uniform"', '[methods.simple]\nwalk = "simple"'),
    ('walk = "weighted"', 'walk = "weighted"\nproblems = ["two"]'),
    ("[problems.two]", '[problems.other]\ndata = "two_gaussians"\npenalty = 1.0\n[problems.two]'),
]


@pytest.mark.parametrize("change", DECISIVE)
def test_the_hash_covers_what_determines_the_numbers(change: tuple[str, str]) -> None:
    assert cell(changed(*change)).hash != cell().hash


@pytest.mark.parametrize("change", IRRELEVANT)
def test_the_hash_covers_nothing_else(change: tuple[str, str]) -> None:
    other = cell(changed(*change), problem="two")
    assert other.hash == cell().hash


def test_the_metric_is_part_of_a_tuned_cell() -> None:
    other = changed('"gap"', '"distance"', SMALL + TUNED)
    assert cell(other, step_size="tuned").hash != cell(SMALL + TUNED, step_size="tuned").hash


def test_cells_can_be_sent() -> None:
    for each in Study.from_text(SMALL + PRIVATE + TUNED).cells():
        sent = pickle.loads(pickle.dumps(each))
        assert sent == each
        assert sent.hash == each.hash


def test_the_studies_of_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")
    study, *additions = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert len(Study.from_text(study).cells()) == 3
    everything = Study.from_text("".join([study, *additions]))
    assert "private" in everything.methods
    assert len(everything.claims) == 1
