"""Counters of a node, served to Prometheus on 127.0.0.1 only.

>>> counters = Counters()
>>> counters.add("refusals", "not a neighbour")
>>> counters.add("updates", amount=3)
>>> counters.as_dict()
{'refusals': {'not a neighbour': 1}, 'updates': 3}
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

# Help texts of the counters.
COUNTERS = {
    "updates": "Updates of the model made here.",
    "handovers_sent": "Tokens handed over and acknowledged.",
    "handovers_received": "Tokens taken from neighbours.",
    "handovers_uncertain": "Attempts to hand over with unknown outcome.",
    "refusals": "Messages and connections refused, by reason.",
    "notes": "Events of the protocol, by kind.",
    "disk_errors": "Writes to disk that failed and were undone.",
}
# Help texts of the gauges; the values come from the status.
GAUGES = {
    "holds_token": "1 while the token is on this node.",
    "handing_over": "1 while the token is on its way to a neighbour.",
    "token_seconds": "Seconds since the token was here, in this process; NaN if it was not.",
    "walk_stalled": "1 while the walk has made no progress for so long that it is presumed lost.",
    "finished": "1 once the final model is here.",
    "newest_updates": "Updates of the newest model on this node.",
    "neighbours": "Neighbours, silent ones too.",
    "neighbours_up": "Neighbours that answer.",
    "neighbours_one_way": "Neighbours that answer and do not reach this node.",
    "neighbours_confirmed": "Neighbours that confirmed the same final model.",
    "contributions": "Contributions of this node's rows to a model with noise.",
    "last_holder": "1 for the last known holder of the token.",
}
# Label names of the metrics that have one.
_LABELS = {"refusals": "reason", "notes": "kind", "last_holder": "holder"}
Gauges = Callable[[], Mapping[str, Any]]
_MAX_LABELS = 100  # reasons may come from outside


class Counters:
    """Counts by name and, for some, by label.

    counted: what `as_dict` gave of an earlier process, to go on from.
    """

    def __init__(self, counted: Mapping[str, Any] | None = None) -> None:
        self._counts = defaultdict[str, Counter[str]](Counter)
        for name, count in (counted or {}).items():
            if name in COUNTERS:
                self._counts[name].update(count if isinstance(count, dict) else {"": count})

    def add(self, name: str, label: str = "", amount: int = 1) -> None:
        """Count something that happened."""
        counts = self._counts[name]
        if label not in counts and len(counts) >= _MAX_LABELS:
            label = "other"
        counts[label] += amount

    def as_dict(self) -> dict[str, Any]:
        """All counts: a number, or where there are labels one for each."""
        # A copy first: another thread may count while Prometheus reads.
        return {
            name: dict(counts) if name in _LABELS else counts[""]
            for name, counts in list(self._counts.items())
        }


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

        for family, texts, values in (
            (CounterMetricFamily, COUNTERS, self._counters.as_dict()),
            (GaugeMetricFamily, GAUGES, self._gauges()),
        ):
            for name, text in texts.items():
                labels = [_LABELS[name]] if name in _LABELS else []
                metric = family(f"walklearn_{name}", text, labels=labels)
                value = values.get(name, {} if labels else 0)
                for each, number in value.items() if labels else [("", value)]:
                    metric.add_metric([each] if labels else [], number)
                yield metric
