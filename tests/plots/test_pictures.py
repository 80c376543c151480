"""The pictures beside convergence: they draw what was computed, and refuse bad input."""

from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

import walklearn as wl


@pytest.fixture
def axes():
    return Figure(layout="constrained").subplots()


def render(axes):
    """Really draw: many of matplotlib's warnings come only then, and warnings are errors."""
    axes.figure.savefig(BytesIO(), format="png")


def problem_on(nodes):
    X, y = wl.datasets.two_gaussians(nodes, dimension=2, seed=1)
    return wl.Problem(X, y, penalty=1.0, domain=wl.domains.Ball(3.0))


def test_a_dot_has_the_size_of_its_visits_and_the_colour_of_their_ratio(axes):
    graph = wl.graphs.star(5)
    expected = [0.6, 0.1, 0.1, 0.1, 0.1]
    assert wl.plots.visits(graph, [60, 10, 10, 20, 0], expected, ax=axes) is axes
    dots = axes.collections[1]
    sizes = dots.get_sizes()
    assert sizes[3] / sizes[0] == pytest.approx(20 / 60)
    np.testing.assert_allclose(dots.get_array()[:4], [1.0, 1.0, 1.0, 2.0])
    assert dots.get_array()[4] == dots.norm.vmin  # never visited: the coldest colour
    render(axes)


@pytest.mark.parametrize(
    ("counts", "expected", "message"),
    [
        ([1, 2], None, "5 nodes"),
        ([0] * 5, None, "all zero"),
        ([1, 2, 3, 4, np.nan], None, "finite"),
        ([1] * 5, [1, 1, 1, 1, 0], "positive"),
    ],
)
def test_visits_that_cannot_be_drawn(counts, expected, message):
    with pytest.raises(ValueError, match=message):
        wl.plots.visits(wl.graphs.star(5), counts, expected)


def run_on(graph, walk):
    problem = problem_on(graph.node_count)
    return wl.simulate(
        problem, graph, walk, steps=20_000, step_size=wl.PowerStep(0.01), seed=1, records=1,
        replicates=2, progress=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "method",
    [
        wl.walks.Simple(),
        wl.walks.Weighted(),
        wl.walks.Weighted(privacy=wl.privacy.ClampedGamma(10.0, (1.0, 50.0))),
        wl.AsynchronousGossip(),
        wl.SynchronousGossip(),
    ],
    ids=repr,
)
def test_a_run_alone_compares_visits_with_the_expected_ones(axes, method, tmp_path):
    """40,000 visits of 50 nodes: unequal expected visits differ far more from an equal share."""
    graph = wl.graphs.barabasi_albert(50, 2, seed=1)
    run = run_on(graph, method)
    run.save(tmp_path / "run.npz")
    loaded = wl.Trace.load(tmp_path / "run.npz")
    wl.plots.visits(loaded, ax=axes)
    ratio = np.sort(run.visits / run.visits.sum() / run.expected_visits)
    np.testing.assert_allclose(np.sort(axes.get_lines()[0].get_ydata()), ratio)
    assert np.median(np.abs(ratio - 1)) < 0.15
    if not isinstance(method, wl.SynchronousGossip):
        assert np.median(np.abs(run.visits / run.visits.mean() - 1)) > 0.2
    low, high = np.quantile(ratio, (0.05, 0.95))
    assert axes.get_title() == f"9 of 10 nodes: {low:.2g} to {high:.2g} times the expected"
    render(axes)


def test_hubs_that_are_visited_too_often_stand_out_on_a_large_graph(axes):
    graph = wl.graphs.barabasi_albert(400, 2, seed=1)
    wl.plots.visits(graph, run_on(graph, wl.walks.Simple()).visits, ax=axes)
    medians = axes.get_lines()[1]
    degrees, ratio = medians.get_xdata(), medians.get_ydata()
    np.testing.assert_allclose(ratio, degrees / graph.degrees.mean(), rtol=0.3)
    assert axes.get_ylabel() == "visits / equal share"
    render(axes)


