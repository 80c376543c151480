"""A long run and the person who waits for it: how far it is, that it is alive, and Ctrl-C.

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
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm

SoFar = Callable[[int], object]  # is told how far something is
WORTH_A_BAR = 2**22  # bytes of a file
BAR_AFTER = 0.5  # seconds of reading it
SILENCE = 2.0  # seconds without anything that moves, after which a line says what is going on
LONGEST_SILENCE = 60.0  # between lines in a file, where each stays
ANOTHER = 0.75  # seconds: an interrupt that soon after another means all of it

_bars: weakref.WeakSet[Any] = weakref.WeakSet()  # those that are shown
_pulse: _Pulse | None = None
_interrupted_at = -ANOTHER


@contextmanager
def stop_on_interrupt(stop: threading.Event) -> Iterator[None]:
    """Let the first Ctrl-C ask the batches to stop; a second one interrupts as usual.

    So does one that comes right after another: whoever stops a search over many fits means
    the search, and not one fit after the other.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.getsignal(signal.SIGINT)

    def ask(number: int, frame: Any) -> None:
        global _interrupted_at
        signal.signal(signal.SIGINT, former)
        again = time.monotonic() - _interrupted_at < ANOTHER
        _interrupted_at = time.monotonic()
        if again and callable(former):
            former(number, frame)
        stop.set()

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

    shown = (_is_watched() or _in_notebook()) if progress is None else progress
    look: Any = {"total": total, "desc": label, "unit": unit, "unit_scale": True, "delay": delay}
    if shown and _in_notebook():
        from tqdm.notebook import tqdm as notebook_bar

        return notebook_bar(**look)
    moved()
    bar = tqdm(**look, disable=not shown)
    if shown:
        _bars.add(bar)
    return bar


@contextmanager
def reading_bar(path: Path) -> Iterator[SoFar]:
    """Show how much of a large file has been read; call what it gives with the position.

    >>> with reading_bar(Path(__file__)) as so_far:
    ...     so_far(1000)
    """
    doing(f"reading {path.name}")
    size = path.stat().st_size
    if size < WORTH_A_BAR:
        yield lambda position: None
        return
    with progress_bar(None, size, f"reading {path.name}", unit="B", delay=BAR_AFTER) as bar:
        yield lambda position: bar.update(position - bar.n)


@contextmanager
def alive(shown: bool | None = None) -> Iterator[None]:
    """Say on standard error what is going on, whenever nothing has moved for two seconds.

    Parameters
    ----------
    shown
        By default in a terminal only, where the line is rewritten. False also hides the bars that
        are not asked for.

    Examples
    --------
    >>> with alive(False):
    ...     doing("training")
    """
    global _pulse
    before, _pulse = _pulse, _Pulse(shown)
    try:
        with _pulse:
            yield
    finally:
        _pulse = before


def doing(what: str) -> None:
    """Say what is going on from now on, for whoever asks why nothing moves."""
    if _pulse is not None:
        _pulse.what = what


def announce(line: str, progress: bool | None) -> None:
    """Write a line to standard error, unless progress is False or the command is quiet."""
    if progress is False or (_pulse is not None and _pulse.hides):
        return
    from tqdm import tqdm

    moved()
    tqdm.write(line, file=sys.stderr)


def moved() -> None:
    """Clear the line that is rewritten, because something else is about to be shown."""
    if _pulse is not None:
        _pulse.moved()


def rest() -> None:
    """Stop watching, because from here on the command itself shows that it is alive."""
    if _pulse is not None:
        _pulse.end()


class _Pulse:
    """The thread that looks whether anything moves; it writes, and the rest goes on."""

    def __init__(self, shown: bool | None) -> None:
        self.what = "working"
        self.hides = shown is False
        self._terminal = sys.stderr.isatty()
        self._shown = self._terminal if shown is None else shown
        self._begun = self._moved = time.monotonic()
        self._silence, self._written = SILENCE, False
        self._end, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        if self._shown:
            self._thread.start()

    def __exit__(self, *error: object) -> None:
        self.end()

    def end(self) -> None:
        self._end.set()
        self.moved()

    def moved(self) -> None:
        with self._lock:
            self._moved, self._silence = time.monotonic(), SILENCE
            if self._written:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
                self._written = False

    def _watch(self) -> None:
        while not self._end.wait(SILENCE / 8):
            with self._lock:
                if time.monotonic() - self._moved >= self._silence and not self._end.is_set():
                    self._beat()

    def _beat(self) -> None:
        """Let the bars show the time, or write a line."""
        self._moved = time.monotonic()
        bars = [bar for bar in _bars if not bar.disable]
        for bar in bars:
            bar.refresh()
        if bars:
            return
        line = f"… {self.what}, {self._moved - self._begun:.0f} s"
        if self._terminal:
            self._written = True
            sys.stderr.write(f"\r{line}\x1b[K")
        else:
            self._silence = min(2 * self._silence, LONGEST_SILENCE)
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _is_watched() -> bool:
    """Whether somebody sits in front of a terminal, and has not asked for silence."""
    return sys.stderr.isatty() and (_pulse is None or not _pulse.hides)


def _in_notebook() -> bool:
    """Whether a notebook runs: exactly then Jupyter's kernel is loaded."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")
