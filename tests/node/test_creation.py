"""Making a node: rows against the plan, the one release, all or nothing."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from tests.node.made_tokens import made_token
from tests.node.small_network import PLAN, fill, make_node, make_nodes
from walklearn.node.agreement import node_rows
from walklearn.node.agreement.node_rows import NodeRows, read_node_rows
from walklearn.node.agreement.plan import Plan, PlanError
from walklearn.node.disk import directory as directory_module
from walklearn.node.disk.creation import Created, create_node, ledger_of
from walklearn.node.disk.database import StoreError
from walklearn.node.disk.directory import DirectoryError, NodeDirectory, new_directory
from walklearn.node.disk.kept_model import newest_model
from walklearn.node.disk.store import Store
from walklearn.node.process.status import stored_status
from walklearn.node.protocol.learner import Learner
from walklearn.node.protocol.record import Place, Record
from walklearn.node.protocol.tokens import Limits, Line
from walklearn.node.wire.identity import IdentityError
from walklearn.privacy import ClampedGamma, OwnerRecord, OwnerRecordError, compose
from walklearn.privacy.accounting.owner_record import Run
from walklearn.tables import DataError
from walklearn.tables.row_marks import blocks_of

PRIVATE = """
intercept = true
walk = "weighted"
[privacy]
protect = "node"
epsilon = 6.0
delta = 0.06
constants_share = 0.5
mechanism = "clamped-gamma"
feature_bound = 2.0
max_rows = 3
clip = 1.0
max_contributions = 20
"""
FOR_ROWS = """
walk = "weighted"
rows = 5000
[privacy]
epsilon = 3.0
delta = 1e-5
feature_bound = 2.0
"""
ROWS = "a,b,y,remark\n0.5,1,yes,x\n3,4,no,y\n"


def create(tmp_path: Path, rows: str = ROWS, more: str = PRIVATE, **options: object) -> Created:
    (tmp_path / "plan.toml").write_text(PLAN.format(nodes=4, updates=100, more=more))
    (tmp_path / "rows.csv").write_text(rows)
    return create_node(
        tmp_path / "alice", plan=tmp_path / "plan.toml", data=tmp_path / "rows.csv",
        listen="127.0.0.1:7447", address="host:7447",
        **{"accept_unprotected": True} | options,  # type: ignore[arg-type]
    )  # fmt: skip


def left_over(tmp_path: Path) -> set[str]:
    return {each.name for each in tmp_path.iterdir()} - {"plan.toml", "rows.csv"}


def test_rows_are_encoded_bounded_and_private(tmp_path: Path) -> None:
    created = create(tmp_path)
    assert (created.rows, created.shortened) == (2, 1)
    rows = created.directory.rows
    assert rows.y.tolist() == [1.0, -1.0]
    assert rows.X[0].tolist() == [0.5, 1.0, 1.0]
    assert np.linalg.norm(rows.X[1, :2]) == pytest.approx(2.0)
    for file in ("key.pem", "rows.npz", "node.sqlite"):
        mode = stat.S_IMODE((created.directory.path / file).stat().st_mode)
        assert mode == 0o600, file
    assert stat.S_IMODE(created.directory.path.stat().st_mode) == 0o700


def test_sparse_rows_stay_sparse_on_disk_and_in_the_learner(tmp_path: Path) -> None:
    text = PLAN.format(nodes=4, updates=100, more=PRIVATE).replace('"a"', '"x1"')
    plan = Plan.from_text(
        text.replace('"b"', '"x2"').replace('"no"', '"-1"').replace('"yes"', '"1"')
    )
    (tmp_path / "rows.svm").write_text("1 1:0.5 2:1\n-1 1:3 2:4\n1 2:0.5\n")
    rows = read_node_rows(tmp_path / "rows.svm", plan)
    assert rows.X.nnz == 5 + 3
    (tmp_path / "rows.npz").write_bytes(rows.to_bytes())
    again = NodeRows.load(tmp_path / "rows.npz")
    assert again.y.tolist() == [1.0, -1.0, 1.0]
    assert again.X.toarray()[0].tolist() == [0.5, 1.0, 1.0]
    assert rows.shortened == 1
    ours, dense = (Learner.of_plan(plan, X, again.y) for X in (again.X, again.X.toarray()))
    assert ours.problem.is_sparse
    assert ours.smoothness == pytest.approx(dense.smoothness)


def test_the_release_is_drawn_once_within_the_public_bounds(tmp_path: Path) -> None:
    created = create(tmp_path)
    plan = created.directory.plan
    assert plan.bounds is not None
    assert plan.bounds[0] <= created.release.importance <= plan.bounds[1]
    assert created.release.may_contribute == 20
    with Store.look(created.directory.store_path, Limits.of_plan(plan)) as store:
        assert store.release() == created.release
    with pytest.raises(DirectoryError, match="drawn again"):
        create(tmp_path)
    assert left_over(tmp_path) == {"alice"}


def made_anew(tmp_path: Path, created: Created, **options: Any) -> Created:
    shutil.rmtree(created.directory.path)
    return create(tmp_path, **options)


def test_a_node_made_anew_from_the_same_rows_tells_the_same_release(tmp_path: Path) -> None:
    first = create(tmp_path)
    assert not first.reused
    for _ in range(5):
        again = made_anew(tmp_path, first)
        assert again.release.importance == first.release.importance
        assert again.reused
    # In another order they are the same rows.
    lines = ROWS.splitlines()
    other = made_anew(tmp_path, first, rows="\n".join([lines[0], lines[2], lines[1]]))
    assert other.release.importance == first.release.importance
    # Of other rows nothing is known.
    other = made_anew(tmp_path, first, rows="a,b,y\n0.6,1,yes\n3,5,no\n")
    assert (other.reused, other.total.private_runs) == (False, 1)


def charged(created: Created) -> list[str]:
    """Return what was charged to any of the node's rows, in order."""
    runs = OwnerRecord(created.release.record).runs(created.release.rows)
    return [what for run in runs for what, _, _ in run.charges]


