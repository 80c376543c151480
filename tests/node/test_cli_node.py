"""`walklearn node`, as its owner uses it."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from tests.node.small_network import (
    PLAN,
    free_port,
    log_lines,
    make_nodes,
    processes,
    ring,
    wait_until,
)
from tests.running import WALKLEARN, invoke, started
from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.disk.store import Store
from walklearn.node.protocol.record import Record
from walklearn.node.protocol.tokens import Limits
from walklearn.privacy.accounting.printing import format_upper


def node(*arguments: object) -> Result:
    return invoke("node", *arguments)


def init(tmp_path: Path, name: str, *options: str) -> Result:
    (tmp_path / "plan.toml").write_text(PLAN.format(nodes=2, updates=30, more=""))
    (tmp_path / "rows.csv").write_text("a,b,y\n1,2,yes\n-1,0,no\n")
    address = f"127.0.0.1:{free_port()}"
    return node(
        "init", tmp_path / name, "--plan", tmp_path / "plan.toml", "--data", tmp_path / "rows.csv",
        "--listen", address, "--address", address, "--accept-unprotected", *options,
    )  # fmt: skip


def test_all_of_it_as_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def facts(*arguments: object) -> Any:
        done = node(*arguments, "--json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    for name in ("alice", "bob"):
        assert json.loads(init(tmp_path, name, "--json").stdout)["rows"] == 2
    alice, bob = tmp_path / "alice", tmp_path / "bob"
    invites = {name: facts("invite", tmp_path / name) for name in ("alice", "bob")}
    added = facts("peer", alice, invites["bob"]["invite"])["added"]
    assert added["fingerprint"] == invites["bob"]["fingerprint"]
    facts("peer", bob, invites["alice"]["invite"])
    assert facts("peer", bob)["neighbours"][0]["name"] == "alice"
    with processes([NodeDirectory(alice), NodeDirectory(bob)], "--json") as running:
        assert facts("start-walk", alice) == {"walk": "begun"}
        assert [each.wait() for each in running] == [0, 0]
    ended = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [each["final"] for each in ended] == [True, True]
    assert facts("model", bob, "--out", tmp_path / "model")["updates"] == 30
    assert "Leave it out" in node("status", bob, "--watch", "--json").stderr


def test_from_init_to_a_prediction(tmp_path: Path) -> None:
    for name in ("alice", "bob"):
        made = init(tmp_path, name)
        assert made.exit_code == 0, made.output
        assert "2 rows" in made.output
    alice, bob = tmp_path / "alice", tmp_path / "bob"
    line = node("invite", bob).stdout.strip()
    assert line.startswith("walklearn1:bob@127.0.0.1:")
    assert "fingerprint of bob" in node("invite", bob).stderr
    assert node("peer", alice, line).exit_code == 0
    assert node("peer", bob, node("invite", alice).stdout).exit_code == 0
    assert node("peer", bob).output.startswith("alice  127.0.0.1:")
    assert "0 of 30 updates" in node("status", alice).output
    early = [*WALKLEARN, "node", "start-walk", str(alice), "--wait", "60"]  # before there is a node
    with (
        started(*early, stdout=subprocess.PIPE) as begins,
        processes([NodeDirectory(alice), NodeDirectory(bob)]) as running,
    ):
        assert begins.communicate()[0] == "The walk has started.\n"
        assert [each.wait() for each in running] == [0, 0]
    made = node("model", bob, "--out", tmp_path / "model")
    assert "the final model, 30 updates" in made.output
    assert node("model", bob, "--out", tmp_path / "model").exit_code == 2
    assert node("model", bob, "--out", tmp_path / "model", "--force").exit_code == 0
    predicted = invoke("predict", tmp_path / "model", tmp_path / "rows.csv")
    assert predicted.exit_code == 0, predicted.output
    assert set(predicted.stdout.split()[1:]) <= {"yes", "no"}


def test_status_metrics_health_and_leaving_neighbours(tmp_path: Path) -> None:
    port = free_port()
    directories = make_nodes(tmp_path, 2, ring(2)[:1])
    with processes(directories[1:]), processes(directories[:1], "--metrics-port", str(port)):
        path = directories[0].path
        wait_until(lambda: _neighbours_up(path) == 1)
        assert re.search("node1 +up +[0-9]+ s +no", node("status", path).output)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        assert "walklearn_neighbours_up 1.0" in text
        assert "walklearn_neighbours_one_way 0.0" in text
        assert "walklearn_token_seconds NaN" in text
        assert "walklearn_handovers_sent_total 0.0" in text
        assert _health(path / "control") == "SERVING"
        assert node("peer", path, "--remove", "node1").exit_code == 0
        wait_until(lambda: _neighbours(path) == [])
        assert "Pass one of them" in node("peer", path, "x", "--remove", "node1").output


def test_a_frozen_node_is_told_from_one_that_does_not_run(tmp_path: Path) -> None:
    (directory,) = make_nodes(tmp_path, 1, [])
    path = directory.path
    with processes([directory]) as (running,):
        wait_until(lambda: "node0 (idle)" in node("status", path).output)
        running.popen.send_signal(signal.SIGSTOP)
        assert "node0 (its process" in node("status", path).output
        status = json.loads(node("status", path, "--json").stdout)
        assert (status["running"], status["phase"]) == (False, "frozen")
        running.popen.send_signal(signal.SIGCONT)
        wait_until(lambda: "node0 (idle)" in node("status", path).output)
        running.end()
        assert "node0 (not running)" in node("status", path).output


def _neighbours(path: Path) -> list[dict[str, bool]]:
    status: dict[str, list[dict[str, bool]]] = json.loads(node("status", path, "--json").stdout)
    return status["neighbours"]


def _neighbours_up(path: Path) -> int:
    return sum(each["usable"] for each in _neighbours(path))


def _health(socket: Path) -> str:
    import grpc
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    with grpc.insecure_channel(f"unix:{socket}") as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=30)
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))


def test_a_long_path_has_its_socket_too(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["long-directory-name"] * 6)
    deep.mkdir(parents=True)
    directories = make_nodes(deep, 1, [])
    assert len(str(directories[0].path)) > 108
    with processes(directories):
        assert json.loads(node("status", directories[0].path, "--json").stdout)["running"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nothing"], "walklearn node init"),
        (["status", "nothing"], "does not exist"),
        (["invite", "nothing"], "does not exist"),
        (["start-walk", "node0", "--resume", "--force"], "--force"),
        (["start-walk", "node0"], "no node runs"),
        (["model", "node0", "--out", "model"], "no model"),
        (["peer", "node0", "hello"], "walklearn1:"),
        (["peer", "node0", "--remove", "x"], "'x'"),
        (["run", "node0", "--listen", "here"], "host:port"),
        (["run", "node0", "--listen", "192.0.2.1:7447"], "192.0.2.1:7447"),
    ],
)
def test_mistakes_are_told_with_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    make_nodes(tmp_path, 1, [])
    monkeypatch.chdir(tmp_path)
    result = node(*arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        *((file, damage)
          for file in ("rows.npz", "key.pem", "certificate.pem")
          for damage in ("half of it", "garbage", "empty")),
        ("key.pem", "another node's"),
    ],
)  # fmt: skip
def test_damaged_files_are_told_with_their_names(tmp_path: Path, file: str, damage: str) -> None:
    one, other = make_nodes(tmp_path, 2, [])
    path, whole = one.path / file, (one.path / file).read_bytes()
    content = {
        "half of it": whole[: len(whole) // 2],
        "garbage": bytes(range(256)),
        "empty": b"",
        "another node's": (other.path / file).read_bytes(),
    }
    path.write_bytes(content[damage])
    result = node("run", one.path)
    assert result.exit_code == 2
    assert str(path) in result.output
    assert "damaged" in result.output
    assert "Restore" in result.output


def test_a_bad_plan_is_told_with_its_line(tmp_path: Path) -> None:
    assert init(tmp_path, "alice").exit_code == 0
    (tmp_path / "plan.toml").write_text(PLAN.format(nodes=-1, updates=30, more=""))
    result = node(
        "init", tmp_path / "bob", "--plan", tmp_path / "plan.toml", "--data",
        tmp_path / "rows.csv", "--listen", "127.0.0.1:1", "--address", "127.0.0.1:1",
    )  # fmt: skip
    assert result.exit_code == 2
    assert "line 3: nodes" in result.output


def test_a_running_node_cannot_be_run_again(tmp_path: Path) -> None:
    directories = make_nodes(tmp_path, 1, [])
    with processes(directories):
        again = node("run", directories[0].path)
        assert again.exit_code == 2
        assert "another process" in again.output


def test_the_process_is_light_and_logs_json(tmp_path: Path) -> None:
    (directory,) = make_nodes(tmp_path, 1, [])
    script = (
        "import sys\nfrom walklearn.cli import main\n"
        "try:\n    main(['node', 'run', sys.argv[1], '--linger-seconds', '0'])\n"
        "finally:\n    print(sorted({'scipy', 'numba', 'dp_accounting', 'pandas', 'matplotlib', "
        "'cryptography'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", script, str(directory.path)]
    with started(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert node("start-walk", directory.path, "--wait", 60).exit_code == 0
        out, err = process.communicate(timeout=60)
    assert out == "[]\n", err
    events = [line["event"] for line in log_lines(err)]
    assert events[0] == "started"
    assert events[-1] == "stopped"
    assert process.returncode == 0
    assert np.isfinite(directory.rows.X).all()


def test_status_and_init_begin_with_the_epsilon_and_say_when_it_is_spent(tmp_path: Path) -> None:
    more = '[privacy]\nprotect = "node"\nepsilon = 3.0\ndelta = 1e-5\nclip = 1.0\n'
    (one,) = make_nodes(tmp_path, 1, [], more=more + "max_contributions = 5")
    told = (
        "ε = 3 at δ = 1e-05 for everything that leaves a node, if all rows of the node are replaced"
    )
    page = node("status", one.path).output
    assert told in page
    assert "contributions: 0 of 5\n" in page
    with Store.open(one.store_path, Limits.of_plan(one.plan)) as store:
        store.commit(Record(contributions=5))
    spent = node("status", one.path).output
    assert "contributions: 5 of 5, the maximum" in spent
    (tmp_path / "rows.csv").write_text("a,b,y\n1,2,no\n")
    made = node("init", tmp_path / "anew", "--plan", tmp_path / "plan.toml",
                "--data", tmp_path / "rows.csv", "--listen", "127.0.0.1:7447")  # fmt: skip
    assert told in made.output
    shutil.rmtree(tmp_path / "anew")
    made = node("init", tmp_path / "anew", "--plan", tmp_path / "plan.toml",
                "--data", tmp_path / "rows.csv", "--listen", "127.0.0.1:7447")  # fmt: skip
    total = json.loads(node("status", tmp_path / "anew", "--json").output)["total"]
    assert (total["private_runs"], total["unprotected_runs"]) == (2, 0)
    assert 4.4 < total["epsilon"] < 4.5
    for output in (made.output, node("status", tmp_path / "anew").output):
        assert f"this plan: {told}" in output
        assert "2 private runs, in total ε = 4.464 at δ" in output
    (tmp_path / "others.csv").write_text("a,b,y\n7,2,no\n")
    made = node("init", tmp_path / "few", "--plan", tmp_path / "plan.toml", "--budget", "2", "1e-5",
                "--data", tmp_path / "others.csv", "--listen", "127.0.0.1:7447")  # fmt: skip
    now = json.loads(node("status", tmp_path / "few", "--json").output)
    spent = format_upper(now["total"]["epsilon"], 4)
    assert now["total"]["epsilon"] <= 2.0
    assert 0 < now["may_contribute"] < 5
    for output in (made.output, node("status", tmp_path / "few").output):
        assert f"ε = {spent} at δ = 1e-05 for all rows" in output
        assert "this plan: " not in output
    clear = tmp_path / "clear.toml"
    text = (tmp_path / "plan.toml").read_text()
    clear.write_text(text[: text.index("[privacy]")])
    made = node("init", tmp_path / "open", "--plan", clear, "--data", tmp_path / "rows.csv",
                "--listen", "127.0.0.1:7447", "--address", "host:1",
                "--accept-unprotected")  # fmt: skip
    assert "ε = ∞: nothing is protected" in made.output
    assert "; 1 unprotected run\n" in made.output


UNPROTECTED = {
    "no [privacy]": "",
    "model in the clear": '[privacy]\nmodel = "in the clear"\n',
    "everything in the clear": 'walk = "weighted"\n[privacy]\nmechanism = "in the clear"\n',
    "only L_i protected": 'walk = "weighted"\n[privacy]\nprotect = "node"\nmodel = "in the clear"\n'
    'epsilon = 3.0\ndelta = 1e-5\nmechanism = "laplace"\nbounds = [1.0, 10.0]\n',
}


@pytest.mark.parametrize("more", UNPROTECTED.values(), ids=UNPROTECTED)
def test_an_unprotected_model_must_be_accepted_by_the_owner(tmp_path: Path, more: str) -> None:
    (tmp_path / "plan.toml").write_text(PLAN.format(nodes=2, updates=30, more=more))
    (tmp_path / "rows.csv").write_text("a,b,y\n1,2,yes\n-1,0,no\n")
    command = ("init", tmp_path / "alice", "--plan", tmp_path / "plan.toml",
               "--data", tmp_path / "rows.csv")  # fmt: skip
    refused = node(*command)
    assert refused.exit_code == 2
    assert "--accept-unprotected" in refused.output
    assert not (tmp_path / "alice").exists()
    made = node(*command, "--accept-unprotected", "--json")
    assert made.exit_code == 0, made.output
    assert json.loads(made.stdout)["privacy"].startswith("ε = ∞")
