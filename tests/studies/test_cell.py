"""The tables of a cell are the results of `simulate` on its instances, in any parts."""

from __future__ import annotations

import json

import numpy as np
import pytest

import walklearn as wl
from tests.studies.examples import GOSSIP, INFEASIBLE, PRIVATE, SMALL, TUNED, cell
from walklearn.privacy import calibrate
from walklearn.simulation.trace_files import ERRORS
from walklearn.streams import generators, replicate_seed
from walklearn.studies import CellResult, Study, StudyError, run_cell
from walklearn.studies.cell import CellError
from walklearn.studies.cell_runs import Tuning, choose_candidate, run_instances, tuning_errors
from walklearn.studies.instances import RUN, WALK, draw_instance, stream
from walklearn.studies.tables import join_results


def assert_same(one: CellResult, other: CellResult) -> None:
    for mine, theirs in zip(vars(one).values(), vars(other).values(), strict=True):
        assert list(mine) == list(theirs)
        for name in mine:
            np.testing.assert_array_equal(mine[name], theirs[name])


def test_records_are_those_of_simulate() -> None:
    each = cell(SMALL.replace("records = 5", "records = 5\nreplicates = 2"))
    stated = each.description
    records = run_cell(each).records
    for number in range(stated["instances"]):
        instance = draw_instance(stated["graph"], stated["problem"], stated["seed"], RUN, number)
        trace = wl.simulate(
            instance.problem, instance.graph, wl.walks.Weighted(), steps=200, replicates=2,
            step_size=wl.PowerStep(0.1, 0.75), seed=stream(3, RUN, number, WALK),
            records=[1, 4, 14, 53, 200],
        )  # fmt: skip
        mine = records["instance"] == number
        for name in ("messages", "bytes", *ERRORS):
            assert np.array_equal(records[name][mine], getattr(trace, name).reshape(-1))
        assert records["updates"][mine].tolist() == [1, 4, 14, 53, 200] * 2
        assert records["replicate"][mine].tolist() == [0] * 5 + [1] * 5
        assert set(records["seed"][mine]) == {f"3:0.{number}.2.0", f"3:0.{number}.2.1"}
        assert (trace.spec["seed"], trace.spec["spawn_key"]) == (3, [0, number, 2])


def test_parts_make_the_whole() -> None:
    each = cell(SMALL + PRIVATE, method="private")
    tuning = choose_candidate(each, np.empty((0, 0)))
    parts = [run_instances(each, tuning, part) for part in (range(1), range(1, 3), range(3, 4))]
    assert_same(join_results(parts), run_cell(each))


def test_all_methods_record_at_the_same_updates() -> None:
    text = SMALL + GOSSIP
    methods = ("uniform", "gossip")
    walk, gossip = (run_cell(cell(text, method=method)).records["updates"] for method in methods)
    assert np.abs(walk - gossip).max() <= 1  # gossip makes two updates at a time


def test_gaps_of_gossip_over_some_nodes() -> None:
    text = SMALL + GOSSIP
    every, some, nine = (
        run_cell(cell(text.replace("records = 5", f"records = 5\n{more}"), method="gossip")).records
        for more in ("", "gaps = 2", "gaps = 9")
    )
    assert np.array_equal(every["distance"], some["distance"])
    assert not np.array_equal(every["gap"], some["gap"])
    assert np.array_equal(every["gap"], nine["gap"])


def test_several_tokens_share_the_updates_and_save_time() -> None:
    finito = '[methods.finito]\nwalk = "oldest-first"\nupdate = "finito"\n'
    one, four = (
        run_cell(cell(SMALL + finito + more, method="finito")).records
        for more in ("", "tokens = 4\n")
    )
    last = one["updates"] == 200
    assert np.array_equal(one["updates"], four["updates"])
    assert set(one["time"][last]) == {199.0}
    assert set(four["time"][last]) == {49.0}


@pytest.mark.parametrize("table", ['walk = "simple"\nupdate = "saga"', 'gossip = "synchronous"'])
def test_tokens_that_cannot_share_are_refused_with_their_method(table: str) -> None:
    with pytest.raises(StudyError, match="token") as caught:
        Study.from_text(f"{SMALL}[methods.several]\n{table}\ntokens = 4\n")
    assert "methods.several" in str(caught.value)


