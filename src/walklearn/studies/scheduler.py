"""Run a study: workers perform its tasks, and each finished cell is stored at once."""

from __future__ import annotations

import os
import threading
from collections import deque
from pathlib import Path
from typing import Any

from walklearn.progress import progress_bar, stop_on_interrupt
from walklearn.studies.cell import Cell
from walklearn.studies.pools import Pool, pool_of
from walklearn.studies.results import Results
from walklearn.studies.study import Study
from walklearn.studies.tasks import CellWork, Task, work_of
from walklearn.studies.verdicts import verdicts

WAIT_SECONDS = 0.2  # maximum delay before Ctrl-C is noticed


def run_study(
    study: Study,
    out: str | os.PathLike[str] = "results",
    *,
    engine: str = "local",
    address: str | None = None,
    cores: int | None = None,
    progress: bool | None = None,
) -> Results:
    """Run all cells of a study that are not finished, then judge its claims.

    Ctrl-C raises KeyboardInterrupt; finished cells are kept, and the same call resumes the study.

    Parameters
    ----------
    study
        The study.
    out
        Parent directory; the results are in a subdirectory with the name of the study.
    engine
        "local", or "ray" for the same tasks on a Ray cluster. Both give the same bits on the
        same kind of machine.
    address
        Address of the Ray cluster; by default a local cluster is started.
    cores
        Number of workers; by default all cores. With 1, no process is started.
    progress
        True for a progress bar; by default in a terminal or a notebook.

    Returns
    -------
    Results
        The stored results. `Results.open` opens them later.
    """
    stop = threading.Event()
    pool = pool_of(engine, address, cores)  # first, so that a wrong engine leaves no files behind
    try:
        results = Results.prepare(Path(out) / study.name, study)
        cells = [cell for cell in study.cells() if not results.is_finished(cell)]
        bar = progress_bar(progress, sum(map(work_of, cells)), study.name)
        with bar, stop_on_interrupt(stop):
            _run(cells, pool, results, stop, bar)
        if study.claims:
            results.write_verdicts(study, verdicts(study, results))
    finally:
        pool.close()
    return results


def _run(cells: list[Cell], pool: Pool, results: Results, stop: threading.Event, bar: Any) -> None:
    """Keep the workers busy; cells in progress come before new ones."""
    queue = deque(CellWork(cell, pool.workers) for cell in cells)
    works: dict[Cell, CellWork] = {}
    waiting: deque[Task] = deque()
    running = 0
    while queue or works:
        while running < 2 * pool.workers and (waiting or queue):
            if not waiting:
                work = queue.popleft()
                works[work.cell] = work
                waiting.extend(work.begin())
            pool.submit(waiting.popleft())
            running += 1
        for task, outcome in pool.outcomes(WAIT_SECONDS):
            running -= 1
            bar.update(task.updates)
            work = works[task.cell]
            waiting.extendleft(reversed(work.store_outcome(task, outcome)))
            if work.result is not None:
                results.write(task.cell, work.result)
                del works[task.cell]
        if stop.is_set():
            raise KeyboardInterrupt
