"""Summaries of runs: centres and their intervals."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from walklearn.simulation.intervals import mean_interval
from walklearn.studies import Results
from walklearn.studies.report.bands import all_bands, panels, summary
from walklearn.studies.report.figures import Series


def test_averages_are_over_instances(results: Results) -> None:
    """A cell's bands are those of its stored rows, taken instance by instance."""
    records = results.records()
    for cell in all_bands(records, results.facts(), str)[:5]:
        rows = records[records["cell"] == cell.names["cell"]]
        means = rows.groupby(["updates", "instance"])[["messages", "gap"]].mean()
        by_record = means.groupby("updates").mean()
        np.testing.assert_allclose(cell.columns["gap mean"], by_record["gap"])
        np.testing.assert_allclose(cell.columns["messages"], by_record["messages"])
        np.testing.assert_allclose(
            cell.columns["gap median"], means["gap"].groupby("updates").median()
        )
        assert (cell.columns["gap mean lower"] <= cell.columns["gap mean"]).all()
        assert (cell.columns["gap mean"] <= cell.columns["gap mean upper"]).all()


def test_replicates_of_an_instance_are_averaged_first() -> None:
    errors = {"instance": [0, 0, 1, 1], "replicate": [0, 1, 0, 1], "updates": 5}
    cell = pandas.DataFrame({
        **errors, **dict.fromkeys(("graph", "problem", "method", "step_size", "cell"), "a"),
        "messages": 1, "bytes": 8, "time": 1.0, "distance": [1.0, 3.0, 10.0, 20.0],
        "average_distance": 1.0, "gap": 1.0, "average_gap": [1.0, np.nan, 2.0, 2.0],
    })  # fmt: skip
    shuffled = cell.sample(frac=1.0, random_state=1)
    columns = all_bands(shuffled, pandas.DataFrame(), str)[0].columns
    assert columns["distance median"] == (2.0 + 15.0) / 2
    assert columns["average_gap mean"] == np.inf  # one run of instance 0 diverged


def test_a_diverged_instance_spoils_the_mean_and_not_the_median() -> None:
    values = np.ones((20, 1))
    values[7] = np.inf
    found = summary(values)
    assert found["mean"] == np.inf
    assert np.isnan(found["mean upper"])
    assert found["median"] == found["median upper"] == 1.0


def test_few_instances_have_no_band() -> None:
    few, enough = (summary(np.arange(float(count))[:, None]) for count in (9, 10))
    assert all(np.isnan(few[f"{centre} lower"]) for centre in ("mean", "median"))
    assert all(np.isfinite(enough[f"{centre} lower"]) for centre in ("mean", "median"))


def test_the_bootstrap_agrees_with_the_normal_distribution() -> None:
    """For 400 normal values the interval is mean ± 1.96 s/√n, up to the error of 2000 resamples.

    Its ends are quantiles of 2000 draws, with a standard error of 0.06 s/√n; five of them are
    exceeded with probability below 1e-6, and the seed is fixed.
    """
    values = np.random.default_rng(5).normal(size=(400, 1))
    lower, upper = mean_interval(values)
    error = values.std() / 20
    assert lower == pytest.approx(values.mean() - 1.96 * error, abs=0.3 * error)
    assert upper == pytest.approx(values.mean() + 1.96 * error, abs=0.3 * error)


def test_titles_name_the_differences(results: Results) -> None:
    cells = all_bands(results.records(), results.facts(), str)
    series = [Series("one", {}, "")]
    titles = [figure.title for figure in panels(cells, lambda _: series)]
    assert titles[:2] == ["er · a", "er · b"]
    assert len(titles) == 8