def test_instances_start_alike_for_every_method() -> None:
    starts = [
        run_cell(cell(SMALL + PRIVATE, method=method)).facts["start_distance"]
        for method in ("uniform", "weighted", "private")
    ]
    assert np.array_equal(starts[0], starts[1])
    assert np.array_equal(starts[0], starts[2])
    assert len(set(starts[0])) == 4


def test_the_best_constant_is_chosen_on_other_instances() -> None:
    each = cell(SMALL + TUNED, step_size="tuned")
    errors = tuning_errors(each, range(3))
    tuning = choose_candidate(each, errors)
    assert errors.shape == (3, 4)
    assert tuning.errors == pytest.approx(errors.mean(axis=0))
    best = int(np.argmin(errors.mean(axis=0)))
    assert (tuning.constant, tuning.exponent) == each.candidates[best]
    result = run_cell(each)
    table = json.loads(result.facts["tuning"][0])
    assert list(map(tuple, table["candidates"])) == each.candidates
    assert table["errors"] == pytest.approx(tuning.errors)
    assert (table["constant"], table["metric"], table["instances"]) == (tuning.constant, "gap", 3)
    assert set(result.records["constant"]) == {tuning.constant}
    # Tuning with a step at a time gives the same, and runs do not see the tuning instances.
    assert np.array_equal(errors[1:2], tuning_errors(each, range(1, 2)))
    stated = SMALL.replace("constant = 0.1", f"constant = {tuning.constant}")
    assert np.array_equal(result.records["gap"], run_cell(cell(stated)).records["gap"])


def test_constants_at_the_end_of_the_grid_are_marked() -> None:
    def tuning(constant: float) -> Tuning:
        candidates = ((0.1, 0.5), (1.0, 0.5), (10.0, 0.5))
        return Tuning(constant, 0.5, candidates, (1.0, 1.0, np.inf), "gap", 3)

    assert [tuning(constant).at_edge for constant in (0.1, 1.0, 10.0)] == [True, False, True]
    assert json.loads(tuning(1.0).to_json())["errors"] == [1.0, 1.0, None]
    assert not Tuning(0.1, 0.5).at_edge
    assert Tuning(0.1, 0.5).to_json() == ""


def test_the_exponent_is_tuned_too() -> None:
    several = TUNED.replace("exponent = 0.75", "exponents = [0.25, 0.75, 2.0]")
    each = cell(SMALL + several, step_size="tuned")
    errors = tuning_errors(each, range(3))
    tuning = choose_candidate(each, errors)
    assert errors.shape == (3, 12)
    assert (tuning.constant, tuning.exponent) == each.candidates[int(errors.mean(axis=0).argmin())]
    alone = SMALL + TUNED.replace("exponent = 0.75", f"exponent = {tuning.exponent:g}")
    chosen, stated = run_cell(each), run_cell(cell(alone, step_size="tuned"))
    assert set(chosen.records["exponent"]) == {tuning.exponent}
    assert np.array_equal(chosen.records["gap"], stated.records["gap"])


def test_diverged_runs_have_infinite_errors() -> None:
    everywhere = SMALL.replace("{ ball = 5.0 }", '"everywhere"')
    squared = everywhere.replace("variance = 4.0", 'variance = 4.0\nloss = "squared"')
    result = run_cell(cell(squared.replace("constant = 0.1", "constant = 100.0")))
    last = result.records["updates"] == 200
    for name in ERRORS:
        assert np.isposinf(result.records[name][last]).all()
        assert not np.isnan(result.records[name]).any()
    assert result.facts["diverged"].all()
    tuned = squared + TUNED.replace("1.0]", "100.0]")
    errors = tuning_errors(cell(tuned, step_size="tuned"), range(2))
    assert np.isposinf(errors[:, -1]).all()
    assert choose_candidate(cell(tuned, step_size="tuned"), errors).constant < 100.0


def test_distances_are_undefined_if_the_optimum_is_not_unique() -> None:
    flat = SMALL.replace("nodes = 9", "nodes = 2").replace("dimension = 2", "dimension = 5")
    flat = flat.replace("variance = 4.0", 'variance = 4.0\nloss = "squared"')
    result = run_cell(cell(flat.replace("penalty = 1.0", "penalty = 0")))
    assert np.isnan(result.records["distance"]).all()
    assert np.isfinite(result.records["gap"]).all()
    assert not result.facts["optimum_unique"].any()


