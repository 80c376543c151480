"""What a node has written stays, what it could not write leaves no trace, whatever happens."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.node.made_tokens import made_token
from tests.node.small_network import fill
from tests.running import PROJECT, python
from walklearn.node.disk import bodies
from walklearn.node.disk.bodies import LARGEST_ROW
from walklearn.node.disk.database import DiskError, StoreError
from walklearn.node.disk.store import Release, Store
from walklearn.node.protocol.learner import Kept
from walklearn.node.protocol.record import Place, Record
from walklearn.node.protocol.tokens import Limits, Line, Mark, Token
from walklearn.objectives.linear.domains import Everywhere

LIMITS = Limits(size=3, updates=100, domain=Everywhere())
LARGE = Limits(size=LARGEST_ROW // 8, updates=100, domain=Everywhere())  # tokens of 2 MB
LINE = Line(0, 1, "ab" * 32, "cd" * 16)


def token(limits: Limits = LIMITS, updates: int = 5, final: bool = False) -> Token:
    model = np.full(limits.size, float(updates))
    return made_token(LINE, updates, updates, model, np.zeros(limits.size), 0.5, 5.0, final)


def record(limits: Limits = LIMITS, updates: int = 5) -> Record:
    held = token(limits, updates)
    return Record(held.mark, held, Place.LEAVING, "ef" * 32, None, updates)


def same(one: Record, other: Record) -> bool:
    def plain(each: Record) -> Any:
        tokens = [token and token.encoded for token in (each.token, each.final)]
        known = each.newest, each.place, each.receiver, each.contributions, each.ends
        return (*tokens, *known)

    return bool(plain(one) == plain(other))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "node.sqlite"


@pytest.mark.parametrize("limits", [LIMITS, LARGE], ids=["small", "large"])
def test_what_is_committed_is_there_after_opening_again(path: Path, limits: Limits) -> None:
    written = [
        Record(),
        record(limits, 5),
        replace(record(limits, 6), place=Place.HERE, receiver=None),
        Record(Mark(LINE, 7), None, Place.GONE, None, token(limits, 100, final=True), 9),
        replace(record(limits, 8), final=token(limits, 100, final=True)),
        Record(Mark(LINE, 0), contributions=9),
        Record(Mark(LINE, 7), final=token(limits, 100, final=True), ends={"ab" * 32: "cd" * 32}),
    ]
    Store.create(path, limits).close()
    for each in written:
        with Store.open(path, limits) as store:
            store.commit(each)
            assert store.record is each
        with Store.open(path, limits) as store:
            assert same(store.record, each)
        with Store.look(path, limits) as store:
            assert same(store.record, each)


def test_large_tokens_are_files_and_none_is_left_behind(path: Path) -> None:
    bodies = path.with_suffix(".bodies")
    with Store.create(path, LARGE) as store:
        for updates in range(1, 5):
            store.commit(record(LARGE, updates))
            assert len(list(bodies.iterdir())) == 1
        assert path.stat().st_size < LARGEST_ROW
        final = token(LARGE, 100, final=True)
        store.commit(replace(store.record, final=final))
        assert len(list(bodies.iterdir())) == 2
        store.commit(Record(final.mark, final=final))
        (kept,) = bodies.iterdir()
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    (bodies / "left by a crash").write_bytes(b"half a token")
    with Store.look(path, LARGE):
        assert len(list(bodies.iterdir())) == 2  # only the node itself clears up
    with Store.open(path, LARGE):
        assert list(bodies.iterdir()) == [kept]
    kept.unlink()
    with pytest.raises(StoreError, match="token is missing"):
        Store.open(path, LARGE)


def test_only_what_changed_is_written(path: Path) -> None:
    """Forgetting a token of megabytes costs no megabytes."""
    with Store.create(path, LARGE) as store:
        first = record(LARGE)
        store.commit(first)
        (file,) = path.with_suffix(".bodies").iterdir()
        store.commit(replace(first, place=Place.GONE, receiver=None))
        assert list(path.with_suffix(".bodies").iterdir()) == [file]


def test_what_is_left_for_later_is_written_with_the_next_commit_or_at_the_end(path: Path) -> None:
    first = record()
    with Store.create(path, LIMITS) as store:
        store.commit(first)
        store.later(replace(first, place=Place.GONE))
        with Store.look(path, LIMITS) as other:
            assert other.record.place is Place.LEAVING
        store.flush()
        with Store.look(path, LIMITS) as other:
            assert other.record.place is Place.GONE
        store.later(Record(contributions=1))
        store.commit(Record(contributions=2))
        store.flush()
        assert store.record.contributions == 2
        store.later(Record(contributions=3))
    with Store.open(path, LIMITS) as store:
        assert store.record.contributions == 3


def test_files_are_private_to_the_owner(path: Path) -> None:
    with Store.create(path, LIMITS) as store:
        store.commit(record())
        for file in path.parent.glob("node.sqlite*"):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


# ── the release ──────────────────────────────────────────────────────────────────────────────


def test_the_release_is_written_once(path: Path) -> None:
    first = Release(2.5, {"kind": "laplace", "scale": 1.0}, {"kind": "model-noise"}, 7)
    with Store.create(path, LIMITS) as store:
        assert store.release() is None
        store.put_release(first)
    with Store.open(path, LIMITS) as store:
        with pytest.raises(StoreError):
            store.put_release(Release(3.0))
        assert store.release() == first


# ── who may open it ──────────────────────────────────────────────────────────────────────────


def test_one_process_runs_a_node(path: Path) -> None:
    with Store.create(path, LIMITS):
        with pytest.raises(StoreError, match="another process"):
            Store.open(path, LIMITS)
        code = "from tests.node.test_store import *; Store.open(Path(sys.argv[1]), LIMITS)"
        assert "another process" in python(code, path, cwd=PROJECT).stderr
        with Store.look(path, LIMITS) as looker:
            assert same(looker.record, Record())
    Store.open(path, LIMITS).close()


def test_a_store_is_made_once(path: Path) -> None:
    Store.create(path, LIMITS).close()
    with pytest.raises(StoreError, match="File exists"):
        Store.create(path, LIMITS)
    with pytest.raises(StoreError, match="No such file"):
        Store.create(path.parent / "nowhere" / "node.sqlite", LIMITS)


def test_stores_that_cannot_be_read_say_why(path: Path) -> None:
    with pytest.raises(StoreError, match="walklearn node init"):
        Store.open(path, LIMITS)
    path.write_bytes(b"not a database at all, but long enough to be looked at " * 40)
    with pytest.raises(StoreError, match="not a database"):
        Store.open(path, LIMITS)
    path.unlink()
    sqlite3.connect(path).execute("CREATE TABLE mine (a)").connection.close()
    with pytest.raises(StoreError, match="not the store"):
        Store.look(path, LIMITS)
    path.unlink()
    Store.create(path, LIMITS).close()
    sqlite3.connect(path).execute("PRAGMA user_version = 99").connection.close()
    with pytest.raises(StoreError, match="later walklearn"):
        Store.open(path, LIMITS)
    sqlite3.connect(path).execute("PRAGMA user_version = 1").connection.close()
    with pytest.raises(StoreError, match="earlier walklearn"):
        Store.open(path, LIMITS)


def test_a_damaged_store_is_noticed(path: Path) -> None:
    with Store.create(path, LIMITS) as store:
        store.commit(record())
    content = bytearray(path.read_bytes())
    for at in range(4096, len(content), 64):
        content[at : at + 16] = os.urandom(16)
    path.write_bytes(bytes(content))
    with pytest.raises(StoreError):
        Store.open(path, LIMITS)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("UPDATE record SET token = x'00'", "damaged"),
        ("UPDATE record SET place = 'nowhere'", "damaged"),
        ("UPDATE record SET newest = '[1]'", "damaged"),
        ("UPDATE record SET seals = '[1]'", "damaged"),
        ("DROP TABLE record", "no such table"),
    ],
)
def test_a_store_with_wrong_content_is_noticed(path: Path, change: str, reason: str) -> None:
    with Store.create(path, LIMITS) as store:
        store.commit(record())
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(change)
    connection.close()
    with pytest.raises(StoreError, match=reason):
        Store.open(path, LIMITS)


def test_a_store_of_another_plan_is_noticed(path: Path) -> None:
    with Store.create(path, LIMITS) as store:
        store.commit(record())
    with pytest.raises(StoreError, match="of another plan"):
        Store.open(path, replace(LIMITS, size=4))


# ── a full disk ──────────────────────────────────────────────────────────────────────────────


def commit_for_ever(store: Store, limits: Limits) -> None:
    for updates in range(2, 50):
        store.commit(record(limits, updates))


@pytest.mark.parametrize("size", [3_000, LARGE.size], ids=["rows", "files"])
def test_a_full_disk_changes_nothing_and_the_node_goes_on(small_disk: Path, size: int) -> None:
    limits, path = replace(LIMITS, size=size), small_disk / "node.sqlite"
    with Store.create(path, limits) as store:
        store.put_release(Release(2.0))
        first = record(limits, 1)
        store.commit(first)
        filler = small_disk / "filler"
        fill(filler)
        with pytest.raises(StoreError):
            commit_for_ever(store, limits)  # the log may have room for some
        first = store.record
        assert first.contributions < 50
        with Store.look(path, limits) as other:
            assert same(other.record, first)
        filler.unlink()
        store.commit(record(limits, 60))
    with Store.open(path, limits) as store:
        assert same(store.record, record(limits, 60))
        assert store.release() == Release(2.0)


def test_the_log_stays_small(path: Path) -> None:
    """A record of 12 KB that is written again and again takes little more on the disk."""
    limits = replace(LIMITS, size=700)
    with Store.create(path, limits) as store:
        for updates in range(1, 99):
            store.commit(record(limits, updates))
            files = path.parent.glob("node.sqlite*")
            assert sum(file.stat().st_size for file in files) < 400_000


def test_a_full_disk_takes_what_fits_into_the_database(small_disk: Path) -> None:
    """The log is in the way of what it holds: it is emptied, and the record is written."""
    limits, path = replace(LIMITS, size=3_000), small_disk / "node.sqlite"
    with Store.create(path, limits) as store:
        for updates in (1, 2, 3):  # it has grown to what replacing a record takes
            store.commit(record(limits, updates))
    with Store.open(path, limits) as store:  # closing has put all of it into the database
        for updates in (2, 3):
            store.commit(record(limits, updates))
        fill(small_disk / "filler")
        for updates in range(4, 60):
            store.commit(record(limits, updates))
        with Store.look(path, limits) as other:
            assert same(other.record, record(limits, 59))


def test_no_room_to_open_the_store_is_told(small_disk: Path) -> None:
    path = small_disk / "node.sqlite"
    Store.create(path, LIMITS).close()
    fill(small_disk / "filler")
    with pytest.raises(StoreError, match="full"):
        Store.open(path, LIMITS)
    (small_disk / "filler").unlink()
    Store.open(path, LIMITS).close()


def test_what_was_counted_is_written_with_the_record(path: Path) -> None:
    with Store.create(path, LIMITS) as store:
        store.counted = {"updates": 1}
        store.commit(record())
        store.counted = {"updates": 2}
        with Store.look(path, LIMITS) as other:
            assert other.counted == {"updates": 1}
    with Store.open(path, LIMITS) as store:
        assert store.counted == {"updates": 2}
        assert same(store.record, record())


def test_the_directory_of_large_tokens_is_forced_to_the_disk(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[Path] = []
    monkeypatch.setattr(bodies, "sync_directory", forced.append)
    with Store.create(path, LARGE) as store:
        del forced[:]
        store.commit(record(LARGE))
        assert forced == [path.parent]


def test_a_full_database_changes_nothing(path: Path) -> None:
    """SQLite's own limit gives the same error as a full disk, on every machine."""
    limits = replace(LIMITS, size=10_000)
    with Store.create(path, limits) as store:
        store.commit(Record(contributions=1))
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(StoreError, match="full"):
            store.commit(record(limits))
        assert store.record.contributions == 1
        store.commit(Record(contributions=2))
    with Store.open(path, limits) as store:
        assert store.record.contributions == 2


