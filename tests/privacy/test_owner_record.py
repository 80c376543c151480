"""The owner's record: all runs on any of the same rows count together."""

from __future__ import annotations

import json
import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import walklearn as wl
from walklearn.privacy import (
    Laplace,
    Ledger,
    ModelNoise,
    OwnerRecord,
    OwnerRecordError,
    RecordTotal,
    TruncatedLaplace,
)
from walklearn.privacy.accounting import owner_record
from walklearn.tables.row_marks import blocks_of

RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=(40, 3)), RNG.integers(0, 2, 40)


def ledger_with(epsilon: float = 3.0, nodes: int = 2, protect: str = "rows") -> Ledger:
    noise = ModelNoise.calibrate(
        epsilon=epsilon, delta=1e-5, clip=1.0, max_contributions=20,
        protect="rows" if protect == "rows" else "node",
    )  # fmt: skip
    ledger = Ledger(nodes, budget=(epsilon, 1e-5))
    ledger.charge("model", noise, times=20)
    return ledger


def unprotected() -> Ledger:
    ledger = Ledger(1)
    ledger.record_unprotected("model")
    return ledger


@pytest.fixture
def record(tmp_path: Path) -> OwnerRecord:
    return OwnerRecord(tmp_path / "state" / "record.sqlite")


def test_three_runs_at_3_cost_5_66_together(record: OwnerRecord) -> None:
    totals = [record.charge(X, Y, ledger_with()) for _ in range(3)]
    assert totals[0].epsilon == pytest.approx(3.0, abs=1e-6)
    assert totals[2].epsilon == pytest.approx(5.6558, abs=1e-3)
    assert [total.private_runs for total in totals] == [1, 2, 3]
    assert record.total(X, Y) == totals[2]
    assert wl.privacy.OwnerRecord(record.path).total(X, Y) == totals[2]


def test_one_common_row_is_enough_and_other_rows_do_not_count(record: OwnerRecord) -> None:
    record.charge(X[:20], Y[:20], ledger_with())
    record.charge(X[19:], Y[19:], ledger_with())
    assert record.total(X[:19], Y[:19]).private_runs == 1
    assert record.total(X[19:20], Y[19:20]).private_runs == 2
    assert record.total(X + 1.0, Y) == RecordTotal(0.0, 1e-5)
    assert record.total(X[:, ::-1], Y).private_runs == 2  # columns in another order


def test_unprotected_runs_are_counted_beside_the_private_total(record: OwnerRecord) -> None:
    record.charge(X, Y, ledger_with())
    total = record.charge(X, Y, unprotected())
    assert (total.private_runs, total.unprotected_runs) == (1, 1)
    assert total.epsilon == pytest.approx(3.0, abs=1e-6)
    assert total.delta == 1e-5
    assert str(record.charge(X, Y, unprotected())).endswith("; 2 unprotected runs")


def test_a_run_that_releases_something_unprotected_is_not_private(record: OwnerRecord) -> None:
    ledger = unprotected()
    ledger.charge("importance", Laplace(1.0, bounds=(1.0, 2.0)))
    total = record.charge(X, Y, ledger)
    assert (total.private_runs, total.unprotected_runs) == (0, 1)


def test_noise_from_a_seed_is_not_charged(record: OwnerRecord) -> None:
    simulated = Ledger(2, budget=(9.0, 1e-5), simulated=True)
    simulated.charge("model", ModelNoise(1.0, 9.0, 20), times=20)
    with pytest.warns(wl.PrivacyWarning, match="Nothing was recorded") as caught:
        assert record.charge(X, Y, simulated) == RecordTotal(0.0, 1e-5)
    assert caught[0].filename == __file__


def test_a_seeded_run_without_noise_is_recorded_as_unprotected(record: OwnerRecord) -> None:
    ledger = Ledger(2, simulated=True)
    ledger.record_unprotected("model")
    assert record.charge(X, Y, ledger).unprotected_runs == 1


def test_each_charge_counts_with_its_largest_count_over_nodes(record: OwnerRecord) -> None:
    ledger, noise = Ledger(3), ModelNoise(1.0, 9.0, 20)
    ledger.charge("model", noise, times=[1, 20, 3])
    total = record.charge(X, Y, ledger, delta=1e-6)
    assert total.delta == 1e-6
    assert total.epsilon == pytest.approx(noise.epsilon(1e-6))


def test_several_runs_over_several_nodes_claim_one_row_only(record: OwnerRecord) -> None:
    """All rows of a node of one run may be spread over many nodes of another."""
    assert record.charge(X, Y, ledger_with(protect="node")).unit == "node"
    assert record.charge(X, Y, ledger_with(protect="node")).unit == "rows"
    other = X + 5.0
    for _ in range(2):  # all rows are at one node each time
        assert record.charge(other, Y, ledger_with(nodes=1, protect="node")).unit == "node"
    assert record.charge(other, Y, ledger_with(nodes=1, protect="rows")).unit == "rows"


