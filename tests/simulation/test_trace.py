"""The recorded run: value equality, exact round trips, honest intervals, whole files."""

import contextlib
import copy
import dataclasses
import errno
import io
import json
import math
import os
import pickle
import re
import stat
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from walklearn import plots
from walklearn.errors import MissingExtraError
from walklearn.files.atomic_write import atomic_write
from walklearn.privacy import Charge, ClampedGamma, ModelNoise
from walklearn.privacy.mechanisms.description import describe
from walklearn.simulation import trace_files
from walklearn.simulation.trace import Trace
from walklearn.simulation.trace_files import TraceFileError

SUFFIXES = (".npz", ".parquet")
METRICS = trace_files.ERRORS


def make_trace(replicates=3, records=4, metrics=None, **changes):
    """A small trace with different numbers everywhere; `metrics` are added or replaced."""
    generator = np.random.default_rng(7)
    fields = {
        "label": "Weighted()",
        "spec": {"seed": 7, "graph": {"nodes": 5}},
        "updates": 10 ** np.arange(records),
        "messages": generator.integers(0, 1000, (replicates, records)),
        "time": np.linspace(0.5, 50.0, replicates * records).reshape(replicates, records),
        "message_bytes": 16,
        "metrics": {name: generator.exponential(size=(replicates, records)) for name in METRICS}
        | (metrics or {}),
        "models": generator.normal(size=(replicates, 2)),
        "averages": generator.normal(size=(replicates, 2)),
        "visits": np.arange(5),
        "announcements": 12,
        "announcement_bytes": 96,
    }
    return Trace(**fields | changes)


# Names that could clash inside a file are among them.
METRIC_NAMES = st.sampled_from([*METRICS, "file", "walklearn", "größe"]) | st.from_regex(
    r"z_[a-z0-9_]*", fullmatch=True
)


