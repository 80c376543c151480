"""`simulate`: determinism, records, costs, convergence, interruption, progress, memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import walklearn as wl
from tests.running import python
from walklearn import walks
from walklearn.simulation import runner

METHODS: list[Any] = [
    walks.Weighted(),
    walks.NonBacktracking(),
    wl.AsynchronousGossip(),
    wl.SynchronousGossip(),
]


@pytest.fixture(scope="module")
def graph() -> wl.Graph:
    return wl.graphs.erdos_renyi(20, 0.3, seed=2)


@pytest.fixture(scope="module")
def problem() -> wl.Problem:
    X, y = wl.datasets.two_gaussians(20, dimension=3, variance=2.0, seed=1)
    return wl.Problem(X, y, penalty=1.0, domain=wl.domains.Ball(3.0))


def run(problem: wl.Problem, graph: wl.Graph, method: Any, **options: Any) -> wl.Trace:
    defaults = {"steps": 3000, "step_size": wl.PowerStep(0.02), "replicates": 5, "seed": 1}
    return wl.simulate(problem, graph, method, **{**defaults, **options})


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_same_seed_same_bits_for_any_number_of_cores(
    problem: wl.Problem, graph: wl.Graph, method: Any
) -> None:
    one, three = (run(problem, graph, method, cores=cores) for cores in (1, 3))
    assert one == three
    assert run(problem, graph, method, seed=2) != one


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_a_replicate_depends_on_its_number_alone(
    problem: wl.Problem, graph: wl.Graph, method: Any
) -> None:
    few, many = (run(problem, graph, method, replicates=count) for count in (2, 40))
    np.testing.assert_array_equal(few.models, many.models[:2])
    np.testing.assert_array_equal(few.average_gap, many.average_gap[:2])


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_records_do_not_change_the_run(problem: wl.Problem, graph: wl.Graph, method: Any) -> None:
    rare, dense = (run(problem, graph, method, records=records) for records in (1, 500))
    np.testing.assert_array_equal(rare.models, dense.models)
    np.testing.assert_array_equal(rare.averages, dense.averages)


def test_seed_none_is_kept_for_later(problem: wl.Problem, graph: wl.Graph) -> None:
    first = run(problem, graph, walks.Uniform(), seed=None)
    again = run(problem, graph, walks.Uniform(), seed=first.spec["seed"])
    assert first == again
    assert run(problem, graph, walks.Uniform(), seed=None) != first


def test_a_seed_sequence_can_be_used_twice(problem: wl.Problem, graph: wl.Graph) -> None:
    root = np.random.SeedSequence(9)
    root.spawn(3)
    assert run(problem, graph, walks.Uniform(), seed=root) == run(
        problem, graph, walks.Uniform(), seed=root
    )


@pytest.mark.parametrize(
    ("steps", "records", "count"), [(10_000, 200, 200), (50, 200, 50), (1, 200, 1), (7, 3, 3)]
)
def test_records_are_log_spaced_and_end_at_the_last_step(
    problem: wl.Problem, graph: wl.Graph, steps: int, records: int, count: int
) -> None:
    updates = run(problem, graph, walks.Uniform(), steps=steps, records=records).updates
    assert len(updates) == count
    assert updates[-1] == steps
    assert (np.diff(updates) > 0).all()
    if steps == 10_000:  # evenly spaced in the logarithm, once past whole numbers
        gaps = np.diff(np.log(updates[updates > 1000]))
        assert gaps.std() < 0.02 * gaps.mean()


def test_records_can_be_chosen(problem: wl.Problem, graph: wl.Graph) -> None:
    assert run(problem, graph, walks.Uniform(), records=[5, 100, 3000]).updates.tolist() == [
        5, 100, 3000,
    ]  # fmt: skip
    gossip = run(problem, graph, wl.AsynchronousGossip(), records=[5, 100], steps=3000)
    assert gossip.updates.tolist() == [6, 100]


def test_costs(problem: wl.Problem, graph: wl.Graph) -> None:
    """Updates, messages, bytes and announcements of each method, from first principles."""
    edges, size = graph.edge_count, 3 * 8
    walk = run(problem, graph, walks.Simple(), steps=100)
    assert (walk.messages == walk.updates).all()  # the simple walk always moves
    assert (walk.bytes == walk.messages * size).all()
    assert (walk.announcements, walk.announcement_bytes) == (0, 0)
    weighted = run(problem, graph, walks.Weighted(), steps=100)
    assert (weighted.messages <= weighted.updates).all()
    assert (weighted.announcements, weighted.announcement_bytes) == (2 * edges, 2 * edges * 16)
    asynchronous = run(problem, graph, wl.AsynchronousGossip(), steps=101)
    assert asynchronous.updates[-1] == 102
    assert (asynchronous.messages == asynchronous.updates).all()
    synchronous = run(problem, graph, wl.SynchronousGossip(), steps=100)
    assert synchronous.updates[-1] == 100
    assert (synchronous.messages[:, -1] == 5 * 2 * edges).all()
    tracking = run(problem, graph, wl.GradientTracking(), steps=100)
    assert (tracking.messages == synchronous.messages).all()
    assert (tracking.bytes == tracking.messages * 2 * size).all()  # a message has two vectors
    for trace in (walk, weighted, asynchronous, synchronous, tracking):
        assert trace.visits is not None
        assert trace.visits.sum() == trace.replicates * trace.updates[-1]


@pytest.mark.parametrize(
    "method",
    [
        walks.Simple(reweight="degree"),
        walks.Uniform(),
        walks.Weighted(),
        walks.NonBacktracking(walks.Weighted()),
        walks.Independent(),
        walks.Independent(walks.Weighted()),
        wl.AsynchronousGossip(),
        wl.SynchronousGossip(),
    ],
    ids=repr,
)
def test_everything_unbiased_converges(problem: wl.Problem, graph: wl.Graph, method: Any) -> None:
    """Fixed seed. Seen: last iterate .0003 to .07, average .11 to .2, from a start of 2.5.

    The average forgets the start only as fast as k^(q − 1).
    """
    options = {"step_size": wl.PowerStep(0.1), "replicates": 4}
    start = run(problem, graph, walks.Uniform(), steps=1, **options).distance.mean()
    trace = run(problem, graph, method, steps=400_000, records=2, **options)
    assert trace.average_distance[:, -1].mean() < 0.15 * start
    assert trace.distance[:, -1].mean() < 0.05 * start
    assert (trace.gap > -1e-12).all()


@pytest.mark.parametrize(
    "step_size",
    [wl.PowerStep(0.5, 0.51), wl.PowerStep(0.5, 0.75), wl.ConstantStep(0.005)],
    ids=repr,
)
def test_degree_bias_is_real_and_corrected(step_size: Any) -> None:
    """On a star, plain methods listen to the centre too much; corrected ones do not.

    The centre wants 10, nine leaves want 0, the minimiser of the mean is 1. A node with weight
    r^(1−q), r = 1 for the centre and 1/9 for a leaf, moves plain gossip to 10 / (1 + 9^q).
    """
    star, q = wl.graphs.star(10), step_size.exponent
    problem = wl.Problem(
        np.ones((10, 1)), np.r_[10.0, np.zeros(9)], loss=wl.losses.Squared(), aggregate="mean"
    )
    assert problem.solution.model == pytest.approx([1.0])

    def final(method: Any) -> float:
        options = {"steps": 500_000, "step_size": step_size, "replicates": 8, "records": 1}
        return float(run(problem, star, method, **options).models.mean())

    assert final(walks.Simple()) == pytest.approx(5.0, abs=0.1)  # half the visits are the centre's
    assert final(walks.Simple(reweight="degree")) == pytest.approx(1.0, abs=0.1)
    assert final(wl.AsynchronousGossip(corrected=False)) == pytest.approx(10 / (1 + 9**q), abs=0.1)
    assert final(wl.AsynchronousGossip()) == pytest.approx(1.0, abs=0.1)


def test_divergence_is_reported_not_raised(graph: wl.Graph) -> None:
    problem = wl.Problem(np.eye(20), np.ones(20), loss=wl.losses.Squared(), penalty=1.0)
    with pytest.warns(UserWarning, match="5 of 5 replicates ended with"):
        trace = run(problem, graph, walks.Uniform(), step_size=wl.ConstantStep(50.0))
    assert not np.isfinite(trace.gap[:, -1]).any()


def test_distances_are_nan_where_the_minimiser_is_not_unique(graph: wl.Graph) -> None:
    X = np.ones((20, 2))
    problem = wl.Problem(X, np.ones(20), loss=wl.losses.Squared())
    with pytest.warns(UserWarning, match="not unique"):
        trace = run(problem, graph, walks.Uniform(), step_size=wl.PowerStep(0.01))
    assert np.isnan(trace.distance).all()
    assert np.isfinite(trace.gap).all()


def test_gaps_can_be_left_out_or_averaged_over_fewer_nodes(
    problem: wl.Problem, graph: wl.Graph
) -> None:
    full = run(problem, graph, wl.AsynchronousGossip())
    without = run(problem, graph, wl.AsynchronousGossip(), gaps=False)
    assert np.isnan(without.gap).all()
    np.testing.assert_array_equal(without.distance, full.distance)
    some = run(problem, graph, wl.AsynchronousGossip(), gaps=7)
    assert not np.array_equal(some.gap, full.gap)
    np.testing.assert_allclose(some.gap[:, -1], full.gap[:, -1], rtol=0.5)
    np.testing.assert_array_equal(
        run(problem, graph, wl.AsynchronousGossip(), gaps=100).gap, full.gap
    )


def test_memory_does_not_grow_with_steps(problem: wl.Problem, graph: wl.Graph) -> None:
    def peak(steps: int) -> int:
        tracemalloc.start()
        run(problem, graph, walks.Weighted(), steps=steps, records=10, cores=1)
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak_bytes

    peak(1000)
    assert peak(3_000_000) < 1.2 * peak(100_000)


INTERRUPTED = """
    import os, signal, threading, warnings
    import numpy as np
    import walklearn as wl
    X, y = wl.datasets.two_gaussians(20, dimension=3, seed=1)
    problem = wl.Problem(X, y, penalty=1.0, domain=wl.domains.Ball(3.0))
    options = dict(step_size=wl.PowerStep(0.02), seed=1, cores=2)
    wl.simulate(problem, wl.graphs.ring(20), wl.walks.Weighted(), steps=10, **options)
    INTERRUPT
    warnings.simplefilter("ignore")
    run = wl.simulate(problem, wl.graphs.ring(20), wl.walks.Weighted(), steps=10**11,
                      replicates={replicates}, records={records}, **options)
    error = np.linalg.norm(run.models - problem.solution.model, axis=1)
    fits = np.isnan(error) | np.isclose(error, run.distance[:, -1], rtol=1e-9)
    print(run.complete, run.replicates, run.records, bool((run.distance > 0).all() & fits.all()))
