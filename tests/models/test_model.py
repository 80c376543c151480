"""The model: predictions, the directory, and its twins in scikit-learn and ONNX."""

from __future__ import annotations

import contextlib
import json
import pickle
import tempfile
import warnings
from copy import copy
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.running import python
from walklearn.models import Model, ModelFileError
from walklearn.tables.encoding import Column, Encoding
from walklearn.tables.schema import Schema

GENERATOR = np.random.default_rng(7)
TABLE = pd.DataFrame(
    {
        "age": GENERATOR.normal(50.0, 20.0, 200),
        "city": GENERATOR.choice(["Oslo", "Rome", "Zürich"], 200),
        "value": GENERATOR.normal(size=200),
    }
)
ENCODING = Schema.of(
    {"age": {"range": (20.0, 95.0)}, "value": {"centre": 1.0, "spread": 2.0, "cut_off": 1.5}}
).apply_to(Encoding.of_table(TABLE))
SIZE = 6  # three categories, two numbers, the intercept
KINDS: dict[str, tuple[str, list[Any] | None, tuple[int, ...]]] = {
    "texts": ("logistic", ["no", "yes"], (SIZE,)),
    "whole numbers": ("logistic", [-1, 1], (SIZE,)),
    "softmax": ("softmax", [1, 2, 3], (3, SIZE)),
    "softmax of two": ("softmax", ["a", "b"], (2, SIZE)),
    "one against the rest": ("logistic", ["a", "b", "c"], (3, SIZE)),
    "squared hinge": ("squared-hinge", [0.5, 1.5], (SIZE,)),
    "squared hinge of three": ("squared-hinge", ["a", "b", "c"], (3, SIZE)),
    "squared": ("squared", None, (SIZE,)),
    "huber": ("huber", None, (SIZE,)),
}


