"""Pools of workers that perform the tasks of a study.

`ThisProcess`, `Processes` (workers of this machine) and `Ray` (a Ray cluster) perform the same
tasks, whose random numbers do not depend on the worker. `submit` queues a task. `outcomes` yields
finished tasks in any order and raises the error of a failed one. `close` stops the workers at once.
If a worker dies, another one performs its task.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from multiprocessing.connection import Pipe
from typing import Any

from walklearn.checks import check_choice, check_whole
from walklearn.extras import package
from walklearn.simulation.cores import usable_cores
from walklearn.studies.tasks import Task, perform

ENGINES = ("local", "ray")
ATTEMPTS = 3  # workers that may die over a task
CHECK_SECONDS = 1.0  # between two checks that a worker process is alive
CONNECT_SECONDS = 5  # to wait for a cluster


class EngineError(ValueError):
    """An engine that cannot be used as requested."""


class WorkerDiedError(RuntimeError):
    """Several workers died over the same task."""


class ThisProcess:
    """This process, which performs one task after the other."""

    workers = 1

    def __init__(self) -> None:
        self._waiting: deque[Task] = deque()

    def submit(self, task: Task) -> None:
        """Queue the task."""
        self._waiting.append(task)

    def outcomes(self, timeout_seconds: float) -> Iterator[tuple[Task, Any]]:
        """Perform the next task and yield its outcome."""
        if self._waiting:
            task = self._waiting.popleft()
            yield task, perform(task)

    def close(self) -> None:
        """Do nothing: no task is running."""


class Processes:
    """Worker processes of this machine, as many as there are threads to wait for their answers."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._closed = False
        self._started: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._under_way: dict[Future[Any], Task] = {}
        # A process inherits the signal mask of the thread that starts it. Ctrl-C in a terminal
        # reaches all processes, and only this one must react.
        self._threads = ThreadPoolExecutor(
            workers, "study", signal.pthread_sigmask, (signal.SIG_BLOCK, {signal.SIGINT})
        )

    def submit(self, task: Task) -> None:
        """Queue the task for the next idle worker."""
        self._under_way[self._threads.submit(self._perform, task)] = task

    def _perform(self, task: Task) -> Any:
        """Return the outcome of the task, or raise its error. Replace workers that die."""
        for _ in range(ATTEMPTS):
            worker = self._worker()
            try:
                outcome, error = worker.ask(task)
            except (EOFError, OSError):
                exit_code = worker.end()
                if self._closed:
                    raise
            else:
                self._idle.append(worker)
                if error is not None:
                    raise error
                return outcome
        raise WorkerDiedError(_deaths(task, f"the last one with exit code {exit_code}"))

    def _worker(self) -> _Worker:
        """Return an idle worker, or else a new one."""
        with suppress(IndexError):
            return self._idle.pop()
        try:
            worker = _Worker()
        except OSError as error:
            message = f"cannot start a worker process: {error}. Use fewer cores."
            raise EngineError(message) from error
        self._started.append(worker)
        if self._closed:  # while this one was started
            worker.process.kill()
        return worker

    def outcomes(self, timeout_seconds: float) -> Iterator[tuple[Task, Any]]:
        """Yield the outcomes of finished tasks; every task finishes, even if all workers die."""
        done, _ = wait(self._under_way, timeout_seconds, FIRST_COMPLETED)
        for future in done:
            yield self._under_way.pop(future), future.result()

    def close(self) -> None:
        """Kill the workers."""
        self._closed = True
        for worker in list(self._started):
            # The thread that waits for its answer then notices the death.
            worker.process.kill()
        self._threads.shutdown(cancel_futures=True)
        for worker in self._started:
            worker.end()