@st.composite
def any_trace(draw):
    """Any trace at all: NaN and infinite metrics of any name, matrix models, empty visits."""
    replicates, records = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    counts = st.integers(0, 2**40)
    model_shape = (replicates, *draw(hnp.array_shapes(min_dims=0, max_dims=2, max_side=3)))
    errors = hnp.arrays(np.float64, (replicates, records))
    models = hnp.arrays(np.float64, model_shape)
    updates = st.lists(counts, min_size=records, max_size=records, unique=True).map(sorted)
    json_values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
        max_leaves=4,
    )
    return Trace(
        label=draw(st.text()),
        spec=draw(st.dictionaries(st.text(), json_values, max_size=3)),
        updates=draw(updates),
        messages=draw(hnp.arrays(np.int64, (replicates, records), elements=counts)),
        time=draw(hnp.arrays(np.float64, (replicates, records), elements=st.floats(0, 1e300))),
        message_bytes=draw(st.integers(0, 2**20)),
        metrics=draw(st.dictionaries(METRIC_NAMES, errors, max_size=4)),
        models=draw(models),
        averages=draw(models),
        visits=draw(st.none() | hnp.arrays(np.int64, st.integers(0, 3), elements=counts)),
        degrees=draw(st.none() | hnp.arrays(np.int64, st.integers(0, 3), elements=counts)),
        expected_visits=draw(st.none() | hnp.arrays(np.float64, st.integers(0, 3))),
        questions=draw(st.none() | hnp.arrays(np.int64, (replicates, records), elements=counts)),
        released=draw(st.none() | errors),
        contributions=draw(st.none() | hnp.arrays(np.int64, (replicates, 2), elements=counts)),
        privacy=draw(st.dictionaries(st.text(), json_values, max_size=2)),
        announcements=draw(counts),
        announcement_bytes=draw(counts),
        complete=draw(st.booleans()),
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(trace=any_trace())
@settings(max_examples=60, deadline=None)
def test_a_round_trip_gives_back_an_equal_trace_to_the_last_bit(tmp_path_factory, suffix, trace):
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    trace.save(path)
    loaded = Trace.load(path)
    assert loaded == trace
    assert list(loaded.metrics) == list(trace.metrics)
    for name in ("updates", "messages", "time", *trace.metrics, "models", "averages"):
        assert getattr(loaded, name).tobytes() == getattr(trace, name).tobytes(), name


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_parquet_footer_and_an_npz_hold_models_of_some_size(tmp_path, suffix):
    models = np.random.default_rng(0).normal(size=(3, 100_000))
    trace = make_trace(models=models, averages=models, label="π‖w̄‖ 漢字")
    trace.save(tmp_path / f"large{suffix}")
    assert Trace.load(tmp_path / f"large{suffix}") == trace


def test_plots_label_the_known_metrics():
    assert tuple(plots.METRICS) == (*METRICS, "value", "average_value")


def test_metrics_are_attributes():
    accuracy = np.linspace(0.1, 0.9, 12).reshape(3, 4)
    trace = make_trace(metrics={"accuracy": accuracy})
    assert list(trace.metrics) == [*METRICS, "accuracy"]
    for name, series in trace.metrics.items():
        assert getattr(trace, name) is series
        assert name in dir(trace)
    assert np.array_equal(trace.summary("accuracy").median, np.median(accuracy, axis=0))
    assert trace.to_pandas()["accuracy"].tolist() == accuracy.ravel().tolist()
    assert trace.plot(metric="accuracy").get_ylabel() == "accuracy"


def test_a_missing_metric_is_an_attribute_error_that_names_the_others():
    trace = Trace(
        label="fit", spec={}, updates=[1], messages=[[0]], time=[[0.0]], message_bytes=8,
        metrics={"value": [[1.0]]}, models=[[0.0]], averages=[[0.0]],
    )  # fmt: skip
    assert not hasattr(trace, "distance")
    assert getattr(trace, "gap", None) is None
    with pytest.raises(AttributeError, match=r"'gap'.* value.*optimum\(\)") as caught:
        _ = trace.gap
    assert (caught.value.name, caught.value.obj) == ("gap", trace)
    with pytest.raises(ValueError, match=r"fit .*'distance'.* value.*optimum\(\)"):
        trace.summary()
    with pytest.raises(AttributeError, match=f"'regret'.*{', '.join(METRICS)}"):
        _ = make_trace().regret
    with pytest.raises(AttributeError):
        object.__new__(Trace).metrics  # noqa: B018  # no fields yet, as while unpickling
    with pytest.raises(dataclasses.FrozenInstanceError):
        trace.value = np.zeros((1, 1))


def test_copies_and_replacements_keep_the_metrics():
    trace = make_trace(metrics={"accuracy": np.ones((3, 4))})
    for copied in (copy.copy(trace), copy.deepcopy(trace), pickle.loads(pickle.dumps(trace))):
        assert copied == trace
        assert (copied.accuracy == 1).all()
    fewer = dataclasses.replace(trace, metrics={"accuracy": trace.accuracy})
    assert list(fewer.metrics) == ["accuracy"]
    assert fewer != trace


@pytest.mark.parametrize(
    "name",
    ["", "my metric", "top-5", "1st", "lambda", 3, "_hidden", "__len__", "metrics", "label",
     "messages", "bytes", "time", "summary", "ledger", "questions", "replicate"],
)  # fmt: skip
def test_bad_metric_names_are_refused(name):
    with pytest.raises(ValueError, match=re.escape(repr(name))):
        make_trace(metrics={name: np.ones((3, 4))})


def test_metrics_are_a_dictionary():
    with pytest.raises(ValueError, match="metrics"):
        dataclasses.replace(make_trace(), metrics=[1.0])
    assert dataclasses.replace(make_trace(), metrics={}).metrics == {}


def test_a_value_is_recorded_or_follows_from_the_gap():
    value = np.arange(12.0).reshape(3, 4)
    trace = make_trace(metrics={"average_value": value})
    assert np.array_equal(trace.error("average_value"), value)
    trace = make_trace(spec={"optimum_value": 0.25})
    assert np.array_equal(trace.error("value"), trace.gap + 0.25)
    assert np.array_equal(
        trace.summary("average_value").median, np.median(trace.average_gap, 0) + 0.25
    )
    with pytest.raises(ValueError, match="no metric 'value'"):
        make_trace().summary("value")
    with pytest.raises(ValueError, match="value has shape"):
        make_trace(metrics={"value": value[:2]})


@pytest.mark.parametrize(
    ("names", "average", "drawn"),
    [
        (("value", "average_value", "distance"), "", "distance"),
        (("value", "average_value"), "", "average_value"),
        (("average_value", "value"), "none", "value"),
        (("accuracy", "slope"), "", "accuracy"),
    ],
)
def test_the_default_metric_of_a_plot(names, average, drawn):
    metrics = {name: np.ones((3, 4)) for name in names}
    trace = dataclasses.replace(make_trace(spec={"average": average}), metrics=metrics)
    assert trace.plot().get_ylabel() == plots.METRICS.get(drawn, drawn)


def test_other_tools_read_the_parquet_table(tmp_path):
    pandas = pytest.importorskip("pandas")
    trace = make_trace()
    trace.save(tmp_path / "trace.parquet")
    pandas.testing.assert_frame_equal(
        pandas.read_parquet(tmp_path / "trace.parquet"), trace.to_pandas()
    )


def test_pandas_has_one_row_per_replicate_and_record():
    trace = make_trace(replicates=2, records=3)
    frame = trace.to_pandas()
    names = ["label", "replicate", "updates", "messages", "bytes", "time", *METRICS]
    assert list(frame.columns) == names
    row = frame[(frame.replicate == 1) & (frame.updates == 100)].iloc[0]
    assert row.messages == trace.messages[1, 2]
    assert row.bytes == 16 * trace.messages[1, 2]
    assert row.time == trace.time[1, 2]
    assert row.average_gap == trace.average_gap[1, 2]


@pytest.mark.parametrize(
    ("package", "action"),
    [
        ("pandas", lambda trace, folder: trace.to_pandas()),
        ("pyarrow", lambda trace, folder: trace.save(folder / "t.parquet")),
        ("pyarrow.parquet", lambda trace, folder: Trace.load(folder / "there.parquet")),
    ],
)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    tmp_path, monkeypatch, package, action
):
    make_trace().save(tmp_path / "there.parquet")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError) as caught:
        action(make_trace(), tmp_path)
    assert caught.value.extra == "tables"


