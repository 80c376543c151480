"""A node as a process: from its directory to the end of the walk.

    async with Node(NodeDirectory("mynode")).started() as node: ...

`Node` puts the parts together and is what programs use; `serve` adds what a process needs:
signals, the owner's commands, and the rule when to end. It ends when the plan's updates are done,
this node has the final model and so have all its neighbours; for neighbours that are off it waits
`linger_seconds`, or for ever with `stay`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from walklearn import __version__
from walklearn.node.disk.directory import DirectoryError, NodeDirectory
from walklearn.node.disk.store import DiskError, Release, Store, StoreError
from walklearn.node.process.control import CommandError, Control
from walklearn.node.process.logs import Log
from walklearn.node.process.metrics import Counters, serve_metrics
from walklearn.node.process.runtime import Runtime
from walklearn.node.process.status import (
    all_know_the_end,
    confirmed_by,
    gauges,
    node_status,
    privacy_status,
    short_hash,
)
from walklearn.node.protocol.events import Recount, TrustAgain
from walklearn.node.protocol.learner import Draws, Learner
from walklearn.node.protocol.messages import Outcome
from walklearn.node.protocol.protocol import recover
from walklearn.node.protocol.state import Phase
from walklearn.node.protocol.tokens import Limits, Token

# The exit code of a node that has a final model which some neighbour did not confirm.
UNCONFIRMED = 3
# How often the directory is looked at for neighbours that were added or removed by hand.
_LOOK_SECONDS = 1.0
PRINT = partial(print, flush=True)
_SHOW_SECONDS = 0.5  # between two pictures on the node's page


@dataclass(frozen=True)
class Options:
    """How a process runs a node.

    Parameters
    ----------
    listen
        Where to listen instead of where the directory says.
    metrics_port
        The port for Prometheus on 127.0.0.1; None for none.
    linger_seconds
        How long to wait, after the end, for neighbours that do not have the final model.
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
        self._peers = directory.peers()
        self._peers_stamp = directory.peers_stamp()
        self._store = Store.open(directory.store_path, Limits.of_plan(self.plan))
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
        self._privacy = privacy_status(self.plan, release)
        learner = _learner(self.directory, release)
        identity = self.directory.identity
        neighbours = [peer.fingerprint for peer in self._peers]
        state = recover(
            identity.fingerprint, learner, neighbours, self._store.record, identity.secret
        )
        runtime = Runtime(
            state, self._store, identity, self.directory.settings.name, _Dice(learner), self.log,
            self.counters,
        )  # fmt: skip
        runtime.use_book(self.directory, self.wake)
        return runtime

    @contextlib.asynccontextmanager
    async def started(self, options: Options | None = None) -> AsyncIterator[Node]:
        """The node at work; at the end it hands the token over, and its store is closed."""
        options = options or Options()
        try:
            settings = self.directory.settings
            port = await self._runtime.start(
                options.listen or settings.listen, self._peers, self._store.idle_seconds()
            )
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
        """Whether this node has the final model."""
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
        return short_hash(self._runtime.state.record)

    @property
    def unconfirmed(self) -> list[str]:
        """The neighbours that have not said that they have the same final model."""
        known = confirmed_by(self._runtime.state)
        return [peer.name for peer in self._peers if peer.fingerprint not in known]

    async def trust(self, name: str) -> None:
        """Let the walk go to a neighbour again that it was lost to twice."""
        found = [peer.fingerprint for peer in self._peers if peer.name == name]
        if not found:
            raise CommandError(f"there is no neighbour {name}.")
        receipt = await self._runtime.dispatch(TrustAgain(found[0]))
        if receipt is None or receipt.outcome is not Outcome.ACCEPTED:
            raise CommandError("nothing came of it" if receipt is None else receipt.reason)

    @property
    def all_know_the_end(self) -> bool:
        """Whether all neighbours have the final model too."""
        return all_know_the_end(self._runtime.state)

    def status(self) -> dict[str, Any]:
        """What the node knows, as plain values."""
        names = {peer.fingerprint: peer.name for peer in self._peers}
        return {
            "running": True,
            "version": __version__,
            "name": self.directory.settings.name,
            "fingerprint": self._runtime.state.fingerprint,
            "plan": {"name": self.plan.name, "digest": self.plan.digest},
            **node_status(self._runtime.state, names, self._runtime.watch),
            "privacy": self._privacy,
            "counters": self.counters.as_dict(),
        }

    def gauges(self) -> Mapping[str, float]:
        """The numbers that Prometheus follows."""
        return gauges(self._runtime.state, self._runtime.watch)

    async def start_walk(self, resume: bool = False, force: bool = False) -> None:
        """Begin the walk with a model uniform over W, or go on if its holder is gone for good."""
        domain, size = self.plan.domain, self.plan.size
        model = np.asarray(domain.sample(size, np.random.default_rng()), dtype=np.float64)
        if resume:
            receipt = await self._runtime.resume_walk()
        else:
            receipt = await self._runtime.start_walk(secrets.token_hex(16), model, force)
        if receipt is None or receipt.outcome is not Outcome.ACCEPTED:
            raise CommandError("nothing came of it" if receipt is None else receipt.reason)
        self.log.info("walk resumed" if resume else "walk started")

    async def recount(self, contributions: int) -> None:
        """The owner says how often the rows have shown, of a node that has forgotten it."""
        receipt = await self._runtime.dispatch(Recount(contributions))
        if receipt is None or receipt.outcome is not Outcome.ACCEPTED:
            raise CommandError("nothing came of it" if receipt is None else receipt.reason)

    async def look_for_peers(self) -> None:
        """Take notice of neighbours that were added to the directory or removed from it."""
        stamp = self.directory.peers_stamp()
        if stamp == self._peers_stamp:
            return
        self._peers_stamp = stamp
        try:
            peers, damaged = self.directory.readable_peers()
        except DirectoryError as problem:
            self.log.error("cannot read the book", reason=problem)
            return
        for name, error in damaged.items():
            self.log.error("cannot read a neighbour", file=f"{name}.invite", reason=error)
        # One that was known and whose file is damaged now stays; the others count all the same.
        self._peers = peers + [peer for peer in self._peers if peer.name in damaged]
        await self._runtime.set_peers(self._peers)
        self.log.info("neighbours changed", neighbours=len(self._peers))
        self._runtime.spread_book()

    def wake(self) -> None:
        """Let who waits look again."""
        self._runtime.changed.set()

    async def wait(self, seconds: float) -> None:
        """Until something has happened, at most so long; an error of the node's work is raised."""
        await self._runtime.wait_for_change(seconds)
        if self._runtime.failed is not None:
            raise self._runtime.failed