"""

AT_A_RECORD = """
import itertools
from walklearn.simulation.runner import Runner
plain, calls = Runner._record, itertools.count(1)
def record(*everything):
    plain(*everything)
    if next(calls) == 3:
        os.kill(os.getpid(), signal.SIGINT)
Runner._record = record
"""
SOON = "threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()"


def interrupted(when: str, **options: int) -> str:
    return textwrap.dedent(INTERRUPTED).format(**options).replace("INTERRUPT", when)


@pytest.mark.parametrize("replicates", [1, 40])
def test_interrupt_keeps_what_is_done(replicates: int) -> None:
    """A real SIGINT in the middle of a run that would take hours."""
    result = python(interrupted(AT_A_RECORD, replicates=replicates, records=200), check=True)
    complete, kept, records, positive = result.stdout.split()
    assert (complete, positive) == ("False", "True")
    assert 1 <= int(kept) <= replicates
    assert 1 <= int(records) < 200


def test_interrupt_before_the_first_record_is_an_interrupt() -> None:
    result = python(interrupted(SOON, replicates=1, records=1))
    assert result.returncode != 0
    assert "KeyboardInterrupt" in result.stderr


def test_the_former_handler_is_put_back(problem: wl.Problem, graph: wl.Graph) -> None:
    before = signal.getsignal(signal.SIGINT)
    run(problem, graph, walks.Uniform())
    assert signal.getsignal(signal.SIGINT) is before


def test_runs_outside_the_main_thread(problem: wl.Problem, graph: wl.Graph) -> None:
    found: list[wl.Trace] = []
    thread = threading.Thread(target=lambda: found.append(run(problem, graph, walks.Uniform())))
    thread.start()
    thread.join()
    assert found[0] == run(problem, graph, walks.Uniform())


def test_progress_is_silent_when_piped_and_shown_on_request(
    problem: wl.Problem, graph: wl.Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    run(problem, graph, walks.Uniform())
    assert capsys.readouterr().err == ""
    run(problem, graph, walks.Uniform(), progress=True)
    assert "Uniform" in capsys.readouterr().err


def test_progress_bar_in_a_terminal() -> None:
    """A real pseudo-terminal."""
    termios = pytest.importorskip("termios")
    script = """
        import walklearn as wl
        X, y = wl.datasets.two_gaussians(20, dimension=3, seed=1)
        problem = wl.Problem(X, y, penalty=1.0)
        wl.simulate(problem, wl.graphs.ring(20), wl.walks.Uniform(), steps=100,
                    step_size=wl.PowerStep(0.01), seed=1)
    """
    controller, terminal = os.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], stderr=terminal, check=True)
    os.close(terminal)
    assert b"100%" in os.read(controller, 65536)
    os.close(controller)


def test_importing_is_light() -> None:
    """No numba, SciPy, pandas or matplotlib before they are needed."""
    script = "import sys, walklearn; print(sorted(sys.modules))"
    loaded = python(script, check=True).stdout
    for heavy in ("numba", "scipy", "pandas", "matplotlib", "joblib", "tqdm"):
        assert f"'{heavy}'" not in loaded


def test_block_size_is_not_visible(
    problem: wl.Problem, graph: wl.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [run(problem, graph, method, records=3) for method in METHODS]
    monkeypatch.setattr(runner, "BLOCK_NUMBERS", 37)
    assert [run(problem, graph, method, records=3) for method in METHODS] == expected


def test_a_node_alone_is_walked_within_its_arrays(tmp_path: Path) -> None:
    """Numba's own check of indices, in a process that compiles with it."""
    program = """
import walklearn as wl
problem = wl.Problem([[1.0, 2.0]], [1.0], penalty=1.0)
run = wl.simulate(problem, wl.graphs.complete(1), wl.walks.Uniform(), steps=5, seed=1,
                  step_size=wl.PowerStep(0.1), gaps=False)
print(run.messages[0, -1])
"""
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    assert python(program, env=os.environ | checked).stdout == "0\n"


@pytest.mark.parametrize("domain", [wl.domains.Everywhere(), wl.domains.Ball(0.3)], ids=repr)
@pytest.mark.parametrize("lazy", [False, True])
def test_tracked_gradients_end_at_the_minimiser(lazy: bool, domain: wl.domains.Domain) -> None:
    """On uneven rows and hubs, inside W and on its edge, with a constant step."""
    generator = np.random.default_rng(4)
    X = np.exp(0.5 * generator.standard_normal((12, 1))) * generator.standard_normal((12, 3))
    problem = wl.Problem(X, np.sign(generator.standard_normal(12)), penalty=1.0, domain=domain)
    graph = wl.graphs.barabasi_albert(12, 2, seed=1)
    step = wl.ConstantStep(0.2 / float(problem.smoothness_constants.max()))
    run = wl.simulate(problem, graph, wl.GradientTracking(lazy=lazy), steps=12 * 4000, seed=1,
                      step_size=step)  # fmt: skip
    assert run.distance[0, -1] < 1e-9
    plain = wl.simulate(problem, graph, wl.SynchronousGossip(), steps=12 * 4000, seed=1,
                        step_size=step)  # fmt: skip
    assert plain.distance[0, -1] > 1e-3