def test_equality_is_by_value_with_nan_equal_to_nan():
    hole = np.full((3, 4), np.nan)
    assert make_trace(metrics={"distance": hole}) == make_trace(metrics={"distance": hole})
    assert pickle.loads(pickle.dumps(make_trace())) == make_trace()
    changed = [
        {"label": "Uniform()"},
        {"spec": {}},
        {"complete": False},
        {"visits": None},
        {"metrics": {"gap": hole}},
        {"message_bytes": 8},
    ]
    assert all(make_trace(**change) != make_trace() for change in changed)
    assert make_trace() != "a trace"


def test_a_trace_is_frozen_and_keeps_its_own_copy():
    gap = np.ones((3, 4))
    trace = make_trace(metrics={"gap": gap})
    gap[:] = 2
    assert (trace.gap == 1).all()
    with pytest.raises(ValueError, match="read-only"):
        trace.gap[0, 0] = 3


def test_numpy_scalars_are_saved_as_plain_values(tmp_path):
    trace = make_trace(complete=np.bool_(False), message_bytes=np.int32(16))
    trace.save(tmp_path / "trace.npz")
    assert Trace.load(tmp_path / "trace.npz") == make_trace(complete=False)


def test_importing_a_trace_does_not_import_scipy():
    check = "import sys, walklearn.simulation.trace; sys.exit('scipy' in sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)


