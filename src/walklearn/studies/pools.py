"""Who does the tasks: this process, worker processes of this machine, or a Ray cluster.

All do the same function on the same tasks, whose random numbers do not depend on who does them.
A worker that dies takes no result with it: its task is given out again.
"""

from __future__ import annotations

import signal
import socket
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from typing import Any

from walklearn.files.extras import package
from walklearn.simulation.threads import usable_cores
from walklearn.studies.tasks import Task, perform

ENGINES = ("local", "ray")
ATTEMPTS = 3  # how often a task is given out before its workers' deaths are held against it
CONNECT_SECONDS = 5  # to wait for a cluster
PASS_ON_SECONDS = 2
IDLE_SECONDS = 60  # after which worker processes that have nothing to do end themselves


class EngineError(ValueError):
    """An engine that cannot be had as asked for, and what to do."""


class WorkerDiedError(RuntimeError):
    """Workers died again and again over the same task."""


class Pool(ABC):
    """Some workers: tasks go in, and outcomes come out in any order."""

    workers: int

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Give a task out."""

    @abstractmethod
    def outcomes(self, timeout_seconds: float) -> Iterator[tuple[Task, Any]]:
        """Give what was done since, after a wait for the first; raise what a task raised."""

    @abstractmethod
    def close(self, *, at_once: bool) -> None:
        """End the workers, after the tasks under way or at once."""


class Here(Pool):
    """This process, one task after the other."""

    workers = 1

    def __init__(self) -> None:
        self._waiting: deque[Task] = deque()

    def submit(self, task: Task) -> None:
        """Remember the task."""
        self._waiting.append(task)

    def outcomes(self, timeout_seconds: float) -> Iterator[tuple[Task, Any]]:
        """Do the next task and give its outcome."""
        if self._waiting:
            task = self._waiting.popleft()
            yield task, perform(task)

    def close(self, *, at_once: bool) -> None:
        """Do nothing, for no task is under way."""


class Processes(Pool):
    """Worker processes, kept for the next study while they are warm."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._executor = _warm_processes(workers)
        self._under_way: dict[Future[Any], Task] = {}
        self._deaths: Counter[Task] = Counter()

    def submit(self, task: Task) -> None:
        """Give the task to whoever is free first."""
        try:
            future = self._executor.submit(perform, task)
        except BrokenExecutor as error:  # just now: as if it had been broken a moment later
            future = Future()
            future.set_exception(error)
        self._under_way[future] = task

    def outcomes(self, timeout_seconds: float) -> Iterator[tuple[Task, Any]]:
        """Give the outcomes; a worker's death breaks all futures, so tasks are submitted anew."""
        done, _ = wait(self._under_way, timeout_seconds, FIRST_COMPLETED)
        lost = [future for future in done if isinstance(future.exception(), BrokenExecutor)]
        for future in done:
            if future not in lost:
                yield self._under_way.pop(future), future.result()
        if lost:
            self._give_out_again()

    def _give_out_again(self) -> None:
        wait(self._under_way)
        tasks = list(self._under_way.values())
        self._under_way.clear()
        self._deaths.update(tasks)
        tired = [str(task.cell) for task in tasks if self._deaths[task] >= ATTEMPTS]
        if tired:
            raise WorkerDiedError(_died(sorted(set(tired))))
        end_warm_processes(self.workers)
        self._executor = _warm_processes(self.workers)
        for task in tasks:
            self.submit(task)

    def close(self, *, at_once: bool) -> None:
        """Leave the workers to the next study, unless they are to stop at once."""
        if not at_once:
            return
        # The executor stumbles, killing its workers, over a task that it has not passed on yet.
        # They have room for all that are under way, so that takes it a moment.
        end = time.monotonic() + PASS_ON_SECONDS
        while time.monotonic() < end and not all(
            future.running() or future.done() for future in self._under_way
        ):
            time.sleep(0.01)
        end_warm_processes(self.workers)


_warm: dict[int, Any] = {}  # by their number


