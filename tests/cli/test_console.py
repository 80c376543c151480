"""--quiet, --verbose and --json: every command has them, and means the same by them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pytest

from tests.running import invoke, invoke_ok, refusal
from walklearn.cli import main
from walklearn.cli.console import Console
from walklearn.models import Model

COMMON = {"as_json", "verbose", "quiet"}
# What each command is tried with, in the directory `place`. Those that take long, or a network, are
# tried with --json where they are tested anyway.
TRIED: dict[str, str] = {
    "train": "rows.csv --target y --steps 50 --seed 1 --out trained --force",
    "schema": "rows.csv --target y",
    "example": "hospitals {fresh}",
    "predict": "model rows.csv",
    "advise": "--graph ring --nodes 8 --features 3",
    "export": "model model.joblib --force",
    "privacy calibrate": "--epsilon 3 --delta 0.03 --bounds 1 50",
    "privacy compare": "--epsilon 3 --delta 0.03 --bounds 1 50",
    "privacy plot": "--bounds 1 3 --out p.png",
    "privacy attack": "--nodes 8 --steps 50",
    "privacy audit": "--epsilon 3 --delta 0.03 --bounds 1 50 --samples 2000",
    "plan new": "--schema schema.toml --target y --classes no,yes --nodes 8 --rows 40 "
    "--out {fresh}.toml",
    "plan check": "plan.toml",
    "node roster new": "{fresh}.roster",
    "node roster show": "some.roster",
}
ELSEWHERE = {
    "up", "demo", "run", "reproduce", "report",
    *(f"node {name}" for name in ("init", "invite", "peer", "join", "run", "start-walk",
                                  "status", "model", "roster add")),
}  # fmt: skip


def leaves(group: click.Group = main, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        words = f"{path} {name}".strip()
        if isinstance(command, click.Group):
            yield from leaves(command, words)
        else:
            yield words, command


COMMANDS = dict(leaves())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("console")
    X = np.random.default_rng(1).normal(size=(40, 2))
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=np.where(X[:, 0] > 0, "yes", "no"))
    table.to_csv(folder / "rows.csv", index=False)
    Model(
        [1.0, 0.0], [1.0, 0.0], loss="logistic", columns=["a", "b"],
        classes=["no", "yes"], target="y",
    ).save(folder / "model")  # fmt: skip
    (folder / "schema.toml").write_text("[a]\nspread = 1\n[b]\nspread = 1\n")
    assert invoke("node", "roster", "new", folder / "some.roster").exit_code == 0
    made = ("--target", "y", "--classes", "no,yes", "--nodes", "8", "--rows", "40")
    written = ("--schema", folder / "schema.toml", "--out", folder / "plan.toml")
    assert invoke("plan", "new", *made, *written).exit_code == 0
    return folder


@pytest.fixture(autouse=True)
def there(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


def words_of(path: str, fresh: str) -> list[str]:
    return [*path.split(), *TRIED[path].format(fresh=fresh).split()]


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_all_three(path: str) -> None:
    options = {parameter.name: parameter for parameter in COMMANDS[path].params}
    assert options.keys() >= COMMON, f"{path} lacks @with_console"
    for name in COMMON:
        assert options[name].is_flag  # type: ignore[attr-defined]
        assert options[name].opts[0] == f"--{name.removeprefix('as_')}"
    assert (path in TRIED) != (path in ELSEWHERE), f"say how to try {path}"


@pytest.mark.parametrize("path", TRIED)
def test_json_is_one_document_quiet_is_quiet_and_verbose_is_longer(path: str) -> None:
    found = invoke_ok(*words_of(path, "one"), "--json")
    facts = json.loads(found.stdout, parse_constant=lambda name: pytest.fail(name))
    assert isinstance(facts, dict)
    assert facts
    result = invoke_ok(*words_of(path, "two"))
    assert result.stdout
    more = invoke(*words_of(path, "three"), "--verbose")
    assert len(more.stdout) >= len(result.stdout.replace("two", "three")) - 120  # the hint at it
    quiet = invoke_ok(*words_of(path, "four"), "--quiet")
    gives = ("predict", "schema")  # what they print is what they are for
    assert bool(quiet.stdout) == (path in gives)


def test_quiet_and_verbose_contradict_each_other() -> None:
    message = refusal("schema", "rows.csv", "--quiet", "--verbose")
    assert "--verbose" in message


def test_a_wrong_command_prints_no_document() -> None:
    result = invoke("predict", "model", "missing.csv", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "missing.csv" in result.stderr


def test_results_come_before_privacy() -> None:
    lines = invoke(*words_of("train", "")).stdout.splitlines()
    assert lines[0] == "A classifier of 'y'"
    assert [line.split()[0] for line in lines[1:4]] == ["data", "walk", "training"]
    assert lines[5] == "Privacy: none."
    assert lines[6].startswith("All runs on any of these rows: ")
    assert lines[7].startswith("Not protected: the model, so ε = ∞.")
    assert "to be public:" in invoke(*words_of("train", ""), "--verbose").stdout


def test_infinity_is_null_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    Console(as_json=True, document={"a": [float("inf"), 1.0], "b": {"c": float("nan")}}).finish()
    assert json.loads(capsys.readouterr().out) == {"a": [None, 1.0], "b": {"c": None}}
