"""Convergence: it draws the summary, with labels, and no input causes a warning."""

from io import BytesIO

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.running import python
from walklearn.plots import COSTS, METRICS, convergence
from walklearn.simulation.trace import Trace


def make_trace(replicates=8, records=5, label="Uniform()", complete=True, **metrics):
    generator = np.random.default_rng(5)
    lengths = generator.integers(1, 9, (replicates, records))
    return Trace(
        label=label,
        spec={},
        updates=10 ** np.arange(records),
        messages=np.cumsum(lengths, axis=1),
        time=np.cumsum(1.5 * lengths, axis=1),
        message_bytes=80,
        metrics={name: generator.lognormal(size=(replicates, records)) for name in METRICS}
        | metrics,
        models=np.zeros((replicates, 2)),
        averages=np.zeros((replicates, 2)),
        complete=complete,
    )


@pytest.fixture
def axes():
    return Figure().subplots()


def render(axes):
    """Really draw: many of matplotlib's warnings come only then, and warnings are errors."""
    axes.figure.savefig(BytesIO(), format="png")


@pytest.mark.parametrize("x", COSTS)
@pytest.mark.parametrize("metric", METRICS)
def test_lines_and_bands_are_the_summary_at_the_mean_cost(axes, x, metric):
    trace = make_trace()
    assert trace.plot(x=x, metric=metric, ax=axes) is axes
    summary = trace.summary(metric)
    (line,) = axes.get_lines()
    cost = trace.updates if x == "updates" else getattr(trace, x).mean(axis=0)
    np.testing.assert_allclose(line.get_xdata(), cost)
    np.testing.assert_array_equal(line.get_ydata(), summary.median)
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert set(heights) == {*summary.lower, *summary.upper}
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert (axes.get_xlabel(), axes.get_ylabel()) == (COSTS[x], METRICS[metric])
    if metric == "average_gap":
        render(axes)


def test_the_legend_names_the_methods_and_the_band(axes):
    traces = [make_trace(label="Uniform()"), make_trace(label="Weighted()", complete=False)]
    convergence(traces, ax=axes)
    legend = axes.get_legend()
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["Uniform()", "Weighted() (interrupted)"]
    title = "median of 8 replicates,\nband: its 99 % confidence interval"
    assert legend.get_title().get_text() == title


def test_one_run_is_drawn_as_it_is_and_a_dictionary_gives_names(axes):
    convergence(make_trace(), ax=axes)
    convergence({"mine": make_trace(), "cut short": make_trace(complete=False)}, ax=axes)
    names = [line.get_label() for line in axes.get_lines()]
    assert names == ["Uniform()", "mine", "cut short (interrupted)"]


def test_a_second_call_on_the_same_axes_continues_colours_and_notes(axes):
    make_trace().plot(ax=axes)
    make_trace(replicates=1, label="one").plot(ax=axes)
    first, second = axes.get_lines()
    assert first.get_color() != second.get_color()
    assert len(axes.collections) == 1  # one replicate has no band
    title = axes.get_legend().get_title().get_text()
    assert title.startswith("median of 8 replicates")
    assert title.endswith("one replicate, no band")
    render(axes)


def test_many_traces_are_distinguishable(axes):
    convergence([make_trace(label=str(number)) for number in range(20)], ax=axes)
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.get_lines()}) == 20


def test_line_options_win_over_the_defaults_in_any_spelling(axes):
    make_trace().plot(ax=axes, lw=5, c="red", label="mine")
    (line,) = axes.get_lines()
    assert (line.get_linewidth(), line.get_color(), line.get_label()) == (5, "red", "mine")
    assert axes.collections[0].get_facecolor()[0, :3] == pytest.approx([1, 0, 0])


HARD = {
    "zeros at the end": np.array([[1.0, 0.1, 0.0]] * 8),
    "negative by rounding": np.array([[1.0, 1e-9, -1e-17]] * 4 + [[1.0, -1e-17, 1e-18]] * 4),
    "infinite": np.array([[1.0, np.inf, np.inf]] * 8),
    "some diverged": np.array([[1.0, 0.1, 0.2]] * 4 + [[1.0, np.nan, np.inf]] * 4),
    "some never defined": np.array([[1.0, np.nan, np.nan]] * 8),
    "huge and tiny": np.array([[1e308, 1.0, 5e-324]] * 8),
    "one replicate": np.array([[1.0, 0.0, -1.0]]),
    "one record": np.ones((8, 1)),
}


@pytest.mark.parametrize("gap", HARD.values(), ids=HARD.keys())
def test_values_that_a_logarithm_cannot_show_are_left_out_without_a_warning(axes, gap):
    make_trace(*gap.shape, gap=gap).plot(metric="gap", ax=axes)
    (line,) = axes.get_lines()
    drawn = line.get_ydata()[~np.isnan(line.get_ydata())]
    assert (drawn > 0).all()
    assert np.isfinite(drawn).all()
    render(axes)


def test_a_trace_that_cannot_be_seen_does_not_hide_another(axes):
    convergence([make_trace(gap=np.zeros((8, 5))), make_trace()], metric="gap", ax=axes)
    assert len(axes.get_lines()) == 2
    render(axes)


def test_an_interval_that_reaches_zero_keeps_its_band(axes):
    gap = np.array([[1.0, 0.5, 0.0]] * 4 + [[2.0, 1.0, 0.25]] * 4)
    make_trace(8, 3, gap=gap).plot(metric="gap", ax=axes)
    heights = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert heights.min() == 0.25
    assert axes.get_ylim()[0] > 0


@pytest.mark.parametrize(
    ("traces", "options", "message"),
    [
        ([make_trace()], {"x": "iterations"}, "x .*'iterations'"),
        ([make_trace()], {"metric": "regret"}, "'regret'.*distance"),
        ([], {}, "no trace"),
        (
            [make_trace(), make_trace(average_distance=np.full((8, 5), np.nan))],
            {"metric": "average_distance"},
            "NaN.*metric='average_gap'",
        ),
        ([make_trace(gap=np.full((8, 5), np.nan))], {"metric": "gap"}, "NaN .*record.$"),
        ([make_trace(gap=np.zeros((8, 5)))], {"metric": "gap", "x": "bytes"}, "gap .*bytes"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_drawn(axes, traces, options, message):
    with pytest.raises(ValueError, match=message):
        convergence(traces, ax=axes, **options)
    assert not axes.get_lines()


def test_new_axes_when_none_are_given_and_no_global_setting_changes(monkeypatch):
    from matplotlib import pyplot

    monkeypatch.setattr(pyplot, "show", lambda: pytest.fail("a picture was shown"))
    pyplot.switch_backend("Agg")
    before = dict(matplotlib.rcParams)
    axes = make_trace().plot()
    render(axes)
    pyplot.close(axes.figure)
    assert dict(matplotlib.rcParams) == before


def test_importing_a_trace_does_not_import_matplotlib_or_pandas():
    program = (
        "import sys, walklearn.plots, walklearn.simulation.trace; "
        "print({'matplotlib', 'pandas', 'pyarrow', 'scipy.stats'} & set(sys.modules))"
    )
    done = python(program)
    assert done.stdout.strip() == "set()", done.stderr
