"""`walklearn predict` and `export`, and what the whole command line has in common."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.running import invoke, invoke_ok, python, refusal
from walklearn.cli import main
from walklearn.models import Model
from walklearn.tables.encoding import Encoding

TABLE = pd.DataFrame(
    {"age": [30.0, 41.0, 29.0, 58.0], "city": ["Oslo", "Rome", "Oslo", "Rome"]}, index=[3, 4, 5, 6]
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a model and rows for it."""
    encoding = Encoding.of_table(TABLE)
    model = Model(
        [0.1, 0.0, 1.0, -4.5], [0.1, 0.0, 1.0, -4.5], loss="logistic",
        columns=encoding, classes=["no", "yes"], intercept=True, target="label",
    )  # fmt: skip
    model.save(tmp_path / "model")
    TABLE.to_csv(tmp_path / "new.csv", index=False)
    TABLE.assign(label=["no", "yes", "no", "no"]).to_csv(tmp_path / "known.csv", index=False)
    return tmp_path


def test_predict_writes_csv(place: Path) -> None:
    result = invoke_ok("predict", place / "model", place / "new.csv")
    assert result.stdout == "label\nno\nyes\nno\nyes\n"
    assert result.stderr == ""


def test_predict_gives_probabilities_scores_and_json(place: Path) -> None:
    out = place / "predictions.csv"
    result = invoke_ok("predict", place / "model", place / "known.csv", "--proba", "--out", out)
    assert result.stdout == ""
    assert f"{out}: 4 predictions." in result.stderr
    assert "accuracy 0.75 on 4 rows" in result.stderr
    written = pd.read_csv(out)
    expected = Model.load(place / "model").predict_proba(TABLE)
    np.testing.assert_allclose(written[["P(no)", "P(yes)"]], expected)
    found = json.loads(invoke("predict", place / "model", place / "new.csv", "--json").stdout)
    assert found == {"predictions": {"label": ["no", "yes", "no", "yes"]}, "rows": 4}
    before = out.read_bytes()
    message = refusal("predict", place / "model", place / "new.csv", "--out", out)
    assert "--force" in message
    assert out.read_bytes() == before
    invoke_ok("predict", place / "model", place / "new.csv", "--out", out, "--force")
    assert out.read_text() == "label\nno\nyes\nno\nyes\n"


def test_classes_that_look_like_numbers(place: Path) -> None:
    """A network's plan names its classes as texts."""
    model = Model([1.0], [1.0], loss="logistic", columns=["x"], classes=["0", "1"], target="y")
    model.save(place / "numbers")
    pd.DataFrame({"x": [1.0, -1.0], "y": [1, 0]}).to_csv(place / "xy.csv", index=False)
    result = invoke("predict", place / "numbers", place / "xy.csv")
    assert result.stdout == "y\n1\n0\n"
    assert "accuracy 1 on 2 rows" in result.stderr


def test_predict_reads_only_the_needed_columns(place: Path) -> None:
    TABLE.assign(label=["", "yes", "no", "no"], note=[1, "?", "", 2]).to_csv(
        place / "empty.csv", index=False
    )
    result = invoke_ok("predict", place / "model", place / "empty.csv")
    assert result.stdout == "label\nno\nyes\nno\nyes\n"
    assert result.stderr == ""


def test_predict_prints_r_squared_of_a_regressor(place: Path) -> None:
    model = Model([2.0], [2.0], loss="squared", columns=["x"], target="y")
    model.save(place / "line")
    pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [2.0, 4.0, 7.0]}).to_csv(place / "xy.csv", index=False)
    result = invoke("predict", place / "line", place / "xy.csv")
    assert result.stdout == "y\n2.0\n4.0\n6.0\n"
    assert f"R² {1 - 1 / (38 / 3):.4g} on 3 rows" in result.stderr


def test_export_is_read_by_other_tools(place: Path) -> None:
    import joblib
    import onnxruntime

    labels = Model.load(place / "model").predict(TABLE)
    for name in ("model.onnx", "model.joblib"):
        invoke_ok("export", place / "model", place / name)
    np.testing.assert_array_equal(joblib.load(place / "model.joblib").predict(TABLE), labels)
    session = onnxruntime.InferenceSession(place / "model.onnx")
    inputs = {name: TABLE[[name]].to_numpy() for name in TABLE}
    np.testing.assert_array_equal(session.run(["label"], inputs)[0], labels)
    for name, complaint in (("model.onnx", "--force"), ("model.pmml", ".onnx (ONNX) or .joblib")):
        message = refusal("export", place / "model", place / name)
        assert complaint in message


def test_help_is_grouped_and_every_command_has_examples_or_commands() -> None:
    overview = invoke("--help").output
    assert "Learn from your data:" in overview
    assert "Examples:" in overview
    for name in main.list_commands(None):  # type: ignore[arg-type]
        assert f"  {name} " in overview, name
        assert invoke(name, "--help").exit_code == 0, name


def test_a_misspelt_command_is_guessed() -> None:
    message = refusal("predcit")
    assert "'predict'" in message


def test_ctrl_c_is_exit_code_130(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    def interrupt(path: Path) -> Model:
        raise KeyboardInterrupt

    monkeypatch.setattr(Model, "load", interrupt)
    result = invoke("predict", place / "model", place / "new.csv")
    assert result.exit_code == 130
    assert "Interrupted" in result.stderr


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    message = refusal("export", place / "model", place / "model.onnx")
    assert "[onnx]" in message
    assert not (place / "model.onnx").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    """As README says, Click prints the script that completes commands with the Tab key."""
    words = {"COMP_WORDS": "walklearn pred", "COMP_CWORD": "1" if shell != "fish" else "pred"}
    program = "from walklearn.cli import main; main(prog_name='walklearn')"
    for asked, printed in (
        ("source", f"_WALKLEARN_COMPLETE={shell}_complete"),
        ("complete", "predict"),
    ):
        environment = {**os.environ, **words, "_WALKLEARN_COMPLETE": f"{shell}_{asked}"}
        done = python(program, env=environment)
        assert printed in done.stdout, done.stderr