def test_bytes_count_every_message_but_not_the_announcements():
    trace = make_trace()
    np.testing.assert_array_equal(trace.bytes, 16 * trace.messages)
    assert (trace.replicates, trace.records) == (3, 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"updates": [1, 10, 10, 20]}, "updates .*increasing"),
        ({"updates": np.array([], int)}, "updates .*increasing"),
        ({"updates": [1.5, 2, 3, 4]}, "updates .*int64"),
        ({"messages": [1, 2, 3, 4]}, r"messages .*\(replicates, records\)"),
        ({"messages": np.zeros((0, 4), int)}, r"messages .*\(replicates, records\)"),
        ({"time": np.zeros((3, 5))}, r"time has shape \(3, 5\), .* \(3, 4\)"),
        ({"time": np.full((3, 4), -1.0)}, "time .*at least 0"),
        ({"time": np.full((3, 4), np.nan)}, "time .*finite"),
        ({"metrics": {"gap": np.ones((3, 5))}}, r"gap has shape \(3, 5\), .* \(3, 4\)"),
        ({"metrics": {"gap": "none"}}, "gap .*float64"),
        ({"models": np.ones((2, 2))}, "models has shape"),
        ({"averages": np.ones((3, 3))}, "averages has shape"),
        ({"visits": np.ones((2, 2), int)}, "visits .*per node"),
        ({"message_bytes": -1}, "message_bytes"),
        ({"announcements": 1.5}, "announcements"),
        ({"spec": {"graph": object()}}, "spec .*JSON"),
        ({"spec": [1]}, "spec .*dictionary"),
        ({"label": None}, "label"),
        ({"updates": None}, "updates .*int64"),
        ({"metrics": {"gap": None}}, "gap .*float64"),
        ({"updates": [-1, 1, 2, 3]}, "updates .*-1"),
    ],
)
def test_bad_fields_are_refused_with_their_name(changes, message):
    with pytest.raises(ValueError, match=message):
        make_trace(**changes)


def test_the_interval_covers_the_median_as_often_as_it_says():
    # 4000 independent records of 20 log-normal errors, whose median is 1. Hits are binomial:
    # being 4.5 standard deviations off has probability 7e-6, and the seed is fixed.
    trials, replicates = 4000, 20
    errors = np.random.default_rng(11).lognormal(0.0, 2.0, (replicates, trials))
    summary = make_trace(
        replicates, trials, updates=np.arange(trials), metrics={"gap": errors}
    ).summary("gap")
    hits = np.mean((summary.lower <= 1) & (summary.upper >= 1))
    assert summary.confidence == pytest.approx(0.95861, abs=1e-5)  # tables: ranks 6 and 15
    deviation = np.sqrt(summary.confidence * (1 - summary.confidence) / trials)
    assert abs(hits - summary.confidence) < 4.5 * deviation


@pytest.mark.parametrize(
    ("replicates", "confidence"), [(1, 0), (2, 0.5), (3, 0.75), (5, 0.9375), (6, 0.96875)]
)
def test_few_replicates_give_their_range_and_the_confidence_it_has(replicates, confidence):
    trace = make_trace(replicates)
    summary = trace.summary()
    assert summary.confidence == confidence
    np.testing.assert_array_equal(summary.lower, trace.distance.min(axis=0))
    np.testing.assert_array_equal(summary.upper, trace.distance.max(axis=0))


@given(st.integers(1, 400), st.floats(0.01, 0.99))
def test_ranks_are_symmetric_and_the_narrowest_with_the_confidence_asked_for(count, wanted):
    trace = make_trace(count, 1, metrics={"gap": np.arange(1.0, count + 1)[:, None]})  # ranks
    median, lower, upper, confidence = trace.summary("gap", confidence=wanted)
    rank = int(lower[0])
    assert median[0] == (count + 1) / 2
    assert rank + upper[0] == count + 1
    missing = [2 * sum(math.comb(count, k) for k in range(r)) / 2**count for r in (rank, rank + 1)]
    assert confidence == pytest.approx(1 - missing[0], abs=1e-9)
    assert confidence >= wanted - 1e-9 or rank == 1
    assert 1 - missing[1] < wanted + 1e-9 or rank == (count + 1) // 2