def test_another_release_of_the_same_rows_is_charged_beside_the_first(tmp_path: Path) -> None:
    first = create(tmp_path)
    once = ledger_of(first.directory.plan, first.release)
    again = made_anew(tmp_path, first, more=PRIVATE.replace("epsilon = 6.0", "epsilon = 5.0"))
    assert charged(again) == ["importance", "model", "importance", "model"]
    assert again.total.private_runs == 2
    assert again.total.epsilon > once.total(0, 0.06)
    with Store.look(again.directory.store_path, Limits.of_plan(again.directory.plan)) as store:
        assert store.release() == again.release  # it is on the disk
    # Contributions begin at 0 in the new node, and the old one's cap counts beside them.
    third = made_anew(tmp_path, first)
    assert third.release.importance == first.release.importance
    assert charged(third) == ["importance", "model", "importance", "model", "model"]
    with pytest.raises(ValueError, match="release costs more"):
        made_anew(tmp_path, first, budget=(6.0, 0.06))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("max_contributions = 20", "max_contributions = 20\n[columns.a]\nspread = 1.000000001"),
        ("intercept = true", "intercept = false"),
        ("feature_bound = 2.0", "feature_bound = 2.1"),
        ("epsilon = 6.0", "epsilon = 5.9999999"),  # a mechanism that prints as the first does
    ],
)
def test_no_change_of_the_plan_hides_what_was_released(tmp_path: Path, old: str, new: str) -> None:
    first = create(tmp_path)
    changed = PRIVATE.replace(old, new)
    with pytest.raises(ValueError, match="release costs more"):
        made_anew(tmp_path, first, more=changed, budget=(6.0, 0.06))
    again = create(tmp_path, more=changed)
    assert charged(again) == ["importance", "model", "importance", "model"]


