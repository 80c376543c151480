"""The page of `walklearn up --view`: the whole network, and buttons that kill a node and start it.

Only the process that has made all nodes can show this: it has everybody's rows and directories. A
node's own page (`node.process.node_page`) shows what that node knows.
"""

from __future__ import annotations

import time
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.graphs import spring_layout
from walklearn.node.process.live_page import LivePage
from walklearn.node.trial.local_network import LocalNetwork
from walklearn.node.trial.two_gaussians import Glimpse, NodeGlimpse, Trial

_MAX_POINTS, _MAX_EVENTS = 4000, 200
# Notes of the protocol that come with every hop, or say what the page shows anyway.
_QUIET = ("rejected", "silent neighbour", "obsolete")


class NetworkView:
    """Content of the network's page. Use `page` as a context manager to serve it."""

    def __init__(self, network: LocalNetwork, trial: Trial, about: str) -> None:
        self._network, self._trial, self._about = network, trial, about
        self._names = [directory.settings.name for directory in network.directories]
        self._places = _unit_square(spring_layout(trial.graph))
        self._began: float | None = None
        self._points: list[tuple[int, int, float]] = []
        self._events: list[tuple[int, float, str]] = []  # with their numbers
        self._shown = 0
        self._acting, self._telling = Lock(), Lock()  # buttons are pressed in other threads
        self._before: Glimpse | None = None
        self._moved = (0, 0.0)
        self._now: dict[str, Any] | None = None
        actions = {"kill": partial(self._act, True), "start": partial(self._act, False)}
        self.page = LivePage("network", self._first, actions)

    def begin(self) -> None:
        """Note that the walk begins now."""
        self._began = time.monotonic()
        self.tell("the walk begins")

    def show(self, glimpse: Glimpse) -> None:
        """Let the browsers see the network as it is now."""
        seconds = self._seconds
        if glimpse.updates != self._moved[0]:
            self._moved = (glimpse.updates, seconds)
        self._note_changes(glimpse)
        point = self._new_point(glimpse)
        importance = np.array([node.importance for node in glimpse.nodes])
        self._now = {
            "seconds": round(seconds, 1),
            "begun": self._began is not None,
            "updates": glimpse.updates,
            "of": glimpse.of,
            "error": glimpse.error,
            "messages": glimpse.messages,
            "holder": glimpse.holder,
            "finished": glimpse.finished,
            "still_seconds": round(seconds - self._moved[1], 1),
            "phases": [node.phase for node in glimpse.nodes],
            "law": (importance / importance.sum()).round(6).tolist(),
            "made": [node.updates for node in glimpse.nodes],
        }
        with self._telling:
            events, self._shown = self._events[self._shown :], len(self._events)
        self.page.publish({**self._now, "events": events, "point": point})

    def tell(self, text: str) -> None:
        """Add a line to what happened."""
        with self._telling:
            self._events.append((len(self._events), round(self._seconds, 1), text))

    @property
    def _seconds(self) -> float:
        return 0.0 if self._began is None else time.monotonic() - self._began

    def _first(self) -> dict[str, Any]:
        """Everything, for a browser that comes now."""
        return {
            "names": self._names,
            "about": self._about,
            "places": self._places,
            "edges": self._trial.graph.edges().tolist(),
            "points": self._points[:: 1 + len(self._points) // _MAX_POINTS],
            "events": self._events[-_MAX_EVENTS:],
            "now": self._now,
        }

    def _new_point(self, glimpse: Glimpse) -> tuple[int, int, float] | None:
        if glimpse.error is None or (self._points and self._points[-1][0] >= glimpse.updates):
            return None
        self._points.append((glimpse.updates, glimpse.messages, glimpse.error))
        return self._points[-1]

    def _note_changes(self, glimpse: Glimpse) -> None:
        """Say what the nodes say has happened since the last look."""
        if self._before is not None:
            for before, after in zip(self._before.nodes, glimpse.nodes, strict=True):
                self._note_node(before, after)
            if glimpse.ended and not self._before.ended:
                self.tell("every node that runs has the final model")
        self._before = glimpse

    def _note_node(self, before: NodeGlimpse, after: NodeGlimpse) -> None:
        if after.is_up and before.phase in ("starting", "frozen"):
            self.tell(f"{after.name} is up")
        if after.phase == "frozen" and before.phase != "frozen":
            self.tell(f"{after.name} does not answer")
        for kind, count in after.notes.items():
            if kind not in _QUIET and count > before.notes.get(kind, 0) and before.is_up:
                self.tell(f"{after.name}: {kind}")

    def _act(self, kill: bool, number: Any) -> None:
        with self._acting:
            name = self._names[_checked(number, self._names)]
            if self._network.is_killed(number) == kill:
                raise ValueError(f"{name} does not run." if kill else f"{name} runs.")
            self.tell(f"{name} was killed" if kill else f"{name} was started again")
            (self._network.kill if kill else self._network.restart)(number)


def _unit_square(places: NDArray[np.float64]) -> list[list[float]]:
    low, high = places.min(axis=0), places.max(axis=0)
    inside: list[list[float]] = ((places - low) / np.maximum(high - low, 1e-9)).round(4).tolist()
    return inside


def _checked(number: Any, names: list[str]) -> int:
    if type(number) is not int or not 0 <= number < len(names):  # True is no number of a node
        raise ValueError(f"there is no node {number!r}.")
    return number
