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
BAR_DELAY = 0.5  # seconds of reading before the bar appears
DOUBLE_INTERRUPT = 0.75  # seconds within which a second Ctrl-C stops everything

_show_bars: bool | None = None  # None: in a terminal and in a notebook
_interrupted_at = -DOUBLE_INTERRUPT


@contextmanager
def stop_on_interrupt(stop: threading.Event) -> Iterator[None]:
    """Set the event at the first Ctrl-C. A second one interrupts as usual.

    An interrupt soon after that of an earlier call also interrupts as usual: a user who stops a
    search over many fits wants to stop the search, not one fit after another.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous_handler = signal.getsignal(signal.SIGINT)

    def handle_interrupt(number: int, frame: Any) -> None:
        global _interrupted_at
        signal.signal(signal.SIGINT, previous_handler)
        is_repeated = time.monotonic() - _interrupted_at < DOUBLE_INTERRUPT
        _interrupted_at = time.monotonic()
        if is_repeated and callable(previous_handler):
            previous_handler(number, frame)
        stop.set()

    signal.signal(signal.SIGINT, handle_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)


@contextmanager
def show_progress(shown: bool | None) -> Iterator[None]:
    """Set the default visibility of bars; False also hides announcements."""
    global _show_bars
    previous, _show_bars = _show_bars, shown
    try:
        yield
    finally:
        _show_bars = previous


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
        progress = sys.stderr.isatty() or _in_notebook() if _show_bars is None else _show_bars
    options: Any = {"total": total, "desc": label, "unit": unit, "unit_scale": True, "delay": delay}
    if progress and _in_notebook():
        from tqdm.notebook import tqdm as notebook_bar

        return notebook_bar(**options)
    return tqdm(**options, disable=not progress)


@contextmanager
def reading_bar(path: Path) -> Iterator[OnPosition]:
    """Show a bar while a large file is read. Call the result with each new position.

    >>> with reading_bar(Path(__file__)) as on_position:
    ...     on_position(1000)
    """
    size = path.stat().st_size
    if size < MIN_BYTES:
        yield lambda position: None
        return
    with progress_bar(None, size, f"reading {path.name}", unit="B", delay=BAR_DELAY) as bar:
        yield lambda position: bar.update(position - bar.n)


def announce(line: str, progress: bool | None) -> None:
    """Write a line to standard error, unless progress is False or the command is quiet."""
    if False in (progress, _show_bars):
        return
    from tqdm import tqdm

    tqdm.write(line, file=sys.stderr)


def _in_notebook() -> bool:
    """Return True in a notebook, where Jupyter's kernel is loaded."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")
