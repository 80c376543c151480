"""A running node, put together from its directory.

    async with Node(NodeDirectory("mynode")).started() as node: ...

It is what programs use; `service` makes a process of it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any

import numpy as np

from walklearn import __version__
from walklearn.node.disk.database import DiskError, StoreError
from walklearn.node.disk.directory import DirectoryError, NodeDirectory
from walklearn.node.disk.store import Store
from walklearn.node.process import status
from walklearn.node.process.control import CommandError
from walklearn.node.process.logs import Log
from walklearn.node.process.metrics import Counters
from walklearn.node.process.own_learner import Dice, own_learner
from walklearn.node.process.runtime import Runtime
from walklearn.node.protocol.events import ResumeWalk
from walklearn.node.protocol.messages import Outcome, Receipt
from walklearn.node.protocol.protocol import recover
from walklearn.node.protocol.state import Phase
from walklearn.node.protocol.tokens import Limits, Token

PRINT = partial(print, flush=True)


@dataclass(frozen=True)
class NodeOptions:
    """Options of the process that runs a node.

    Parameters
    ----------
    listen
        Where to listen instead of where the directory says.
    metrics_port
        The port for Prometheus on 127.0.0.1; None for none.
    linger_seconds
        How long to wait, after the end, for participants that do not have the final model.
    stop_seconds
        How long to try to hand the token over when asked to stop.
    stay
        Whether to go on serving after the end.
    web_port
        Where the node's page is, on 127.0.0.1, 0 for a free port, None for no page.
    validation
        A file of public rows, whose loss the page shows.
    announce
        Is told the address of the page, since the log is for others too.
    """

    listen: str | None = None
    metrics_port: int | None = None
    linger_seconds: float = 60.0
    stop_seconds: float = 20.0
    stay: bool = False
    web_port: int | None = None
    validation: str | os.PathLike[str] | None = None
    announce: Callable[[str], object] = PRINT


class Node:
    """A running node. All its methods are called from one event loop.

    Parameters
    ----------
    directory
        The node's directory.
    log
        Where events go; by default nowhere.
    """

    def __init__(self, directory: NodeDirectory, log: Log | None = None) -> None:
        self.directory, self.plan = directory, directory.plan
        self.log = log or Log(directory.settings.name)
        self._neighbours = directory.neighbours()
        self._neighbours_stamp = directory.neighbours_stamp()
        limits = Limits.of_plan(self.plan)
        self._store = Store.open(directory.store_path, limits, directory.count_path)
        self.counters = Counters(self._store.counted)
        try:
            self._runtime = self._assemble()
        except BaseException:
            self._store.close()
            raise

    def _assemble(self) -> Runtime:
        release = self._store.release()
        if release is None:
            raise StoreError(f"{self.directory.path} has no release: it was not made whole.")
        if release.noise is not None and self.directory.count_path is None:
            raise StoreError(
                f"{self.directory.path} does not say where its contributions are counted, so they "
                "cannot be limited. Make the node anew with `walklearn node init`."
            )
        learner = own_learner(self.directory, release)
        identity = self.directory.identity
        neighbours = [each.fingerprint for each in self._neighbours]
        state = recover(identity.fingerprint, learner, neighbours, self._store.record)
        return Runtime(state, self._store, self.directory, Dice(learner), self.log, self.counters)

    @contextlib.asynccontextmanager
    async def started(self, options: NodeOptions | None = None) -> AsyncIterator[Node]:
        """The node at work; at the end it hands the token over, and its store is closed.

        Parameters
        ----------
        options
            Where to listen, and how long the end may take; by default as the directory says.

        Yields
        ------
        Node
            This node, which hears its neighbours and walks.
        """
        options = options or NodeOptions()
        try:
            settings = self.directory.settings
            port = await self._runtime.start(options.listen or settings.listen, self._neighbours)
            self.log.info("started", port=port, version=__version__, plan=self.plan.digest[:16])
            try:
                yield self
            finally:
                handed_over = await self._runtime.stop(options.stop_seconds)
                self.log.info("stopped", token="gone" if handed_over else "kept")
        finally:
            self._close()

    def _close(self) -> None:
        self._store.counted = self.counters.as_dict()
        try:
            self._store.close()
        except (StoreError, DiskError) as error:  # it would only have been useful
            self.log.error("cannot write", reason=error)

    @property
    def is_finished(self) -> bool:
        """True if this node has the final model."""
        return self._runtime.state.phase is Phase.FINISHED

    @property
    def final(self) -> Token | None:
        """The final model, once it is here."""
        return self._runtime.state.record.final

    @property
    def newest(self) -> Token | None:
        """The newest model seen here."""
        return self._runtime.state.record.newest_model

    @property
    def final_hash(self) -> str | None:
        """The short hash of the final model, by which people compare it."""
        return status.short_hash(self._runtime.state.record)

    @property
    def unconfirmed(self) -> list[str]:
        """The participants that are not known to have the same final model, by name.

        Participants are the neighbours and, where there is one, all in the roster.
        """
        known = self._runtime.state.record.confirmed_by
        names = self._runtime.participants
        return sorted(name for each, name in names.items() if each not in known)

    @property
    def other_models(self) -> dict[str, str]:
        """The participants that have another final model, with its short hash."""
        record, names = self._runtime.state.record, self._runtime.participants
        return {
            names[each]: digest[:status.SHORT] for each, digest in sorted(record.ends.items())
            if each in names and digest != record.final_digest
        }  # fmt: skip

    @property
    def all_know_the_end(self) -> bool:
        """True if every participant that this node can name has the same final model."""
        return self.is_finished and not self.unconfirmed

    @property
    def all_tell_of_the_end(self) -> bool:
        """True if this is so, and every neighbour has said so in this process."""
        return status.all_tell_of_the_end(self._runtime.state) and not self.unconfirmed

    def status(self) -> dict[str, Any]:
        """Return the state of the node as plain values."""
        return {
            "running": True,
            "version": __version__,
            "name": self.directory.settings.name,
            "fingerprint": self._runtime.state.fingerprint,
            "plan": {"name": self.plan.name, "digest": self.plan.digest},
            **self._status,
            "privacy": str(self.plan.claim),
            "counters": self.counters.as_dict(),
        }

    def gauges(self) -> Mapping[str, float | Mapping[str, float]]:
        """The numbers that Prometheus follows, where there are labels one for each."""
        return status.gauges(self._status)

    @property
    def _status(self) -> dict[str, Any]:
        names = {each.fingerprint: each.name for each in self._neighbours}
        return status.node_status(self._runtime.state, names, self._runtime.watch)

    async def start_walk(self, resume: bool = False, force: bool = False) -> None:
        """Begin the walk with a model uniform over W, or go on if its holder is gone for good.

        A `CommandError` says why nothing came of it.

        Parameters
        ----------
        resume
            Go on from the newest model here, in place of a new one.
        force
            Begin also where a walk was heard of, if no model of it was ever here.
        """
        domain, size = self.plan.domain, self.plan.size
        model = np.asarray(domain.sample(size, np.random.default_rng()), dtype=np.float64)
        if resume:
            receipt = await self._runtime.dispatch(ResumeWalk(monotonic()))
        else:
            receipt = await self._runtime.start_walk(secrets.token_hex(16), model, force)
        _check_accepted(receipt)
        self.log.info("walk resumed" if resume else "walk started")

    async def look_for_neighbours(self) -> None:
        """Take notice of neighbours that were added to the directory or removed from it."""
        stamp = self.directory.neighbours_stamp()
        if stamp == self._neighbours_stamp:
            return
        self._neighbours_stamp = stamp
        try:
            self._neighbours = self.directory.neighbours()
        except DirectoryError as problem:
            self.log.error("cannot read the neighbours", reason=problem)
            return
        await self._runtime.set_neighbours(self._neighbours)
        self.log.info("neighbours changed", neighbours=len(self._neighbours))
        self._runtime.spread_roster()

    def wake(self) -> None:
        """Let whoever waits look again."""
        self._runtime.changed.set()

    async def wait(self, seconds: float) -> None:
        """Wait until something has happened, at most so long; raise an error of the node's work."""
        await self._runtime.wait_for_change(seconds)
        if self._runtime.failed is not None:
            raise self._runtime.failed


def _check_accepted(receipt: Receipt | None) -> None:
    """Raise a `CommandError` unless the node accepted the command."""
    if receipt is None or receipt.outcome is not Outcome.ACCEPTED:
        raise CommandError("nothing came of it" if receipt is None else receipt.reason)
