"""A node as a process: signals, the owner's commands, its page, and the rule when to end.

It ends when this node has the final model and so has every participant that it can name: its
neighbours and, where there is one, all in the roster. For those that are off it waits
`linger_seconds`, or for ever with `stay`. However it ends, the log and the exit code say if some
participant has another final model, or none as far as is known.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.process.control import Command, Control
from walklearn.node.process.logs import Log
from walklearn.node.process.metrics import serve_metrics
from walklearn.node.process.node import Node, NodeOptions

if TYPE_CHECKING:
    from walklearn.node.process.node_page import NodePage

# The exit code of a node that has a final model which some participant did not confirm.
UNCONFIRMED = 3
# How often the directory is looked at for neighbours that were added or removed by hand.
_LOOK_SECONDS = 1.0


def run_node(directory: NodeDirectory, options: NodeOptions, log_level: str = "info") -> int:
    """Be the process of a node: `serve` it until the end, with its log on standard error.

    Its exit code: 0, or `UNCONFIRMED`.
    """
    _allow_many_files()

    async def main() -> bool:
        return await serve(Node(directory, Log(directory.settings.name, level=log_level)), options)

    return 0 if asyncio.run(main()) else UNCONFIRMED


def _allow_many_files() -> None:
    """Allow many open files, since each connection is one and strangers must not use them up."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4096 if hard == resource.RLIM_INFINITY else min(4096, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def serve(node: Node, options: NodeOptions) -> bool:
    """Run the node until the end, or until the process is asked to stop.

    Parameters
    ----------
    node
        The node.
    options
        How the process runs it.

    Returns
    -------
    bool
        False if it ended with a model that some participant has not confirmed: there may be
        another.
    """
    stop = asyncio.Event()
    page = _page(node, options)

    async def status() -> Mapping[str, Any]:
        return node.status()

    def ask_to_stop() -> None:
        stop.set()
        node.wake()

    commands: dict[str, Command] = {"Status": status, "StartWalk": node.start_walk}
    control = Control(node.directory.path, commands)
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, ask_to_stop)
    async with node.started(options):
        with contextlib.ExitStack() as stack:
            if page is not None:
                stack.enter_context(page.page)
                options.announce(f"Watch this node at {page.page.address}")
            try:
                await control.listen()
                if options.metrics_port is not None:
                    metrics = serve_metrics(node.counters, node.gauges, options.metrics_port)
                    stack.callback(metrics.shutdown)
                return await _until_done(node, options, stop, page)
            finally:
                await control.close()


def _page(node: Node, options: NodeOptions) -> NodePage | None:
    """Return the node's page, if one is wanted."""
    if options.web_port is None:
        return None
    from walklearn.node.process.node_page import NodePage, Validation

    public = None if options.validation is None else Validation(options.validation, node.plan)
    return NodePage(options.web_port, public)


async def _until_done(
    node: Node, options: NodeOptions, stop: asyncio.Event, page: NodePage | None
) -> bool:
    end = _End(node, options.linger_seconds)
    while not stop.is_set():
        await node.look_for_neighbours()
        if page is not None:
            await asyncio.to_thread(page.show, node.status(), node.newest)
        if stop.is_set() or (end.is_over() and not options.stay):
            break
        await node.wait(_LOOK_SECONDS)
    return end.is_in_order()


class _End:
    """Logs that the final model is here, and once which participants do not confirm it."""

    def __init__(self, node: Node, linger_seconds: float) -> None:
        self._node, self._linger = node, linger_seconds
        self._clock = asyncio.get_running_loop().time
        self._since: float | None = None
        self._complained = False

    def is_over(self) -> bool:
        """True if all participants have the final model, or the wait for them is over.

        What is known from an earlier process is not enough: a neighbour may have lost its model.
        """
        if not self._node.is_finished:
            self._since, self._complained = None, False
            return False
        if self._since is None:
            self._since = self._clock()
            self._node.log.info("final model is here")
        late = self._clock() > self._since + self._linger
        if late:
            self.is_in_order()  # which the log is told also where the process stays
        return late or self._node.all_tell_of_the_end

    def is_in_order(self) -> bool:
        """True if there is no end yet, or all participants confirm it; if not, log who does not."""
        node = self._node
        if not node.is_finished or node.all_know_the_end:
            return True
        if not self._complained:
            self._complained = True
            node.log.error(
                "end not confirmed",
                final=node.final_hash,
                by=node.unconfirmed,
                other_models=node.other_models,
            )
        return False