def test_a_ledger_of_a_fit(record: OwnerRecord) -> None:
    model = wl.RandomWalkClassifier(
        epsilon=3.0, delta=1e-5, row_length=2.0, steps=50, random_state=None
    ).fit(X, Y)
    for runs in (1, 2):
        total = record.charge(X, Y, model.ledger_)
        assert (total.private_runs, total.unprotected_runs) == (runs, 0)
    assert total.epsilon > 4.0


def test_an_infinite_total_is_plain_json(record: OwnerRecord) -> None:
    ledger = Ledger(1)
    ledger.charge("L_i", TruncatedLaplace(scale=1.0, cut=0.5, bounds=(1.0, 10.0)))
    total = record.charge(X, Y, ledger)
    assert (total.private_runs, total.epsilon) == (1, np.inf)
    assert "ε = ∞ at δ = 1e-05" in str(total)
    assert json.loads(json.dumps(total.to_dict(), allow_nan=False))["epsilon"] is None


def test_rows_are_stored_once(record: OwnerRecord) -> None:
    X, y = np.random.default_rng(0).normal(size=(200_000, 2)), np.zeros(200_000)
    record.charge(X, y, ledger_with())
    size = record.path.stat().st_size
    assert size < 10 * len(y)
    for _ in range(5):
        record.charge(X[::-1], y, ledger_with())
    assert record.path.stat().st_size < size + 50_000


def test_the_default_place_and_its_permissions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    record = OwnerRecord()
    assert record.total(X, Y).private_runs == 0
    assert not (tmp_path / "home").exists()  # reading creates nothing
    record.charge(X, Y, ledger_with())
    assert record.path == tmp_path / "home" / "walklearn" / "record.sqlite"
    assert stat.S_IMODE(record.path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(record.path.stat().st_mode) == 0o600


def test_marks_of_two_records_differ(tmp_path: Path) -> None:
    one, other = (OwnerRecord(tmp_path / name) for name in ("one", "other"))
    sets = [record.mark(blocks_of(X, Y)) for record in (one, other)]
    assert sets[0].digest != sets[1].digest
    assert not np.isin(sets[0].marks, sets[1].marks).any()


def test_every_concurrent_charge_counts(record: OwnerRecord) -> None:
    together = threading.Barrier(6)

    def charge(_: int) -> int:
        together.wait()
        return record.charge(X, Y, ledger_with()).private_runs

    with ThreadPoolExecutor(6) as pool:
        assert max(pool.map(charge, range(6))) == 6
    code = (
        "import sys, numpy as np; from walklearn.privacy import *\n"
        "ledger = Ledger(1); ledger.charge('model', ModelNoise(1.0, 9.0, 20), times=20)\n"
        f"OwnerRecord(sys.argv[1]).charge({X[:2].tolist()}, {Y[:2].tolist()}, ledger)"
    )
    both = [subprocess.Popen([sys.executable, "-c", code, str(record.path)]) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert record.total(X, Y).private_runs == 8


def test_readers_do_not_wait_for_a_writer(record: OwnerRecord) -> None:
    record.charge(X, Y, ledger_with())
    writer = sqlite3.connect(record.path, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    writer.execute("DELETE FROM runs")
    with record.locked():
        assert record.total(X, Y).private_runs == 1
    writer.execute("ROLLBACK")
    writer.close()


def test_a_damaged_foreign_or_missing_record_is_refused(record: OwnerRecord) -> None:
    rows = record.mark(blocks_of(X, Y))
    with pytest.raises(OwnerRecordError, match="these rows"):
        record.runs("00" * 16)
    record.path.unlink()
    with pytest.raises(OwnerRecordError, match="is missing"):
        record.runs(rows)
    record.path.write_bytes(b"")
    with pytest.raises(OwnerRecordError, match="not a record"):
        record.charge(X, Y, ledger_with())
    record.path.write_bytes(5000 * b"x")
    with pytest.raises(OwnerRecordError, match="backup"):
        record.charge(X, Y, ledger_with())
    with pytest.raises(OwnerRecordError, match="XDG_STATE_HOME"):
        OwnerRecord(record.path / "below").charge(X, Y, ledger_with())


# Root may write anywhere else; only in /proc does making a folder fail for everybody.
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that cannot be made")
def test_a_folder_that_cannot_be_made_is_not_called_a_missing_record() -> None:
    record = OwnerRecord("/proc/nope/walklearn/record.sqlite")
    with pytest.raises(OwnerRecordError, match=r"cannot be created.*XDG_STATE_HOME") as caught:
        record.charge(X, Y, ledger_with())
    assert "backup" not in str(caught.value)


def test_a_record_that_stays_locked_is_an_error(
    record: OwnerRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner_record, "_WAIT_SECONDS", 0.05)
    with (
        record.locked(),
        pytest.raises(OwnerRecordError, match="locked"),
        record.locked(),
    ):
        pass