def run_node(directory: NodeDirectory, options: Options, log_level: str = "info") -> int:
    """Be the process of a node: `serve` it until the end, with its log on standard error.

    Its exit code: 0, or `UNCONFIRMED`.
    """
    _allow_many_files()

    async def main() -> bool:
        return await serve(Node(directory, Log(directory.settings.name, level=log_level)), options)

    return 0 if asyncio.run(main()) else UNCONFIRMED


def _allow_many_files() -> None:
    """Each connection is a file; strangers must not use them up."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4096 if hard == resource.RLIM_INFINITY else min(4096, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def serve(node: Node, options: Options) -> bool:
    """Run the node until the end, or until the process is asked to stop.

    False if it ended with a model that some neighbour has not confirmed: there may be another.

    Parameters
    ----------
    node
        The node.
    options
        How the process runs it.

    Returns
    -------
    bool
        False if it ended with a model that some neighbour has not confirmed: there may be
        another.
    """
    stop = asyncio.Event()
    control = Control(node.directory.path, _commands(node))
    metrics = None
    loop = asyncio.get_running_loop()

    def ask_to_stop() -> None:
        stop.set()
        node.wake()

    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, ask_to_stop)
    watched = _page(node, options)
    async with node.started(options), watched:
        try:
            await control.listen()
            if options.metrics_port is not None:
                metrics = serve_metrics(node.counters, node.gauges, options.metrics_port)
            return await _until_done(node, options, stop)
        finally:
            await control.close()
            if metrics is not None:
                metrics.shutdown()


@contextlib.asynccontextmanager
async def _page(node: Node, options: Options) -> AsyncIterator[None]:
    """The node's page, if one is wanted, kept up to date meanwhile."""
    if options.web_port is None:
        yield
        return
    from walklearn.node.process.node_page import NodePage, Validation

    public = None if options.validation is None else Validation(options.validation, node.plan)
    with NodePage(options.web_port, public) as page:
        options.announce(f"Watch this node at {page.page.address}")

        async def show() -> None:
            while True:
                await asyncio.to_thread(page.show, node.status(), node.newest)
                await asyncio.sleep(_SHOW_SECONDS)

        showing = asyncio.get_running_loop().create_task(show())
        try:
            yield
        finally:
            showing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await showing


