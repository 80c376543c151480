"""The program of a worker process of `pools.Processes`.

It receives tasks through a pipe, performs one at a time, and returns the outcome or the error.
"""

from __future__ import annotations

import os
import pickle
import threading
import traceback
from multiprocessing.connection import Connection
from queue import SimpleQueue

from tqdm import tqdm

from walklearn.studies.tasks import Task, perform

CHECK_SECONDS = 1.0  # between two checks that the parent process is alive
OUT_OF_MEMORY = 137  # the exit code that shells report after the kernel's out-of-memory killer


def serve(handle: int, parent: int) -> None:
    """Perform tasks until the parent process closes its end of the pipe or dies.

    handle: file descriptor of this end of the pipe. parent: process ID of the parent.
    """
    tqdm.set_lock(threading.RLock())  # its default lock is a semaphore, which outlives a kill
    os.set_inheritable(handle, False)
    pipe = Connection(handle)
    tasks: SimpleQueue[Task] = SimpleQueue()
    # A thread reads the pipe, so that the process also ends in the middle of a long task.
    threading.Thread(target=_receive, args=(pipe, parent, tasks), daemon=True).start()
    while True:
        pipe.send_bytes(_reply(tasks.get()))


def _receive(pipe: Connection, parent: int, tasks: SimpleQueue[Task]) -> None:
    try:
        while True:
            while not pipe.poll(CHECK_SECONDS):
                # A child of the parent may hold a copy of its end of the pipe.
                if os.getppid() != parent:
                    return
            tasks.put(pipe.recv())
    except (EOFError, OSError):
        pass
    finally:
        os._exit(0)


def _reply(task: Task) -> bytes:
    """Perform the task and return the pickled pair (outcome, error)."""
    try:
        return pickle.dumps((perform(task), None))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)  # a new process has more memory left
    except Exception as error:
        error.add_note(f"Raised in a worker process:\n{traceback.format_exc()}")
        return _pickled_error(error, task)


def _pickled_error(error: Exception, task: Task) -> bytes:
    try:
        reply = pickle.dumps((None, error))
        pickle.loads(reply)  # fails for many exceptions whose constructor takes several arguments
    except Exception:
        substitute = RuntimeError(f"{task.cell}: {type(error).__name__}: {error}")
        substitute.__notes__ = error.__notes__
        return pickle.dumps((None, substitute))
    return reply
