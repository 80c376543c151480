"""A long run and the person who waits for it: how far it is, and Ctrl-C.

>>> import threading
>>> stop = threading.Event()
>>> with stop_on_interrupt(stop), progress_bar(False, total=2, label="walk") as bar:
...     bar.update(2)
>>> stop.is_set()
False
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm

SoFar = Callable[[int], object]  # is told how far something is
WORTH_A_BAR = 2**22  # bytes of a file
BAR_AFTER = 0.5  # seconds of reading it


@contextmanager
def stop_on_interrupt(stop: threading.Event) -> Iterator[None]:
    """The first Ctrl-C asks the batches to stop; a second one interrupts as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.getsignal(signal.SIGINT)

    def ask(number: int, frame: Any) -> None:
        del number, frame
        stop.set()
        signal.signal(signal.SIGINT, former)

    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)


def progress_bar(
    progress: bool | None, total: int | None, label: str, unit: str = "step", delay: float = 0.0
) -> tqdm[Any]:
    """A bar of `total` steps, None if nobody knows; by default not where it is piped.

    delay: seconds after which it appears, so that what is done by then shows nothing.
    """
    from tqdm import tqdm

    shown = (sys.stderr.isatty() or _in_notebook()) if progress is None else progress
    look: Any = {"total": total, "desc": label, "unit": unit, "unit_scale": True, "delay": delay}
    if shown and _in_notebook():
        from tqdm.notebook import tqdm as notebook_bar

        return notebook_bar(**look)
    return tqdm(**look, disable=not shown)


@contextmanager
def reading_bar(path: Path) -> Iterator[SoFar]:
    """How much of a file has been read; call what it gives with the position. Small ones show none.

    >>> with reading_bar(Path(__file__)) as so_far:
    ...     so_far(1000)
    """
    size = path.stat().st_size
    if size < WORTH_A_BAR:
        yield lambda position: None
        return
    with progress_bar(None, size, f"reading {path.name}", unit="B", delay=BAR_AFTER) as bar:
        yield lambda position: bar.update(position - bar.n)


def _in_notebook() -> bool:
    """Jupyter's kernel is loaded exactly where a notebook runs."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")