def test_a_run_that_diverged_counts_as_the_worst():
    gap = np.array([[1.0], [2.0], [3.0], [np.inf], [np.nan]])
    assert make_trace(5, 1, metrics={"gap": gap}).summary("gap").median == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("regret",), "'regret'.* distance, average_distance, gap"),
        (("gap", 1.0), "confidence"),
        (("gap", float("nan")), "confidence"),
    ],
)
def test_summary_refuses_what_it_does_not_know(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_trace().summary(*arguments)


def without_header(path: Path) -> None:
    if path.suffix == ".npz":
        np.savez(path, gap=np.ones(3))
    else:
        make_trace().to_pandas().to_parquet(path)


def of_format(version: int, path: Path) -> None:
    header = json.dumps({"format": "walklearn trace", "version": version})
    if path.suffix == ".npz":
        np.savez(path, walklearn=np.array(header))
    else:
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.table({"a": [1]}, metadata={"walklearn": header}), path)


def truncated(path: Path) -> None:
    make_trace().save(path)
    path.write_bytes(path.read_bytes()[:-40])


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda path: path.write_text("a,b\n1,2\n"), "not a walklearn"),
        (without_header, "not a walklearn"),
        (partial(of_format, 1), "format 1,"),
        (partial(of_format, 99), "format 99,.*Upgrade"),
        (truncated, "damaged"),
        (lambda path: path.write_bytes(b""), "damaged"),
    ],
)
def test_a_file_that_is_no_good_is_named_with_the_reason(tmp_path, suffix, prepare, message):
    path = tmp_path / f"bad{suffix}"
    prepare(path)
    with pytest.raises(TraceFileError, match=rf"bad{suffix}.*{message}"):
        Trace.load(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_missing_file_is_a_missing_file(tmp_path, suffix):
    with pytest.raises(FileNotFoundError, match=r"absent.* does not exist.*Trace\.save writes"):
        Trace.load(tmp_path / f"absent{suffix}")


@pytest.mark.parametrize("name", ["trace", "trace.csv", "trace.npz.gz"])
def test_another_suffix_is_refused_before_anything_is_written(tmp_path, name):
    for action in (make_trace().save, Trace.load):
        with pytest.raises(ValueError, match=r"\.npz or \.parquet"):
            action(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_flipped_bit_never_loads_as_other_numbers(tmp_path):
    path, trace = tmp_path / "trace.npz", make_trace()
    trace.save(path)
    whole = path.read_bytes()
    directory = whole.index(b"PK\x01\x02")  # its lengths may hide members
    positions = np.random.default_rng(3).integers(0, len(whole), 300)
    for position in (*positions, *range(directory, len(whole))):
        damaged = bytearray(whole)
        damaged[position] ^= 16
        path.write_bytes(damaged)
        with contextlib.suppress(TraceFileError):
            assert Trace.load(path) == trace  # some bits of a zip file mean nothing


@pytest.mark.parametrize("change", [{"metrics/gap": np.ones(3)}, {"surplus": np.ones(3)}])
def test_a_whole_file_whose_arrays_do_not_fit_together_is_damaged(tmp_path, change):
    path = tmp_path / "trace.npz"
    make_trace().save(path)
    with np.load(path) as arrays:
        np.savez(path, **dict(arrays) | change)
    with pytest.raises(TraceFileError, match=r"trace\.npz is .*damaged"):
        Trace.load(path)


def test_pickles_inside_a_file_are_never_opened(tmp_path):
    path = tmp_path / "trace.npz"
    make_trace().save(path)
    buffer = io.BytesIO()
    np.save(buffer, np.array([object()]), allow_pickle=True)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("extra.npy", buffer.getvalue())
    with pytest.raises(TraceFileError, match="allow_pickle"):
        Trace.load(path)


FULL_DISK = """
import resource, sys
from walklearn import Trace
trace = Trace.load(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
try:
    trace.save(sys.argv[2])
except OSError as error:
    sys.exit("File too large" not in str(error))
sys.exit(2)
"""


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, suffix):
    """In another process the system itself refuses to let a file grow past 1 kB."""
    pytest.importorskip("resource")
    path, old = tmp_path / f"trace{suffix}", make_trace(label="old")
    old.save(path)
    new = tmp_path / f"new{suffix}"
    make_trace(label="new").save(new)
    result = subprocess.run([sys.executable, "-c", FULL_DISK, new, path], check=False)
    assert result.returncode == 0
    new.unlink()
    assert list(tmp_path.iterdir()) == [path]
    assert Trace.load(path) == old


@pytest.mark.parametrize("failing", ["replace", "fsync"])
@pytest.mark.parametrize("fault", [OSError, KeyboardInterrupt])
def test_a_failure_at_the_last_moment_leaves_nothing_behind(tmp_path, monkeypatch, failing, fault):
    def fail(*arguments):
        raise fault("injected")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(fault, match="injected"):
        make_trace().save(tmp_path / "trace.npz")
    assert not list(tmp_path.iterdir())


def test_the_content_and_its_new_name_are_forced_to_the_disk(tmp_path, monkeypatch):
    order = []
    sync, rename = os.fsync, os.replace

    def record_sync(descriptor):
        order.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "content")
        sync(descriptor)

    def record_rename(source, target):
        order.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "replace", record_rename)
    monkeypatch.chdir(tmp_path)
    atomic_write("file", b"new")
    assert order == ["content", "rename", "folder"]
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"new"]


