"""Log lines for machines: one JSON object per line on standard error.

What a node logs is about the walk and its neighbours: who spoke, what was refused and why. Never
rows, gradients or L_i. A flood of the same event, from garbage on the port for example, is
thinned: so many lines a second, then the number that was left out.

>>> import io
>>> stream = io.StringIO()
>>> log = Log("alice", stream, clock=lambda: 0.0)
>>> log.info("down", neighbour="bob")
>>> log.debug("visit")
>>> print(stream.getvalue(), end="")
{"time":"1970-01-01T00:00:00.000Z","level":"info","node":"alice","event":"down","neighbour":"bob"}
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TextIO

LEVELS = ("debug", "info", "warning", "error")
_LINES_PER_SECOND = 10


class Log:
    """Writes events of at least `level`; an error while writing never stops the node."""

    def __init__(
        self,
        node: str,
        stream: TextIO | None = None,
        level: str = "info",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._node, self._clock = node, clock
        self._stream = sys.stderr if stream is None else stream
        self._least = LEVELS.index(level)
        self._recent: dict[tuple[str, str], _Flood] = {}

    def debug(self, event: str, **facts: Any) -> None:
        """Log what only matters when something is looked for."""
        if self._least == 0:  # asked first, since most events are of this kind
            self._write("debug", event, facts)

    def info(self, event: str, **facts: Any) -> None:
        """Log what an operator may want to know."""
        self._write("info", event, facts)

    def warning(self, event: str, **facts: Any) -> None:
        """Log what was refused or did not work while the node serves on."""
        self._write("warning", event, facts)

    def error(self, event: str, **facts: Any) -> None:
        """Log what somebody has to do something about."""
        self._write("error", event, facts)

    def _write(self, level: str, event: str, facts: dict[str, Any]) -> None:
        if LEVELS.index(level) < self._least:
            return
        now = self._clock()
        flood = self._recent.setdefault((event, str(facts.get("reason", ""))), _Flood())
        if not flood.passes(now):
            return
        if flood.left_out:
            facts = {**facts, "left_out": flood.left_out}
            flood.left_out = 0
        if len(self._recent) > 1000:  # reasons may come from outside
            self._recent.clear()
        stamp = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds")
        head = {"time": stamp.replace("+00:00", "Z"), "level": level, "node": self._node}
        line = json.dumps({**head, "event": event, **facts}, separators=(",", ":"), default=str)
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # no reader any more, or a full disk
            pass


class _Flood:
    """The number of lines of one event in the current second."""

    def __init__(self) -> None:
        self._second, self._lines, self.left_out = -1, 0, 0

    def passes(self, now: float) -> bool:
        """True if one more line may be written."""
        if int(now) != self._second:
            self._second, self._lines = int(now), 0
        self._lines += 1
        if self._lines > _LINES_PER_SECOND:
            self.left_out += 1
            return False
        return True