class _Worker:
    """A worker process and the pipe to it.

    Unlike the processes of multiprocessing, it is no fork of a process with threads and does not
    run the user's script again.
    """

    def __init__(self) -> None:
        self._pipe, other_end = Pipe()
        with other_end:
            handle = other_end.fileno()
            program = (
                f"import sys; sys.path[:] = {list(map(str, sys.path))}; "
                f"from walklearn.studies.worker import serve; serve({handle}, {os.getpid()})"
            )
            self.process = subprocess.Popen(
                [sys.executable, "-c", program], stdin=subprocess.DEVNULL, pass_fds=[handle]
            )

    def ask(self, task: Task) -> tuple[Any, Exception | None]:
        """Return the outcome of the task and its error; raise EOFError or OSError after a death."""
        self._pipe.send(task)
        while not self._pipe.poll(CHECK_SECONDS):
            # The pipe does not end if a child of the worker has a copy of the other end.
            if self.process.poll() is not None:
                raise EOFError
        reply: tuple[Any, Exception | None] = pickle.loads(self._pipe.recv_bytes())
        return reply

    def end(self) -> int:
        """Make sure that the process has ended, and return its exit code."""
        self.process.kill()
        self._pipe.close()
        return self.process.wait()


class Ray:
    """The Ray cluster at the address, or a new one of this machine's cores."""

    def __init__(self, address: str | None, cores: int | None) -> None:
        self._ray = package("ray", "ray", "studies need")
        self._owns_cluster = not self._ray.is_initialized()
        if self._owns_cluster:
            self._connect(address, cores)
        self.workers = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._perform = self._ray.remote(num_cpus=1, max_retries=ATTEMPTS - 1)(perform)
        self._under_way: dict[Any, Task] = {}

    def _connect(self, address: str | None, cores: int | None) -> None:
        new = {"num_cpus": cores, "include_dashboard": False}
        cluster = {"address": address} if address else new
        try:
            _check_address(address)
            self._ray.init(**cluster, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            reason = str(error).strip().split("\n")[0]
            raise EngineError(
                f"no Ray cluster at {address or 'this machine'}: {reason.rstrip('.')}. Start one "
                "with `ray start --head`, set RAY_AUTH_MODE=token if it needs a token, or omit the "
                "address to use this machine."
            ) from error

    def submit(self, task: Task) -> None:
        """Queue the task at the cluster, which repeats it if a worker dies."""
        self._under_way[self._perform.remote(task)] = task

    def outcomes(self, timeout_seconds: float) -> Iterator[tuple[Task, Any]]:
        """Yield the outcomes; raise errors as the task raised them."""
        errors = self._ray.exceptions
        done, _ = self._ray.wait(list(self._under_way), timeout=timeout_seconds)
        for reference in done:
            task = self._under_way.pop(reference)
            try:
                outcome = self._ray.get(reference)
            except errors.RayTaskError as error:
                raise (error.cause or error) from error
            except errors.RayError as error:
                raise WorkerDiedError(_deaths(task, f"Ray reports: {error}")) from error
            yield task, outcome

    def close(self) -> None:
        """Cancel unfinished tasks, and end the cluster unless it ran before the study."""
        for reference in self._under_way:
            self._ray.cancel(reference, force=True)
        if self._owns_cluster:
            self._ray.shutdown()


Pool = ThisProcess | Processes | Ray


def _check_address(address: str | None) -> None:
    """Check that the address answers; Ray itself would wait for minutes."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()


def check_engine(engine: str, address: str | None, cores: int | None) -> None:
    """Raise an error if the engine cannot be used; start nothing."""
    check_choice("engine", engine, ENGINES)
    if cores is not None:
        check_whole("cores", cores)
    if engine == "ray":
        package("ray", "ray", "studies need")
    elif address is not None:
        raise EngineError('an address needs engine "ray"; "local" is this machine.')


def pool_of(engine: str, address: str | None, cores: int | None) -> Pool:
    """Return the workers of an engine."""
    check_engine(engine, address, cores)
    if engine == "ray":
        return Ray(address, cores)
    cores = cores or usable_cores()
    return ThisProcess() if cores == 1 else Processes(cores)


def _deaths(task: Task, last: str) -> str:
    return (
        f"workers died {ATTEMPTS} times over {task.cell}; {last}. Finished cells are kept. If "
        "memory ran out (exit code -9 or 137), use fewer cores."
    )
