"""Faults of worker processes: no study hangs, loses a result or leaves a process behind."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.running import run, started, wait_until
from tests.studies.examples import SMALL
from tests.studies.test_scheduler import LONG, PIPES, cells_in, command, equal, wait_for_cells
from walklearn.studies import Results, Study, register_walk, run_study
from walklearn.studies.pools import EngineError, WorkerDiedError
from walklearn.studies.worker import OUT_OF_MEMORY
from walklearn.walks import WALKS

CELL = "small: ring, two, own, printed"


def processes() -> dict[int, tuple[int, str]]:
    """The parent and the command line of every process."""
    known = {}
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            words = (directory / "stat").read_text().rpartition(")")[2].split()
            known[int(directory.name)] = int(words[1]), (directory / "cmdline").read_text()
    return known


def workers_of(parent: int) -> list[int]:
    """The process IDs of the parent's worker processes."""
    return [
        process
        for process, (ancestor, program) in processes().items()
        if ancestor == parent and "walklearn.studies.worker" in program
    ]


def is_running(process: int) -> bool:
    """True if the process exists and is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def study_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Study]]:
    """A function that returns a study whose workers run the given code when they load a walk.

    The code can use `first`, which is True in the first of all workers that get there.
    """

    def study(code: str) -> Study:
        lines = "".join(f"    {line}\n" for line in code.splitlines())
        (tmp_path / "own_walks.py").write_text(
            "import os\n"
            "from walklearn.walks import Uniform as Own\n"
            f"if os.getpid() != {os.getpid()}:\n"
            "    try:\n"
            f"        first = bool(open({str(tmp_path / 'first')!r}, 'x'))\n"
            "    except FileExistsError:\n"
            "        first = False\n" + lines
        )
        return Study.from_text(SMALL + '[methods.own]\nwalk = "own"\n')

    monkeypatch.syspath_prepend(str(tmp_path))
    register_walk("own", "own_walks:Own")
    yield study
    WALKS.remove("own")
    sys.modules.pop("own_walks", None)


@pytest.mark.parametrize("count", [1, 2], ids=["one", "all"])
def test_killed_workers_lose_nothing(tmp_path: Path, count: int) -> None:
    (tmp_path / "study.toml").write_text(LONG)
    with started(*command("--cores", "2"), cwd=tmp_path, **PIPES) as running:
        wait_for_cells(tmp_path, running)
        workers = workers_of(running.pid)
        assert len(workers) == 2
        for worker in workers[:count]:
            os.kill(worker, signal.SIGKILL)
        before = cells_in(tmp_path)
        _, errors = running.communicate(timeout=100)
    assert (running.returncode, errors) == (0, "")
    assert len(cells_in(tmp_path)) == 18
    assert before.items() <= cells_in(tmp_path).items()
    alone = run_study(Study.from_text(LONG), tmp_path / "alone", cores=1)
    assert equal(Results.open(tmp_path / "results" / "small"), alone)


@pytest.mark.parametrize(
    "fault",
    [
        "os._exit(9)",
        "os.kill(os.getpid(), 9)",
        "raise MemoryError",
        # Limits the memory of this process to what it has and 100 MB more, and asks for 200 MB.
        "import resource\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 10**8, used + 10**8))\n"
        "bytearray(2 * 10**8)",
        # The worker's child keeps a copy of the worker's end of the pipe.
        "os.fork() and os._exit(9)\nimport time\ntime.sleep(20)\nos._exit(0)",
    ],
    ids=["exits", "is killed", "runs out of memory", "grows beyond its limit", "leaves a child"],
)
def test_a_task_is_repeated_a_few_times(
    tmp_path: Path, study_with: Callable[[str], Study], fault: str
) -> None:
    once = study_with("if first:\n" + "".join(f"    {line}\n" for line in fault.splitlines()))
    results = run_study(once, tmp_path / "once", cores=2)
    assert (tmp_path / "first").exists()
    assert equal(results, run_study(once, tmp_path / "alone", cores=1))
    always = study_with(fault)
    with pytest.raises(WorkerDiedError, match=f"workers died 3 times over {CELL}") as raised:
        run_study(always, tmp_path / "always", cores=2)
    code = -9 if "kill" in fault else 9 if "exit" in fault else OUT_OF_MEMORY
    assert f"exit code {code}." in str(raised.value)
    assert Results.open(tmp_path / "always" / "small").finished_count <= 2
    assert workers_of(os.getpid()) == []


ODD_ERROR = """\
class Odd(Exception):
    def __init__(self, first, second):
        super().__init__(first + second)
raise Odd("no ", "walk")
"""


@pytest.mark.parametrize(
    ("fault", "kind"),
    [("raise ValueError('no walk')", ValueError), ("raise KeyError('no walk')", KeyError),
     (ODD_ERROR, RuntimeError)],
)  # fmt: skip
def test_an_error_of_any_type_names_the_cell(
    tmp_path: Path, study_with: Callable[[str], Study], fault: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind, match="no walk") as raised:
        run_study(study_with(fault), tmp_path / "out", cores=2)
    notes = "".join(raised.value.__notes__)
    assert CELL in notes
    assert "own_walks.py" in notes  # the traceback of the worker
    assert workers_of(os.getpid()) == []


def test_a_worker_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "missing"))
    with pytest.raises(EngineError, match="worker"):
        run_study(Study.from_text(SMALL), tmp_path / "out", cores=2)


# Has no `if __name__ == "__main__"`. A worker that dies causes no warning.
SCRIPT = f"""
import os, signal, sys, threading, time
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.studies.test_workers import workers_of
from tests.studies.examples import SMALL
from walklearn.studies import Study, run_study

print("started")
def kill():
    while not (workers := workers_of(os.getpid())):
        time.sleep(0.01)
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
killer = threading.Thread(target=kill)
killer.start()
print(run_study(Study.from_text(SMALL), "out", cores=2).finished_count)
killer.join()
"""


def test_a_script_runs_once_and_warnings_are_errors(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    result = run(sys.executable, "-W", "error", "script.py", cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "started\n2\n", "")


def test_ctrl_c_while_workers_start(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(LONG)
    options = {"cwd": tmp_path, "start_new_session": True, **PIPES}
    with started(*command("--cores", "2"), **options) as running:
        wait_until(lambda: workers_of(running.pid), "a worker")
        os.killpg(running.pid, signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert "Interrupted: 0 of 18 cells are stored" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_parent(tmp_path: Path, sent: signal.Signals) -> None:
    """Workers also end in the middle of a task that takes minutes."""
    (tmp_path / "slow_walks.py").write_text(
        "import os, time\n"
        "from walklearn.walks import Uniform as Slow\n"
        "if os.getppid() == int(open('parent').read()):\n"
        "    open(f'busy-{os.getpid()}', 'x')\n"
        "    time.sleep(600)\n"
    )
    script = (
        "import os; open('parent', 'w').write(str(os.getpid()))\n"
        "from walklearn.studies import Study, register_walk, run_study\n"
        "register_walk('slow', 'slow_walks:Slow')\n"
        "run_study(Study.read('study.toml'), 'out', cores=2)\n"
    )
    (tmp_path / "study.toml").write_text(SMALL.replace('walk = "uniform"', 'walk = "slow"'))
    with started(sys.executable, "-c", script, cwd=tmp_path) as running:
        wait_until(lambda: len(list(tmp_path.glob("busy-*"))) == 2, "two busy workers")
        workers = workers_of(running.pid)
        assert len(workers) == 2
        running.send_signal(sent)
        running.wait(timeout=60)
    wait_until(lambda: not any(map(is_running, workers)), "the end of all workers")