def test_one_row_that_comes_back_is_recognised_however_the_file_is_written(tmp_path: Path) -> None:
    first = create(tmp_path)
    more = made_anew(tmp_path, first, rows=ROWS + "0.1,0.2,no,\n")  # an empty cell that nobody uses
    assert more.total.private_runs == 2
    other = made_anew(tmp_path, first, rows="remark;b;a;y\n z;0;0;no\nx;1.0;5e-1;yes\n")
    assert other.total.private_runs == 3
    # A cell that was changed makes a new row, and that is all it takes.
    changed = ROWS.replace(",x", ",u").replace(",y\n", ",v\n")
    new = made_anew(tmp_path, first, rows=changed.replace("remark", "y2"))
    assert new.total.private_runs == 1


def test_status_reads_the_current_total_without_the_lock(tmp_path: Path) -> None:
    first = create(tmp_path)
    before = stored_status(first.directory)
    assert before["privacy"].startswith(
        "ε = 6 at δ = 0.06 for everything that leaves a node, if all"
    )
    assert before["total"] == asdict(first.total)
    assert (first.total.private_runs, first.total.unit, first.total.delta) == (1, "node", 0.06)
    assert 5.0 < first.total.epsilon <= 6.0
    record = OwnerRecord(first.release.record)
    shutil.move(first.directory.path, tmp_path / "moved")
    again = create(tmp_path, more=PRIVATE.replace("epsilon = 6.0", "epsilon = 5.0"))
    with record.locked():  # a reader does not wait for it
        after = stored_status(NodeDirectory(tmp_path / "moved"))["total"]
    assert after == asdict(again.total)
    assert after["private_runs"] == 2
    assert after["epsilon"] > 6.0


def test_status_says_so_if_the_record_cannot_be_read(tmp_path: Path) -> None:
    created = create(tmp_path)
    record = Path(created.release.record)
    record.rename(tmp_path / "elsewhere.sqlite")
    told = stored_status(created.directory)
    assert "total" not in told
    assert told["all_runs"].startswith("not known: ")
    create_node(
        tmp_path / "bob", plan=tmp_path / "plan.toml", data=NodeRows(np.ones((1, 3)), np.ones(1))
    )  # which begins a new record
    assert "total" not in stored_status(created.directory)


def test_a_plan_without_an_average_gives_the_last_model(tmp_path: Path) -> None:
    made = create(tmp_path, more="average = false\n" + PRIVATE).directory
    token = made_token(
        Line(0, 1, "ab" * 32, "cd" * 16), 5, 5, np.ones(3), np.zeros(0), 0.0, 5.0, False
    )
    with Store.open(made.store_path, Limits.of_plan(made.plan)) as store:
        store.commit(Record(token.mark, token, Place.HERE))
    assert newest_model(made)[0].iterate == "last"


def test_unprotected_runs_are_counted_for_good(tmp_path: Path) -> None:
    first = create(tmp_path, more="")
    assert (first.total.private_runs, first.total.unprotected_runs) == (0, 1)
    again = made_anew(tmp_path, first)
    assert (again.total.private_runs, again.total.unprotected_runs) == (1, 1)
    assert again.total.epsilon <= 6.0
    with pytest.raises(
        ValueError,
        match=r"1 earlier run.*--budget",
    ):
        made_anew(tmp_path, first, budget=(100.0, 0.5))


def test_a_constant_that_only_an_unprotected_run_paid_for_is_charged_again(tmp_path: Path) -> None:
    """The total over private runs leaves the unprotected run out, with all that it paid for."""
    hidden = PRIVATE.replace("epsilon = 6.0", "epsilon = 3.0").replace(
        "delta = 0.06", "delta = 0.03"
    )
    open_model = hidden.partition("clip")[0].replace(
        "constants_share = 0.5", 'model = "in the clear"'
    )
    first = create(tmp_path, more=open_model, accept_unprotected=True)
    again = made_anew(tmp_path, first)  # half of ε = 6 is what the first had for the constant
    assert again.reused
    assert again.release.importance == first.release.importance
    assert charged(again) == ["importance", "model", "importance", "model"]
    assert (again.total.private_runs, again.total.unprotected_runs) == (1, 1)
    third = made_anew(tmp_path, first)
    assert charged(third) == ["importance", "model", "importance", "model", "model"]


