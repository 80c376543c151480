"""What a node counts, and how Prometheus reads it: on 127.0.0.1 only.

>>> counters = Counters()
>>> counters.add("refusals", "not a neighbour")
>>> counters.add("updates", amount=3)
>>> counters.as_dict()
{'refusals': {'not a neighbour': 1}, 'updates': 3}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

# Counter -> what it says, and the name of its label if it has one.
COUNTERS: Mapping[str, tuple[str, str | None]] = {
    "updates": ("Updates of the model made here.", None),
    "handovers_sent": ("Tokens handed over and acknowledged.", None),
    "handovers_received": ("Tokens taken from neighbours.", None),
    "handovers_uncertain": ("Attempts to hand over whose end is unknown.", None),
    "refusals": ("Messages and connections refused, by reason.", "reason"),
    "notes": ("Events of the protocol, by kind.", "kind"),
    "disk_errors": ("Writes to disk that failed and were undone.", None),
}
# Gauge -> what it says, and the name of its label if it has one; the values come from the status.
GAUGES: Mapping[str, tuple[str, str | None]] = {
    "holds_token": ("1 while the token is here, and not on its way.", None),
    "handing_over": ("1 while the token is on its way to a neighbour, who may have it.", None),
    "token_seconds": ("Since the token was here, in this process; NaN if it was not.", None),
    "walk_stalled": ("1 while the walk has not moved for as long as makes it count as lost.", None),
    "finished": ("1 once the final model is here.", None),
    "newest_updates": ("Updates of the newest model this node has seen.", None),
    "neighbours": ("Neighbours, silent ones too.", None),
    "neighbours_up": ("Neighbours that answer.", None),
    "neighbours_one_way": ("Neighbours that answer and do not reach this node.", None),
    "neighbours_distrusted": ("Neighbours that have lost the walk too often to have it.", None),
    "neighbours_confirmed": (
        "Neighbours that have said that they have the same final model.",
        None,
    ),
    "contributions": (
        "How often this node's rows have shown in a model that has noise on it.",
        None,
    ),
    "last_holder": ("1 for who had the token last, as far as is known here.", "holder"),
}
Gauges = Callable[[], Mapping[str, float | Mapping[str, float]]]
_MOST_LABELS = 100  # reasons may come from outside


class Counters:
    """Counts by name and, for some, by label.

    counted: what `as_dict` gave of an earlier process, to go on from.
    """

    def __init__(self, counted: Mapping[str, Any] | None = None) -> None:
        self._counts = {
            name: Counter(count if isinstance(count, dict) else {"": count})
            for name, count in (counted or {}).items()
            if name in COUNTERS
        }

    def add(self, name: str, label: str = "", amount: int = 1) -> None:
        """Count something that happened."""
        counts = self._counts.get(name)
        if counts is None:
            counts = self._counts[name] = Counter()
        if label not in counts and len(counts) >= _MOST_LABELS:
            label = "other"
        counts[label] += amount

    def as_dict(self) -> dict[str, Any]:
        """All counts: a number, or where there are labels one for each."""
        return {
            name: dict(counts) if COUNTERS[name][1] else counts[""]
            for name, counts in self._counts.items()
        }

    def items(self, name: str) -> list[tuple[str, int]]:
        """The labels of one counter with their counts."""
        return list(self._counts.get(name, Counter()).items())


def serve_metrics(counters: Counters, gauges: Gauges, port: int) -> Any:
    """Answer Prometheus on 127.0.0.1; returns the server, to be shut down with the node."""
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(counters, gauges))
    try:
        server, _ = start_http_server(port, addr="127.0.0.1", registry=registry)
    except OSError as error:
        raise OSError(
            f"cannot serve metrics on 127.0.0.1:{port}: {error.strerror}. Choose another port "
            "with --metrics-port."
        ) from None
    return server


class _Collector:
    """Gives Prometheus the counts of this moment."""

    def __init__(self, counters: Counters, gauges: Gauges) -> None:
        self._counters, self._gauges = counters, gauges

    def collect(self) -> Iterator[Any]:
        """Yield every counter and gauge, as Prometheus asks for them."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for name, (text, label) in COUNTERS.items():
            labels = [label] if label else []
            counter = CounterMetricFamily(f"walklearn_{name}", text, labels=labels)
            found = self._counters.items(name) or ([] if label else [("", 0)])
            for value, count in found:
                counter.add_metric([value] if label else [], count)
            yield counter
        for name, now in self._gauges().items():
            text, label = GAUGES[name]
            gauge = GaugeMetricFamily(f"walklearn_{name}", text, labels=[label] if label else [])
            for value, number in (now if isinstance(now, Mapping) else {"": now}).items():
                gauge.add_metric([value] if label else [], number)
            yield gauge
