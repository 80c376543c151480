"""Progress bars, announcements, and Ctrl-C during long runs.

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
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm

OnPosition = Callable[[int], object]  # receives the position in a file
MIN_BYTES = 2**22  # smaller files have no bar
BAR_AFTER = 0.5  # seconds of reading before the bar appears
TWICE_WITHIN = 0.75  # seconds between two interrupts that stop everything

_shown: bool | None = None  # None: in a terminal and in a notebook
_interrupted_at = -TWICE_WITHIN


@contextmanager
def stop_on_interrupt(stop: threading.Event) -> Iterator[None]:
    """Set the event at the first Ctrl-C. A second one interrupts as usual.

    So does one that follows soon after another: a user who stops a search over many fits wants to
    stop the search, not one fit after the other.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.getsignal(signal.SIGINT)

    def ask(number: int, frame: Any) -> None:
        global _interrupted_at
        signal.signal(signal.SIGINT, former)
        again = time.monotonic() - _interrupted_at < TWICE_WITHIN
        _interrupted_at = time.monotonic()
        if again and callable(former):
            former(number, frame)
        stop.set()

    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)


@contextmanager
def show_progress(shown: bool | None) -> Iterator[None]:
    """Set the default of bars; False also hides announcements."""
    global _shown
    before, _shown = _shown, shown
    try:
        yield
    finally:
        _shown = before


def progress_bar(
    progress: bool | None, total: int | None, label: str, unit: str = "step", delay: float = 0.0
) -> tqdm[Any]:
    """Return a progress bar.

    Parameters
    ----------
    progress
        True to show it; None shows it in a terminal and in a notebook, or as `show_progress` says.
    total
        The number of steps; None if it is not known.
    label
        The text before the bar.
    unit
        The name of a step.
    delay
        Seconds before the bar appears.

    Returns
    -------
    tqdm
        A context manager with `update(steps)`.
    """
    from tqdm import tqdm

    if progress is None:
        progress = sys.stderr.isatty() or _in_notebook() if _shown is None else _shown
    options: Any = {"total": total, "desc": label, "unit": unit, "unit_scale": True, "delay": delay}
    if progress and _in_notebook():
        from tqdm.notebook import tqdm as notebook_bar

        return notebook_bar(**options)
    return tqdm(**options, disable=not progress)


@contextmanager
def reading_bar(path: Path) -> Iterator[OnPosition]:
    """Show how much of a large file was read. Call the result with each new position.

    >>> with reading_bar(Path(__file__)) as on_position:
    ...     on_position(1000)
    """
    size = path.stat().st_size
    if size < MIN_BYTES:
        yield lambda position: None
        return
    with progress_bar(None, size, f"reading {path.name}", unit="B", delay=BAR_AFTER) as bar:
        yield lambda position: bar.update(position - bar.n)


def announce(line: str, progress: bool | None) -> None:
    """Write a line to standard error, unless progress is False or the command is quiet."""
    if False in (progress, _shown):
        return
    from tqdm import tqdm

    tqdm.write(line, file=sys.stderr)


def _in_notebook() -> bool:
    """Return True in a notebook, where Jupyter's kernel is loaded."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")