def _warm_processes(workers: int) -> Any:
    """The worker processes of this study and the next; joblib's shared ones would not do.

    Joblib takes all processes that it shares for workers of its own kind.

    Unlike multiprocessing's, these processes neither fork a program with threads nor run the
    user's script again.
    """
    from joblib.externals.loky import ProcessPoolExecutor

    # The executor's thread warns when a worker stops. As an error the warning would end the thread
    # and leave every task pending. Set the filter for each study: pytest removes it after a test.
    warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
    if workers not in _warm:
        _warm[workers] = ProcessPoolExecutor(
            workers, timeout=IDLE_SECONDS, initializer=_become_worker
        )
    return _warm[workers]


def end_warm_processes(workers: int) -> None:
    """Kill the worker processes that are kept warm, also busy ones; later studies start others."""
    if workers in _warm:
        _warm.pop(workers).shutdown(wait=True, kill_workers=True)


class Ray(Pool):
    """A Ray cluster: the one at the address, or one of this machine's cores."""

    def __init__(self, address: str | None, cores: int | None) -> None:
        self._ray = package("ray", "ray", "studies need")
        self._ours = not self._ray.is_initialized()
        if self._ours:
            self._connect(address, cores)
        self.workers = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._perform = self._ray.remote(num_cpus=1, max_retries=ATTEMPTS - 1)(perform)
        self._under_way: dict[Any, Task] = {}

    def _connect(self, address: str | None, cores: int | None) -> None:
        where = {"address": address} if address else {"num_cpus": cores, "include_dashboard": False}
        try:
            _knock(address)
            self._ray.init(**where, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            reason = str(error).strip().split("\n")[0]
            raise EngineError(
                f"no Ray cluster at {address or 'this machine'}: {reason.rstrip('.')}. Start one "
                "with `ray start --head`, set RAY_AUTH_MODE=token if it asks for a token, or leave "
                "the address out to use this machine."
            ) from error

    def submit(self, task: Task) -> None:
        """Give the task to the cluster, which gives it out again if a worker dies."""
        self._under_way[self._perform.remote(task)] = task

    def outcomes(self, timeout_seconds: float) -> Iterator[tuple[Task, Any]]:
        """Give the outcomes; errors come as they were raised."""
        errors = self._ray.exceptions
        done, _ = self._ray.wait(list(self._under_way), timeout=timeout_seconds)
        for reference in done:
            task = self._under_way.pop(reference)
            try:
                outcome = self._ray.get(reference)
            except errors.RayTaskError as error:
                raise (error.cause or error) from error
            except errors.RayError as error:
                raise WorkerDiedError(f"{_died([str(task.cell)])} Ray says: {error}") from error
            yield task, outcome

    def close(self, *, at_once: bool) -> None:
        """End the cluster, unless it was there before."""
        if at_once:
            for reference in self._under_way:
                self._ray.cancel(reference, force=True)
        if self._ours:
            self._ray.shutdown()


def _knock(address: str | None) -> None:
    """Check that somebody answers at the address; Ray itself would wait for minutes."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()


def check_engine(engine: str, address: str | None, cores: int | None) -> None:
    """Raise what can be said against an engine before it is started."""
    if engine not in ENGINES:
        raise EngineError(f'engine must be one of {", ".join(ENGINES)}; it is "{engine}".')
    if cores is not None and cores < 1:
        raise EngineError(f"cores must be at least 1; it is {cores}.")
    if engine == "ray":
        package("ray", "ray", "studies need")
    elif address is not None:
        raise EngineError('an address is for engine "ray"; "local" is this machine.')


def pool_of(engine: str, address: str | None, cores: int | None) -> Pool:
    """The workers of an engine."""
    check_engine(engine, address, cores)
    if engine == "ray":
        return Ray(address, cores)
    cores = cores or usable_cores()
    return Here() if cores == 1 else Processes(cores)


def _become_worker() -> None:
    """Leave Ctrl-C, which in a terminal reaches all processes, to the one that gives out tasks.

    And nothing to be cleaned up behind a worker that is killed: tqdm would take a semaphore.
    """
    from tqdm import tqdm

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tqdm.set_lock(threading.RLock())


def _died(cells: list[str]) -> str:
    return (
        f"workers died {ATTEMPTS} times over {'; '.join(cells)} (out of memory, perhaps). Finished "
        "cells are kept. Try fewer cores."
    )