def test_a_node_is_charged_before_its_first_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = OwnerRecord()
    rows = record.mark(blocks_of([[0.5, 1, "x"], [3, 4, "y"]], ["yes", "no"]))
    seen: list[int] = []

    def interrupted(*_: object) -> None:
        seen.append(len(record.runs(rows)))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ClampedGamma, "release", interrupted)
        with pytest.raises(KeyboardInterrupt):
            create(tmp_path)
    assert seen == [1]
    assert left_over(tmp_path) == set()
    assert create(tmp_path).total.private_runs == 2


def test_a_file_that_is_rewritten_after_it_was_read_is_charged_as_it_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = node_rows._targets

    def rewrite(*arguments: Any) -> Any:
        (tmp_path / "rows.csv").write_text("a,b,y,remark\n9,9,yes,z\n")
        return real(*arguments)

    monkeypatch.setattr(node_rows, "_targets", rewrite)
    create(tmp_path)
    record = OwnerRecord()
    assert record.total([[0.5, 1, "x"]], ["yes"]).private_runs == 1
    assert record.total([[9, 9, "z"]], ["yes"]).private_runs == 0


def test_a_key_is_private_whatever_the_umask_which_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The umask is all threads': a node made beside another had a key that all could read."""

    def changed(mask: int) -> int:
        raise AssertionError("the umask was changed")

    before = os.umask(0)
    monkeypatch.setattr(os, "umask", changed)
    try:
        create(tmp_path)
    finally:
        monkeypatch.undo()
        os.umask(before)
    for file in (tmp_path / "alice").glob("*.*"):
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0 or file.suffix == ".lock", file


def test_nodes_that_are_made_at_the_same_time_see_each_other(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN.format(nodes=4, updates=100, more=PRIVATE))
    (tmp_path / "rows.csv").write_text(ROWS)
    together = threading.Barrier(4)

    def make(name: str) -> Created:
        together.wait()
        return create_node(tmp_path / name, plan=tmp_path / "plan.toml", data=tmp_path / "rows.csv",
                           listen="127.0.0.1:7447", address="host:7447")  # fmt: skip

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(make, ["anne", "bert", "cleo", "dora"]))
    assert len({each.release.importance for each in made}) == 1
    assert charged(made[0]) == ["importance", *4 * ["model"]]


def test_a_damaged_record_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    record = tmp_path / "record" / "record.sqlite"
    created = create(tmp_path, record=record)
    assert created.release.record == str(record)
    record.write_text(1000 * "{")
    with pytest.raises(OwnerRecordError, match=r"record\.sqlite"):
        create_node(
            tmp_path / "bob", plan=tmp_path / "plan.toml", data=tmp_path / "rows.csv", record=record
        )
    assert not (tmp_path / "bob").exists()


def test_a_record_on_a_read_only_disk_can_be_read(small_disk: Path) -> None:
    record = OwnerRecord(small_disk / "record.sqlite")
    marked = record.mark(blocks_of([[1.0]], [2.0]))
    with record.locked() as locked_record:
        locked_record.add(marked, Run("one", ()))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert [run.name for run in record.runs(marked)] == ["one"]
    with pytest.raises(OwnerRecordError, match="XDG_STATE_HOME"), record.locked():
        pass


def test_an_iterated_constant_of_sparse_rows_is_not_released_for_rows(tmp_path: Path) -> None:
    names = ", ".join(f'"x{at}"' for at in range(1, 1102))
    text = PLAN.format(nodes=4, updates=100, more=FOR_ROWS).replace('"a", "b"', names)
    (tmp_path / "plan.toml").write_text(text)
    X = csr_array(np.eye(1101))
    with pytest.raises(ValueError, match=r"1101 sparse rows.*only iterated.*uniform walk"):
        create_node(tmp_path / "bob", plan=tmp_path / "plan.toml", data=NodeRows(X, np.ones(1101)))
    assert not (tmp_path / "bob").exists()