def fail(name: str) -> Any:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = name

    def write(*arguments: object) -> None:
        raise error

    return write


@pytest.mark.parametrize(("name", "left"), [("SQLITE_IOERR_WRITE", 0), ("SQLITE_IOERR_FSYNC", 1)])
def test_the_file_of_a_record_is_left_only_where_the_record_may_be_written(
    path: Path, monkeypatch: pytest.MonkeyPatch, name: str, left: int
) -> None:
    with Store.create(path, LARGE) as store:
        monkeypatch.setattr(store, "_put", fail(name))
        with pytest.raises((StoreError, DiskError), match="disk I/O error"):
            store.commit(record(LARGE))
        assert len(list(path.with_suffix(".bodies").iterdir())) == left


def test_a_failing_disk_is_not_a_refusal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it was written is unknown, so nobody may be told that it was not."""
    with Store.create(path, LARGE) as store:
        monkeypatch.setattr(store._bodies, "write", fail("SQLITE_IOERR_FSYNC"))
        with pytest.raises(DiskError, match="SQLITE_IOERR_FSYNC"):
            store.commit(record(LARGE))
        monkeypatch.setattr(store._bodies, "write", fail("SQLITE_IOERR_WRITE"))
        with pytest.raises(StoreError, match="I/O error"):
            store.commit(record(LARGE))
        monkeypatch.undo()
        store.commit(record(LARGE))


def test_a_file_that_cannot_be_forced_to_the_disk_is_not_left(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    with Store.create(path, LARGE) as store:
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", fail)
            with pytest.raises(StoreError, match="Input/output error"):
                store.commit(record(LARGE))
        assert list(path.with_suffix(".bodies").iterdir()) == []
        assert same(store.record, Record())


def test_a_file_whose_name_cannot_be_forced_to_the_disk_is_not_left(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def fail(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(5, "Input/output error")
        fsync(descriptor)

    with Store.create(path, LARGE) as store:
        store.commit(record(LARGE))
        files = list(path.with_suffix(".bodies").iterdir())
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", fail)
            for _ in range(3):
                with pytest.raises(StoreError, match="Input/output error"):
                    store.commit(record(LARGE, 5))
        assert list(path.with_suffix(".bodies").iterdir()) == files


# ── killed, and looked at meanwhile ──────────────────────────────────────────────────────────

WRITER = """
import sys
from tests.node.test_store import *
limits = {"small": LIMITS, "large": LARGE}[sys.argv[2]]
with Store.open(Path(sys.argv[1]), limits) as store:
    for updates in range(store.record.contributions + 1, 100):
        store.commit(record(limits, updates))
        print(updates, flush=True)