def model_of(kind: str, **settings: Any) -> Model:
    loss, classes, shape = KINDS[kind]
    weights = np.random.default_rng(1).normal(size=shape)
    return Model(
        weights, 2.0 * weights, loss=loss,
        **{"columns": ENCODING, "classes": classes, "intercept": True, **settings},
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", [True, False])
def test_scores_and_predictions(kind: str, intercept: bool) -> None:
    _, classes, shape = KINDS[kind]
    columns = Encoding.of_numbers(SIZE - intercept)
    X = np.random.default_rng(2).normal(size=(50, SIZE - intercept))
    for uses, factor in (("last", 1.0), ("average", 2.0)):
        model = model_of(kind, columns=columns, intercept=intercept, iterate=uses)
        w = factor * np.random.default_rng(1).normal(size=shape)
        extended = np.column_stack([X, np.ones(50)]) if intercept else X
        scores = extended @ np.atleast_2d(w).T
        np.testing.assert_allclose(model.scores(X), scores)
        found = model.predict(X)
        if classes is None:
            np.testing.assert_allclose(found, scores[:, 0])
        elif len(shape) == 1:
            np.testing.assert_array_equal(found == classes[1], scores[:, 0] > 0)
        else:
            np.testing.assert_array_equal(found, np.array(classes)[scores.argmax(axis=1)])
        if not model.gives_probabilities:
            if classes is not None:
                with pytest.raises(ValueError, match="scores, not probabilities"):
                    model.predict_proba(X)
            continue
        shares = model.predict_proba(X)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        np.testing.assert_array_equal(np.array(classes)[shares.argmax(axis=1)], found)


def test_probabilities_of_large_scores_do_not_overflow() -> None:
    model = Model([1.0], [1.0], loss="logistic", classes=[0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.predict_proba([[1e4], [-1e4]]).tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_a_model_cannot_be_changed() -> None:
    model = Model([2.0, -1.0], [2.0, -1.0], loss="squared")
    for name in ("weights", "weigths"):
        with pytest.raises(FrozenInstanceError, match=name):
            setattr(model, name, 3)
    with pytest.raises(FrozenInstanceError, match="weights"):
        del model.weights
    for copied in (copy(model), pickle.loads(pickle.dumps(model))):
        assert (copied.weights == model.weights).all()
        with pytest.raises(FrozenInstanceError):
            copied.weights = 3


def test_a_model_shares_no_dictionary_with_its_maker() -> None:
    """Its claim would otherwise change when the maker's dictionary does."""
    privacy = {"private": True, "epsilon": 1.0, "delta": 1e-5, "unit": "rows", "adversary": "all"}
    model = model_of("squared", privacy=privacy, target=3)
    privacy["epsilon"] = 9.0
    assert model.claim.epsilon == 1.0
    assert model_of("squared", privacy=None).privacy == {}
    assert model.target == "3"


@pytest.mark.parametrize("kind", KINDS)
def test_a_directory_gives_the_model_back(kind: str, tmp_path: Path) -> None:
    model = model_of(
        kind, target="label", walk="Uniform()", updates=12, penalty=0.5, iterate="last",
        privacy={"protected": "nothing"}, ledger={"nodes": 3},
        details={"rows": 200, "seed": None, "final": True, "names": ["a", "b"]},
    )  # fmt: skip
    model.save(tmp_path / "deep" / "model")
    loaded = Model.load(tmp_path / "deep" / "model")
    np.testing.assert_array_equal(loaded.predict(TABLE), model.predict(TABLE))
    np.testing.assert_array_equal(loaded.average, model.average)
    for name in (
        "kind", "loss", "encoding", "classes", "intercept", "penalty", "updates", "iterate",
        "target",
        "walk", "privacy", "ledger", "details",
    ):  # fmt: skip
        assert getattr(loaded, name) == getattr(model, name), name
    report = (tmp_path / "deep" / "model" / "report.md").read_text(encoding="utf-8")
    for part in ("'label'", "city=Zürich", "(intercept)", "Uniform()", "rows: 200", "nothing",
                 "final: yes", "names: a, b"):  # fmt: skip
        assert part in report, part
    assert "None" not in report
    assert loaded.report == report
    assert [each.name for each in (tmp_path / "deep").iterdir()] == ["model"]


@pytest.mark.parametrize("kind", KINDS)
def test_onnx_predicts_the_same(kind: str) -> None:
    import onnxruntime

    model = model_of(kind)
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    columns = {name: TABLE[[name]].to_numpy() for name in TABLE}
    found = dict(
        zip([out.name for out in session.get_outputs()], session.run(None, columns), strict=True)
    )
    if model.classes is None:  # a column is called like the output
        np.testing.assert_allclose(found["predicted_value"][:, 0], model.predict(TABLE))
        return
    np.testing.assert_array_equal(found["label"], model.predict(TABLE))
    if model.gives_probabilities:
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(TABLE), atol=1e-12)
    else:
        scores = model.scores(TABLE)
        expected = scores if scores.shape[1] > 1 else np.hstack([-scores, scores])
        np.testing.assert_allclose(found["scores"], expected)


def test_onnx_of_numbers_has_one_input() -> None:
    import onnxruntime

    X = np.random.default_rng(3).normal(size=(20, 5))
    columns = Encoding.of_numbers(["a", "b", "c", "/scores", "label"])
    model = model_of("texts", columns=columns)
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    labels, shares = session.run(["label", "probabilities"], {"X": X})
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(shares, model.predict_proba(X))


@pytest.mark.parametrize("kind", KINDS)
def test_scikit_learn_predicts_the_same(kind: str) -> None:
    from sklearn.utils.validation import check_is_fitted

    model = model_of(kind)
    if kind == "one against the rest":
        with pytest.raises(ValueError, match="softmax"):
            model.to_sklearn()
        return
    estimator = model.to_sklearn()
    check_is_fitted(estimator)
    if model.classes is None:
        np.testing.assert_allclose(estimator.predict(TABLE), model.predict(TABLE))
    else:
        np.testing.assert_array_equal(estimator.predict(TABLE), model.predict(TABLE))
    if model.gives_probabilities:
        np.testing.assert_allclose(estimator.predict_proba(TABLE), model.predict_proba(TABLE))
    with pytest.raises(ValueError, match="Bergen"):
        estimator.predict(TABLE.assign(city="Bergen"))


def test_scikit_learn_of_numbers_needs_no_encoder() -> None:
    table = TABLE[["age", "value"]]
    encoding = Encoding((Column("age", None, 57.5, 37.5), Column("value")))
    model = Model(
        [1.0, 2.0, 3.0], [1.0, 2.0, 3.0], loss="squared", columns=encoding,
        intercept=True,
    )  # fmt: skip
    estimator = model.to_sklearn()
    assert type(estimator).__name__ == "Ridge"
    np.testing.assert_allclose(estimator.predict(table), model.predict(table))


def test_nothing_is_overwritten_by_accident(tmp_path: Path) -> None:
    model, other = model_of("texts", updates=1), model_of("texts", updates=2)
    (tmp_path / "empty").mkdir()
    model.save(tmp_path / "empty")
    with pytest.raises(FileExistsError, match=r"empty.*--force"):
        other.save(tmp_path / "empty")
    assert Model.load(tmp_path / "empty").updates == 1
    other.save(tmp_path / "empty", overwrite=True)
    assert Model.load(tmp_path / "empty").updates == 2
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("years of work")
    for place in ("home", "home/thesis.txt"):
        with pytest.raises(FileExistsError, match="never overwritten"):
            model.save(tmp_path / place, overwrite=True)
    assert (tmp_path / "home" / "thesis.txt").read_text() == "years of work"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["empty", "home"]


def test_a_failed_save_leaves_the_former_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from walklearn.models import directory

    model_of("texts", updates=1).save(tmp_path / "model")

    def full(path: Path, content: bytes) -> None:
        if path.name == "report.md":
            raise OSError(28, "No space left on device")
        path.write_bytes(content)

    monkeypatch.setattr(directory, "atomic_write", full)
    with pytest.raises(OSError, match="No space"):
        model_of("texts", updates=2).save(tmp_path / "model", overwrite=True)
    assert Model.load(tmp_path / "model").updates == 1
    assert [each.name for each in tmp_path.iterdir()] == ["model"]


def test_damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model"

    def damaged(file: str, content: bytes | None) -> Path:
        model_of("texts").save(path, overwrite=path.exists() and (path / "model.json").exists())
        if content is None:
            (path / file).unlink()
        else:
            (path / file).write_bytes(content)
        return path

    def header(**changes: Any) -> bytes:
        model_of("texts").save(path, overwrite=path.exists())
        content = json.loads((path / "model.json").read_text(encoding="utf-8"))
        return json.dumps({**content, **changes}).encode()

    with pytest.raises(ModelFileError, match=r"nowhere does not.*walklearn train"):
        Model.load(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match="not a model"):
        Model.load(tmp_path)
    for file, content, message in (
        ("weights.npz", None, r"weights.npz is missing"),
        ("weights.npz", b"PK\x03\x04 cut", r"damaged"),
        ("weights.npz", b"", r"damaged"),
        ("ledger.json", b"{", r"damaged"),
        ("model.json", header(version=99, walklearn="9.9"), r"format 99 of walklearn 9.9.*Upgrade"),
        ("model.json", header(loss="oracle"), r"'oracle'.* logistic"),
        ("model.json", header(classes=["a", "b", "c"]), r"must have shape \(3, 6\)"),
        (
            "model.json",
            header(columns=[{"name": "age", "centre": 0, "spread": 1}]),
            r"shape \(2,\)",
        ),
        ("model.json", header(columns=[{"name": "age"}]), r"'centre' is missing"),
    ):
        with pytest.raises(ModelFileError, match=message):
            Model.load(damaged(file, content))
        for rest in path.iterdir():
            rest.unlink()
    (path / "model.json").write_bytes(b"{")
    with pytest.raises(ModelFileError, match=r"model.json is damaged"):
        Model.load(path)
    (path / "model.json").write_bytes(b"[]")
    with pytest.raises(ModelFileError, match="does not describe"):
        Model.load(path)


@given(
    file=st.sampled_from(["model.json", "weights.npz", "ledger.json"]),
    at=st.floats(0, 1),
    content=st.binary(min_size=1, max_size=8),
)
@settings(max_examples=80, deadline=None)
def test_any_damage_is_refused_or_harmless(file: str, at: float, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        model_of("texts").save(path)
        whole = (path / file).read_bytes()
        place = int(at * (len(whole) - 1))
        (path / file).write_bytes(whole[:place] + content + whole[place + len(content) :])
        with contextlib.suppress(ModelFileError):
            Model.load(path).scores(np.zeros((1, Model.load(path).encoding.feature_count)))


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    model_of("texts").save(tmp_path / "model")
    evil = np.array([{"any": "object"}], dtype=object)
    np.savez(tmp_path / "model" / "weights.npz", model=evil, average=evil)
    with pytest.raises(ModelFileError, match="allow_pickle"):
        Model.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": "absolute"}, "'absolute'"),
        ({"classes": None}, r"classes"),
        ({"classes": ["a"]}, r"2 classes.*\['a'\]"),
        ({"classes": ["a", "a"]}, r"all different"),
        ({"weights": [np.nan] * SIZE}, r"weights .*NaN"),
        ({"weights": [1.0] * 3}, r"weights .*\(6,\)"),
        ({"iterate": "best"}, r'"average" or "last"'),
        ({"loss": "squared"}, r"regressor .*classes"),
    ],
)
def test_models_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    settings: dict[str, Any] = {
        "weights": [1.0] * SIZE, "average": [1.0] * SIZE, "loss": "logistic",
        "classes": ["a", "b"], "columns": ENCODING, "intercept": True, **changes,
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        Model(settings.pop("weights"), settings.pop("average"), **settings)


def test_too_few_weights_for_the_classes_are_named() -> None:
    with pytest.raises(ValueError, match=r"weights must have .*\(3, 1\) .*got \(2,\)"):
        Model([1.0, 2.0], [1.0, 2.0], loss="logistic", classes=[1, 2, 3])


def test_wrong_features_are_named() -> None:
    model = model_of("texts")
    with pytest.raises(ValueError, match=r"shape \(rows, 5\).*got \(2, 3\)"):
        model.predict(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"row 1 of X .*NaN"):
        model.predict([[0.0] * 5, [np.nan] * 5])
    with pytest.raises(
        ValueError, match=r"row 0, column 'city': 'rome' is not among.*did you mean 'Rome'"
    ):
        model.predict(TABLE.assign(city="rome"))


def test_a_flat_model_of_many_classes_is_read_row_by_row() -> None:
    flat = np.arange(12.0)
    model = Model(flat, flat, loss="softmax", classes=list("abc"), intercept=True)
    np.testing.assert_array_equal(model.coefficients, [[0, 1, 2], [4, 5, 6], [8, 9, 10]])
    np.testing.assert_array_equal(model.intercepts, [3, 7, 11])


def test_loading_needs_no_heavy_package(tmp_path: Path) -> None:
    model_of("texts").save(tmp_path / "model")
    script = (
        "import sys; from walklearn.models import Model; Model.load(sys.argv[1]); "
        "print([n for n in ('scipy', 'pandas', 'numba', 'sklearn') if n in sys.modules])"
    )
    done = python(script, tmp_path / "model")
    assert done.stdout.strip() == "[]", done.stderr