def test_the_ledger_claims_the_price_of_the_cap(tmp_path: Path) -> None:
    created = create(tmp_path)
    ledger = ledger_of(created.directory.plan, created.release)
    assert [charge.times for charge in ledger.charges(0)] == [1, 20]
    assert compose(ledger.charges(0)).delta(6.0) <= 0.06


@pytest.mark.parametrize(("mechanism", "constant"), [("clamped-gamma", True), ("laplace", False)])
def test_a_release_that_tells_nothing_is_warned_of(
    tmp_path: Path, mechanism: str, constant: bool
) -> None:
    more = PRIVATE.replace("clamped-gamma", mechanism).replace("max_rows = 3", "max_rows = 500")
    assert create(tmp_path, more=more).constant is constant


def test_a_budget_limits_the_contributions(tmp_path: Path) -> None:
    few = PRIVATE.replace("max_contributions = 20", "max_contributions = 3")
    assert create(tmp_path, more=few, budget=(4.7, 0.06)).release.may_contribute == 2


def test_a_budget_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"epsilon = 1 .*release"):
        create(tmp_path, budget=(1.0, 0.01))
    with pytest.raises(ValueError, match="in the clear"):
        create(tmp_path, more="", budget=(1.0, 0.01))
    assert left_over(tmp_path) == set()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,b,y\n1,2,maybe\n", r"row 1 \(line 2\), column 'y'.*no class 'maybe'"),
        ("a,b,y\n1,2,Yes\n", "did you mean 'yes'"),
        ("a,b,y\n1,2,no\n1,,no\n", r"row 2 \(line 3\), column 'b'"),
        ("a,b,y\n1,nan,no\n", r"row 1 \(line 2\), column 'b'"),
        ("a,b,y\n1,inf,no\n", "column 'b'.*infinite"),
        ("a,b,y\n1,high,no\n", "column 'b'"),
        ("a,c,y\n1,2,no\n", "no column 'b'"),
        ("a,b\n1,2\n", "no column 'y'"),
        ("a,b,y\n" + 4 * "1,2,no\n", "4 rows.*max_rows.* is 3"),
        ("", "empty"),
    ],
)
def test_bad_rows_are_told_and_leave_nothing(tmp_path: Path, rows: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        create(tmp_path, rows)
    assert left_over(tmp_path) == set()


def test_other_mistakes_leave_nothing_either(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN.format(nodes=0, updates=1, more=""))
    with pytest.raises(PlanError, match="line 3: nodes"):
        make_node(tmp_path / "alice", tmp_path / "plan.toml")
    with pytest.raises(IdentityError, match="name"):
        create(tmp_path, name="Not a name")
    with pytest.raises(IdentityError, match="host:port"):
        create_node(tmp_path / "bob", plan="plan", data="rows", listen="here", address="there")
    assert left_over(tmp_path) == set()


def test_softmax_and_numbers_as_targets(tmp_path: Path) -> None:
    plan = PLAN.format(nodes=2, updates=1, more="")
    (tmp_path / "rows.csv").write_text("a,b,y\n1,2,2\n1,2,0\n")
    classes = 'classes = ["no", "yes"]\nloss = "logistic"'
    three = Plan.from_text(plan.replace(classes, 'classes = [0, 1, 2]\nloss = "softmax"'))
    assert read_node_rows(tmp_path / "rows.csv", three).y.tolist() == [2.0, 0.0]
    numbers = Plan.from_text(plan.replace(classes, 'loss = "squared"'))
    assert read_node_rows(tmp_path / "rows.csv", numbers).y.tolist() == [2.0, 0.0]


def test_neighbours_are_added_once_and_by_their_own_key(tmp_path: Path) -> None:
    one, other, third = make_nodes(tmp_path, 3, [(0, 1)])
    with pytest.raises(DirectoryError, match="own invite"):
        one.add_peer(one.invite.encode())
    with pytest.raises(IdentityError, match="checksum"):
        one.add_peer(third.invite.encode()[:-1])
    one.add_peer(other.invite.encode())  # again is harmless
    assert [peer.name for peer in one.neighbours()] == ["node1"]
    (tmp_path / "elsewhere").mkdir()
    false = make_node(tmp_path / "elsewhere" / "node1", tmp_path / "plan.toml")
    with pytest.raises(DirectoryError, match=r"'node1' with another key.*--remove node1"):
        one.add_peer(false.invite.encode())
    with pytest.raises(DirectoryError, match=r"no neighbour 'node9'; known: node1"):
        one.remove_peer("node9")
    one.add_peer(third.invite.encode())
    fourth = make_node(tmp_path / "node3", tmp_path / "plan.toml")
    with pytest.raises(DirectoryError, match="at most 2 neighbours"):
        one.add_peer(fourth.invite.encode())


def test_a_neighbour_that_was_removed_stays_so_after_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = make_nodes(tmp_path, 2, [(0, 1)])
    forced: list[Path] = []
    monkeypatch.setattr(directory_module, "sync_directory", forced.append)
    one.remove_peer("node1")
    assert forced == [one.path / "peers"]


def test_a_disk_that_is_read_only_is_told_in_plain_words(small_disk: Path) -> None:
    (small_disk / "plan.toml").write_text(PLAN.format(nodes=2, updates=1, more=""))
    node = make_node(small_disk / "bob", small_disk / "plan.toml")
    Store.open(node.store_path, Limits.of_plan(node.plan)).close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StoreError, match="read-only"):
        Store.open(node.store_path, Limits.of_plan(node.plan))