def test_on_a_regular_graph_the_ratios_are_counted(axes):
    wl.plots.visits(run_on(wl.graphs.ring(41), wl.walks.Uniform()), ax=axes)
    assert sum(bar.get_height() for bar in axes.patches) == 41
    assert axes.get_ylabel() == "nodes, each with 2 neighbours"
    render(axes)


def test_a_run_without_visits_and_a_graph_without_counts_are_refused():
    run = run_on(wl.graphs.ring(9), wl.walks.Uniform())
    with pytest.raises(ValueError, match="has no visits"):
        wl.plots.visits(replace(run, visits=None))
    with pytest.raises(ValueError, match="own visits"):
        wl.plots.visits(run, run.visits)
    with pytest.raises(ValueError, match="needs the visits"):
        wl.plots.visits(wl.graphs.ring(9))
    jumping = run_on(wl.graphs.ring(9), wl.walks.Jumping(wl.walks.Uniform()))
    assert jumping.expected_visits is None  # computing them may take longer than the run


def test_entrapment_is_one_over_the_probability_to_move(axes):
    graph, problem, walk = wl.graphs.barbell(5, 0), problem_on(10), wl.walks.Weighted(laziness=0.2)
    wl.plots.entrapment(graph, walk, problem, ax=axes)
    stay = walk.transition_matrix(graph, problem).diagonal()
    drawn = np.asarray(axes.collections[0].get_offsets())
    np.testing.assert_allclose(drawn[:, 1], 1 / (1 - stay))
    np.testing.assert_array_equal(drawn[:, 0], graph.degrees)
    assert f"{100 * walk.acceptance_rate(graph, problem):.0f} %" in axes.get_title()
    render(axes)


def test_the_price_of_privacy_is_that_of_compare(axes):
    wl.plots.privacy_tradeoff(bounds=(1.0, 10.0), delta=0.03, epsilons=[1.0, 5.0], ax=axes)
    lines = {line.get_label(): line for line in axes.get_lines()}
    table = wl.privacy.compare(epsilon=5.0, delta=0.03, bounds=(1.0, 10.0))
    for row in table.rows:
        if row.mechanism is not None:
            assert lines[row.kind].get_ydata()[1] == row.shrunk_error
    assert "gamma: infeasible at δ = 0.03" in lines
    render(axes)


def test_a_film_has_a_frame_for_each_update(tmp_path):
    graph, problem = wl.graphs.ring(6), problem_on(6)
    mechanism = wl.privacy.ClampedGamma(10.0, (1.0, 50.0))
    for walk in (wl.walks.Uniform(), wl.walks.Weighted(privacy=mechanism)):
        path = wl.plots.animate(problem, graph, walk, tmp_path / "walk.gif", steps=3, seed=1,
                               step_size=wl.PowerStep(0.1))  # fmt: skip
        with Image.open(path) as film:
            assert film.n_frames == 4
    page = wl.plots.animate(problem, graph, walk, tmp_path / "walk.html", steps=2, seed=1,
                           step_size=wl.PowerStep(0.1))  # fmt: skip
    text = page.read_text()
    assert text.count("data:image/png;base64") == 3
    assert "http://" not in text.replace("http://www.w3.org", "")


@pytest.mark.parametrize(("name", "steps"), [("walk.mp4", 3), ("walk.gif", 0), ("walk.gif", 2.5)])
def test_a_film_that_cannot_be_made_leaves_no_file(tmp_path, name, steps):
    with pytest.raises(ValueError, match=r"must end in|whole number"):
        wl.plots.animate(problem_on(6), wl.graphs.ring(6), wl.walks.Uniform(), tmp_path / name,
                        step_size=wl.PowerStep(0.1), steps=steps)  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_a_layout_is_the_same_each_time_and_refuses_large_graphs():
    graph = wl.graphs.erdos_renyi(30, 0.2, seed=1, connected="retry")
    positions = wl.graphs.spring_layout(graph)
    np.testing.assert_array_equal(positions, wl.graphs.spring_layout(graph))
    assert np.abs(positions).max() <= 1.0
    gaps = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    assert gaps[~np.eye(30, dtype=bool)].min() > 0.01  # no two dots on top of each other
    with pytest.raises(ValueError, match="1501 nodes"):
        wl.graphs.spring_layout(wl.graphs.ring(1501))
