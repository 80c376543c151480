"""A fit in MLflow: a real store in a file, and of private rows only what may be published."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

import walklearn as wl
from tests.running import invoke

# MLflow's own way with the packages that it stands on.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

X, y = load_breast_cancer(return_X_y=True)
PROTECTED = {"epsilon": 3.0, "delta": 1e-5, "row_length": 5.0}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An SQLite store, made once: making its tables takes seconds."""
    folder = tmp_path_factory.mktemp("mlflow")
    logging.getLogger("mlflow").setLevel(logging.ERROR)
    client = mlflow.MlflowClient(f"sqlite:///{folder}/runs.db")
    client.create_experiment("walks", artifact_location=(folder / "artifacts").as_uri())
    return f"sqlite:///{folder}/runs.db"


@pytest.fixture
def client(store: str, monkeypatch: pytest.MonkeyPatch) -> mlflow.MlflowClient:
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "walks")
    mlflow.set_tracking_uri(store)
    mlflow.set_experiment("walks")
    return mlflow.MlflowClient()


def last_run(client: mlflow.MlflowClient) -> mlflow.entities.Run:
    experiment = client.get_experiment_by_name("walks")
    return client.search_runs([experiment.experiment_id], order_by=["start_time DESC"])[0]


def document(client: mlflow.MlflowClient, run: mlflow.entities.Run, name: str) -> dict:
    return json.loads(
        Path(mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path=name))
        .read_text(encoding="utf-8")
    )  # fmt: skip


def test_a_fit_is_a_run_with_parameters_trace_and_ledger(client):
    fit = wl.RandomWalkClassifier(random_state=1, penalty=0.01, callback=wl.MlflowCallback())
    fit.fit(X, y)
    run = last_run(client)
    assert run.info.status == "FINISHED"
    assert run.data.params["penalty"] == "0.01"
    assert "callback" not in run.data.params
    for name, values in (
        ("messages", fit.trace_.messages),
        ("average_value", fit.trace_.average_value),
    ):
        logged = client.get_metric_history(run.info.run_id, name)
        assert [metric.step for metric in logged] == fit.trace_.updates.tolist()
        np.testing.assert_allclose([metric.value for metric in logged], values[0])
    assert document(client, run, "ledger.json") == json.loads(json.dumps(fit.ledger_.to_dict()))
    assert run.data.tags["walklearn.private"] == "False"


def test_of_private_rows_only_what_may_be_published_is_logged(client):
    fit = wl.RandomWalkClassifier(**PROTECTED, callback=wl.MlflowCallback())
    fit.fit(X, y, nodes=np.arange(len(X)) % 5)
    run = last_run(client)
    assert set(run.data.metrics) == {"messages", "bytes"}
    assert run.data.tags["walklearn.epsilon"] == "3.0"
    names = {item.path for item in client.list_artifacts(run.info.run_id)}
    assert names == {"ledger.json", "privacy.json", "training.json"}
    assert document(client, run, "training.json") == fit.to_model().details
    assert "rows" not in document(client, run, "training.json")


def test_the_owner_may_ask_for_more():
    fit = wl.RandomWalkClassifier(**PROTECTED, random_state=1).fit(X, y)
    hidden = wl.MlflowCallback().record(fit, {"training_accuracy": 0.9})
    told = wl.MlflowCallback(include_private=True).record(fit, {"training_accuracy": 0.9})
    names = {name for name, _, _ in told.metrics} - {name for name, _, _ in hidden.metrics}
    assert names == {"value", "average_value", "rows", "training_accuracy"}


def test_a_run_of_ones_own_holds_the_fits(client):
    with mlflow.start_run() as mine:
        fit = wl.RandomWalkRegressor(steps=200, random_state=1, callback=wl.MlflowCallback())
        fit.fit(X, y)
    assert last_run(client).data.tags["mlflow.parentRunId"] == mine.info.run_id


def test_a_store_that_fails_is_a_warning_and_the_fit_remains():
    mlflow.set_tracking_uri("http://127.0.0.1:9")  # nothing listens there
    fit = wl.RandomWalkRegressor(steps=200, random_state=1, callback=wl.MlflowCallback())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        with pytest.warns(UserWarning, match="127.0.0.1:9/.*MLFLOW_TRACKING_URI"):
            fit.fit(X, y)
    assert fit.predict(X[:3]).shape == (3,)


def test_train_logs_the_scores_of_public_rows_and_none_of_private_ones(client, tmp_path):
    table = pd.DataFrame(X[:, :3], columns=["radius", "texture", "perimeter"])
    table.assign(ill=np.where(y, "yes", "no")).to_csv(tmp_path / "rows.csv", index=False)
    scales = [f"--scale={name}={table[name].mean()},{table[name].std()}" for name in table]
    common = ("train", tmp_path / "rows.csv", "--target", "ill", "--track", "mlflow", "--force",
              "--out", tmp_path / "model", "--steps", "500", "--json", "--seed", "1")  # fmt: skip
    facts = json.loads(invoke(*common).stdout)
    score = facts["private_to_the_owner"]["training_score"]["value"]
    assert last_run(client).data.metrics["training_accuracy"] == pytest.approx(score)
    assert facts["mlflow"]["run_id"] == last_run(client).info.run_id
    output = invoke(*(word for word in common if word != "--json")).stdout
    run_id, uri = last_run(client).info.run_id, mlflow.get_tracking_uri()
    assert f"MLflow run {run_id} in {uri}. Show it with:\n  mlflow ui --backend" in output
    assert "MLflow run" not in invoke(*common, "--quiet").stdout
    protected = invoke(*common, "--epsilon", "3", "--delta", "1e-5",
                       "--task", "classification", *scales)  # fmt: skip
    assert protected.exit_code == 0, protected.output
    assert set(last_run(client).data.metrics) == {"messages", "bytes"}
    assert last_run(client).data.params["graph"] == "Network(Graph(569 nodes, 3,666 edges))"


def test_track_owners_alone_is_told(tmp_path):
    (tmp_path / "rows.csv").write_text("x,y\n1,0\n2,1\n", encoding="utf-8")
    result = invoke("train", tmp_path / "rows.csv", "--target", "y", "--out", tmp_path / "model",
                    "--track-private")  # fmt: skip
    assert result.exit_code == 2
    assert "--track mlflow" in result.output