def test_facts_of_a_private_method() -> None:
    facts = run_cell(cell(SMALL + PRIVATE, method="private")).facts
    mechanism = calibrate("laplace", epsilon=3.0, delta=0.0, bounds=(1.0, 300.0))
    assert set(facts["mechanism"]) == {"laplace"}
    assert set(facts["parameter"]) == {mechanism.noise}
    assert set(facts["achieved_delta"]) == {0.0}
    assert set(facts["bounds_from"]) == {"stated"}
    assert (facts["bounds_low"] == 1.0).all()
    stated = PRIVATE.replace("delta = 0.0", "scale = 20.0")
    facts = run_cell(cell(SMALL + stated, method="private")).facts
    assert np.isnan(facts["delta"]).all()
    scaled = wl.privacy.Laplace(20.0, (1.0, 300.0))
    assert set(facts["achieved_delta"]) == {scaled.delta(3.0)}  # what it really has
    narrow = PRIVATE.replace("300.0", "2.0")
    assert run_cell(cell(SMALL + narrow, method="private")).facts["out_of_bounds"].min() > 0


def test_infeasible_targets() -> None:
    with pytest.raises(CellError, match=r"small: ring,.*, printed:"):
        run_cell(cell(SMALL + INFEASIBLE, method="private"))
    skipped = run_cell(cell(SMALL + INFEASIBLE + 'infeasible = "skip"\n', method="private"))
    assert skipped.records == {}
    assert skipped.facts["infeasible"].all()
    with pytest.raises(wl.privacy.InfeasiblePrivacyError) as refusal:
        calibrate("gamma", epsilon=3.0, delta=0.03, bounds=(1.0, 300.0))
    assert set(skipped.facts["floor"]) == {refusal.value.floor}


def test_theory_is_computed_on_request() -> None:
    text = SMALL.replace("records = 5", "records = 5\nfacts = true") + PRIVATE
    names = ("sigma2", "spectral_gap", "mixing_time", "bound", "acceptance_rate")
    for method in ("weighted", "private"):
        each = cell(text, method=method)
        facts = run_cell(each).facts
        stated = each.description
        instance = draw_instance(stated["graph"], stated["problem"], 3, RUN, 2)
        walk = wl.walks.Weighted()
        if method == "private":  # with the release of the run
            laplace = calibrate("laplace", epsilon=3.0, delta=0.0, bounds=(1.0, 300.0))
            walk = wl.walks.Weighted(privacy=laplace)
            own = generators(replicate_seed(stream(3, RUN, 2, WALK), 0)).walk
            own.random()
            instance.problem.domain.sample(2, own)
            walk = walk.sample_release(instance.graph, instance.problem, own)
        found = wl.theory.diagnose(instance.graph, instance.problem, walk)
        expected = (
            found.residual, found.spectral_gap, found.mixing_time, found.constant.value,
            found.acceptance_rate,
        )  # fmt: skip
        assert [facts[name][2] for name in names] == pytest.approx(expected)
        assert not np.isnan([facts[name] for name in names]).any()
    without = run_cell(cell()).facts
    assert np.isnan([without[name] for name in names]).all()


def test_nodes_and_edges_of_instance_0() -> None:
    result = run_cell(cell(SMALL + PRIVATE, method="private"))
    nodes = result.nodes
    assert nodes["visits"].sum() == 200
    assert nodes["degree"].tolist() == [2] * 9
    assert nodes["stationary"] == pytest.approx(nodes["released"] / nodes["released"].sum())
    tables = (cell().description[key] for key in ("graph", "problem", "seed"))
    instance = draw_instance(*tables, RUN, 0)
    assert nodes["importance"] == pytest.approx(instance.problem.smoothness_constants)
    edges = np.column_stack([result.edges["source"], result.edges["target"]])
    assert edges.tolist() == instance.graph.edges().tolist()
    text = SMALL + GOSSIP
    gossip = run_cell(cell(text, method="gossip")).nodes
    assert gossip["visits"].sum() == 200
    assert np.isnan(gossip["stationary"]).all()


def test_share_on_the_boundary() -> None:
    shares = run_cell(cell(SMALL.replace("ball = 5.0", "ball = 0.01"))).facts["boundary_share"]
    assert (shares == 1.0).all()
    assert (run_cell(cell()).facts["boundary_share"] == 0.0).all()
    everywhere = SMALL.replace("{ ball = 5.0 }", '"everywhere"')
    assert np.isnan(run_cell(cell(everywhere)).facts["boundary_share"]).all()