@pytest.mark.parametrize(("number", "passes"), [(errno.EINVAL, True), (errno.EIO, False)])
def test_a_folder_that_cannot_be_forced_to_the_disk(tmp_path, monkeypatch, number, passes):
    """Some network drives cannot do it at all (EINVAL); a failing disk must be reported."""
    sync = os.fsync

    def fail_on_folders(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, "injected")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fail_on_folders)
    with contextlib.nullcontext() if passes else pytest.raises(OSError, match="injected"):
        atomic_write(tmp_path / "file", b"new")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"new"]


def test_a_missing_folder_is_an_error_that_names_it(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        make_trace().save(tmp_path / "nowhere" / "trace.npz")


def test_a_place_that_takes_no_file_is_named_and_not_the_temporary_one():
    if not Path("/proc/self").exists():
        pytest.skip("needs /proc, where nobody can make a file")
    with pytest.raises(OSError, match=r"/proc/trace\.npz"):
        make_trace().save("/proc/trace.npz")


def test_a_saved_file_has_the_permissions_of_any_other(tmp_path):
    (tmp_path / "plain").touch()
    make_trace().save(tmp_path / "trace.npz")
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_a_trace_has_a_ledger_for_each_world() -> None:
    noise = ModelNoise(clip=1.0, noise_multiplier=20.0, max_contributions=5)
    constant = ClampedGamma(20.0, (1.0, 50.0))
    published = {"importance": describe(constant), "model": describe(noise), "nodes": 3}
    counts = np.array([[0, 2, 5], [1, 1, 3]])
    first, second = make_trace(2, privacy=published, contributions=counts).ledger
    for ledger in (first, second):
        assert ledger.simulated
        for node in range(3):  # whoever sees the tokens chooses when to stop: the cap is charged
            assert ledger.charges(node) == [
                Charge("importance", constant, 1),
                Charge("model", noise, 5),
            ]
    assert "nodes have made 0 to 5 so far" in str(first)
    assert "nodes have made 1 to 3 so far" in str(second)
    assert make_trace(1, privacy=published).ledger[0].charges(0)[1].times == 5
    record_unprotected = {"importance": "in the clear", "model": "in the clear", "nodes": 2}
    assert make_trace(1, privacy=record_unprotected).ledger[0].total(0, 0.1) == math.inf
    with pytest.raises(ValueError, match="published"):
        make_trace(1).ledger  # noqa: B018