async def _until_done(node: Node, options: Options, stop: asyncio.Event) -> bool:
    finished_at: float | None = None
    clock = asyncio.get_running_loop().time
    while not stop.is_set():
        await node.look_for_peers()
        if stop.is_set():
            break
        if not node.is_finished:
            finished_at = None
        elif finished_at is None:
            finished_at = clock()
            node.log.info("final model is here")
        if finished_at is not None and not options.stay:
            if node.all_know_the_end:
                break
            if clock() > finished_at + options.linger_seconds:
                node.log.error("end not confirmed", final=node.final_hash, by=node.unconfirmed)
                return False
        await node.wait(_LOOK_SECONDS)
    return True


def _commands(node: Node) -> dict[str, Any]:
    async def status() -> Mapping[str, Any]:
        return node.status()

    async def start_walk(resume: bool, force: bool = False) -> Mapping[str, Any]:
        await node.start_walk(resume, force)
        return {}

    async def peers_changed() -> Mapping[str, Any]:
        await node.look_for_peers()
        return {}

    async def trust(name: str) -> Mapping[str, Any]:
        await node.trust(name)
        return {}

    async def recount(contributions: int) -> Mapping[str, Any]:
        await node.recount(contributions)
        return {}

    return {
        "Status": status, "StartWalk": start_walk, "PeersChanged": peers_changed, "Trust": trust,
        "Recount": recount,
    }  # fmt: skip


def _learner(directory: NodeDirectory, release: Release) -> Learner:
    """The node's part of the learning, with what was settled when it was made."""
    rows, noise = directory.rows, None
    if release.noise is not None:
        from walklearn.privacy.model_noise import ModelNoise

        parameters = {key: value for key, value in release.noise.items() if key != "kind"}
        noise = ModelNoise(**parameters)
    learner = Learner.of_plan(
        directory.plan, rows.X, rows.y, release.importance, noise, release.may_contribute
    )
    if release.mechanism is None:
        return learner
    from walklearn.privacy.ledger import from_description
    from walklearn.privacy.mechanisms import Mechanism

    # To calibrate it anew would keep the first greeting waiting for seconds.
    mechanism = from_description(release.mechanism)
    assert isinstance(mechanism, Mechanism)
    return replace(learner, mechanism=mechanism)


class _Dice:
    """Random numbers for visits; those that hide rows come from the operating system.

    They share no generator: past the cap the noise shows bare, and must tell of no other noise.
    """

    def __init__(self, learner: Learner) -> None:
        self._count, self._size, self._noise = learner.draws, learner.problem.size, learner.noise
        self._remembers = learner.plan.memory is not None
        self._walk = np.random.default_rng()

    def __call__(self) -> Draws:
        noise = None if self._noise is None else self._noise.draw(self._size)
        epoch = secrets.token_hex(16) if self._remembers else ""
        return Draws(self._walk.random(self._count), noise, epoch)
