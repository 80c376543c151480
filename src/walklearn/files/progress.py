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
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm


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


def progress_bar(progress: bool | None, total: int | None, label: str) -> tqdm[Any]:
    """A bar of `total` steps, None if nobody knows; by default not where it is piped."""
    from tqdm import tqdm

    shown = (sys.stderr.isatty() or _in_notebook()) if progress is None else progress
    if shown and _in_notebook():
        from tqdm.notebook import tqdm as notebook_bar

        return notebook_bar(total=total, desc=label, unit="step", unit_scale=True)
    return tqdm(total=total, desc=label, unit="step", unit_scale=True, disable=not shown)


def _in_notebook() -> bool:
    """Jupyter's kernel is loaded exactly where a notebook runs."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")