"""


@pytest.mark.parametrize(("name", "limits"), [("small", LIMITS), ("large", LARGE)])
def test_killed_at_any_moment_nothing_that_was_committed_is_lost(
    path: Path, name: str, limits: Limits
) -> None:
    Store.create(path, limits).close()
    waits = random.Random(3)
    committed = 0
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name], cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.03 * waits.random())
        writer.send_signal(signal.SIGKILL)
        seen = writer.stdout.read().split()
        writer.stdout.close()
        writer.wait()
        committed = max(committed, *map(int, seen)) if seen else committed
        with Store.open(path, limits) as store:
            found = store.record
            assert found.contributions >= committed
            assert same(found, record(limits, found.contributions))
            committed = found.contributions
            files = path.with_suffix(".bodies")
            assert len(list(files.iterdir()) if files.is_dir() else []) == (name == "large")


def test_others_may_look_while_the_node_writes(path: Path) -> None:
    stop, wrong = threading.Event(), []

    def look() -> None:
        while not stop.is_set():
            with Store.look(path, LARGE) as other:
                found = other.record
                if found.token is not None and not same(found, record(LARGE, found.contributions)):
                    wrong.append(found)

    with Store.create(path, LARGE) as store:
        thread = threading.Thread(target=look)
        thread.start()
        for updates in range(1, 30):
            store.commit(record(LARGE, updates))
        stop.set()
        thread.join(60)
    assert not thread.is_alive()
    assert wrong == []


@pytest.mark.parametrize("shape", [(0,), (3,), (4, 2)])
def test_what_the_node_remembers_is_written_with_the_token(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    limits = Limits(size=3, updates=100, domain=Everywhere(), remembers=4)
    held = made_token(
        LINE, 5, 5, np.ones(3), epoch="12" * 16, gradient_sum=[0.1, -2.0, 3e-300], nodes=2.5,
        ages=7.0, squared_ages=19.0, curvature=0.3, collects=True,
    )  # fmt: skip
    slopes = np.random.default_rng(1).standard_normal(shape)
    kept = Kept("12" * 16, {"slopes": slopes, "updated": np.array(4)}, ("34" * 16,))
    with Store.create(tmp_path / "node.sqlite", limits) as made:
        made.commit(Record(held.mark, held, Place.HERE, kept=kept))
    with Store.open(tmp_path / "node.sqlite", limits) as opened:
        found = opened.record
    assert found.token is not None
    assert found.token.encoded == held.encoded
    assert found.kept is not None
    assert (found.kept.epoch, found.kept.past) == (kept.epoch, kept.past)
    assert found.kept.state["updated"] == 4
    np.testing.assert_array_equal(found.kept.state["slopes"], slopes)