def test_no_room_for_a_new_node_is_told_and_nothing_is_left(small_disk: Path) -> None:
    (small_disk / "plan.toml").write_text(PLAN.format(nodes=2, updates=1, more=""))
    fill(small_disk / "filler")
    with pytest.raises(DirectoryError, match=r"bob.*full"):
        make_node(small_disk / "bob", small_disk / "plan.toml")
    assert left_over(small_disk) == {"filler"}


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    (one,) = make_nodes(tmp_path, 1, [])
    (one.path / "key.pem").chmod(0o644)
    with pytest.raises(DirectoryError, match="chmod 600"):
        NodeDirectory(one.path)


def test_a_plan_that_was_changed_afterwards_is_refused(tmp_path: Path) -> None:
    (one,) = make_nodes(tmp_path, 1, [])
    plan = one.path / "plan.toml"
    plan.write_text("# a remark does no harm\n" + plan.read_text())
    assert NodeDirectory(one.path).plan == one.plan
    plan.write_text(plan.read_text().replace("penalty = 1.0", "penalty = 2.0"))
    with pytest.raises(DirectoryError, match="changed"):
        _ = NodeDirectory(one.path).plan


def test_what_is_no_node_is_told(tmp_path: Path) -> None:
    with pytest.raises(DirectoryError, match="does not exist"):
        NodeDirectory(tmp_path / "nothing")
    with pytest.raises(DirectoryError, match="not a node's directory"):
        NodeDirectory(tmp_path)
    (one,) = make_nodes(tmp_path, 1, [])
    (one.path / "node.json").write_text('{"format": "walklearn node", "version": 99}')
    with pytest.raises(DirectoryError, match="newer walklearn"):
        _ = NodeDirectory(one.path).settings


def test_a_node_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    """Its key and its release would be gone, and the release is charged."""
    target = tmp_path / "node"
    slower = new_directory(target)
    (slower.__enter__() / "key.pem").write_text("second")
    with new_directory(target) as faster:
        (faster / "key.pem").write_text("first")
    with pytest.raises(DirectoryError, match="made once"):
        slower.__exit__(None, None, None)
    assert (target / "key.pem").read_text() == "first"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("missing", ["name", "plan_digest"])
def test_a_setting_that_is_missing_is_named(tmp_path: Path, missing: str) -> None:
    (directory,) = make_nodes(tmp_path, 1, [])
    path = directory.path / "node.json"
    content = json.loads(path.read_text())
    del content[missing]
    path.write_text(json.dumps(content))
    with pytest.raises(DirectoryError, match=f"node.json is damaged: '{missing}'"):
        _ = NodeDirectory(directory.path).plan
