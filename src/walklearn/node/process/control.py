"""Channel of the owner's commands to a running node: a Unix socket in its directory.

Only who may read the directory may connect. The commands are JSON, and the standard gRPC health
service answers on the same socket (`grpc_health_probe -addr unix:///…/mynode/control`).
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc
from grpc import aio

SERVICE = "walklearn.node.Control"
SOCKET = "control"
Command = Callable[..., Awaitable[Mapping[str, Any] | None]]

# The kernel takes no longer paths for a socket.
_LONGEST_PATH = 100
_SECONDS = 30.0
# In which a node that runs says how it is, unless it is frozen or very busy.
STATUS_SECONDS = 1.0


class NotRunningError(Exception):
    """No node runs on this directory."""


class NotAnsweringError(Exception):
    """A process runs the node, and says nothing."""


class CommandError(ValueError):
    """The node did not do what it was asked, and says why."""


class Control:
    """The socket of a running node. commands: name -> coroutine function of the arguments."""

    def __init__(self, directory: Path, commands: Mapping[str, Command]) -> None:
        from grpc_health.v1 import health, health_pb2_grpc

        self._directory = directory
        self._server = aio.server()
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(_json_handler(command))
            for name, command in commands.items()
        }
        handler = grpc.method_handlers_generic_handler(SERVICE, handlers)
        self._server.add_generic_rpc_handlers((handler,))
        self._health: Any = health.aio.HealthServicer()  # type: ignore[attr-defined]
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)

    async def listen(self) -> None:
        """Begin to answer; whoever calls this holds the lock of the directory."""
        socket = self._directory / SOCKET
        socket.unlink(missing_ok=True)  # left by a process that was killed
        with _short(self._directory) as path:
            self._server.add_insecure_port(f"unix:{path}")
            await self._server.start()
        os.chmod(socket, 0o600)

    async def close(self) -> None:
        """Answer the commands that have begun, and stop listening."""
        await self._server.stop(1.0)
        (self._directory / SOCKET).unlink(missing_ok=True)


def send_command(
    directory: Path, command: str, timeout_seconds: float = _SECONDS, **arguments: Any
) -> dict[str, Any]:
    """Ask the node that runs on a directory.

    A process that is stopped or far too busy is told from none by a `NotAnsweringError`.

    Parameters
    ----------
    directory
        The node's directory.
    command
        What to ask.
    timeout_seconds
        How long to wait for the answer.
    **arguments
        What goes with the command.

    Returns
    -------
    dict[str, Any]
        What it answers.
    """
    if not (directory / SOCKET).exists():
        raise NotRunningError(_not_running(directory))
    with _short(directory) as path, grpc.insecure_channel(f"unix:{path}") as channel:
        call = channel.unary_unary(f"/{SERVICE}/{command}", None, None)
        try:
            reply: bytes = call(json.dumps(arguments).encode(), timeout=timeout_seconds)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNAVAILABLE:
                raise NotRunningError(_not_running(directory)) from None
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                raise NotAnsweringError(
                    f"a process runs the node of {directory} and has not answered for "
                    f"{timeout_seconds:g} s: it is frozen, or very busy."
                ) from None
            raise CommandError(error.details()) from None
    answer: dict[str, Any] = json.loads(reply)
    return answer


def _not_running(directory: Path) -> str:
    return f"no node runs on {directory}: start it with `walklearn node run {directory}`."


def _json_handler(command: Command) -> Any:
    async def handle(message: bytes, context: Any) -> bytes:
        try:
            return json.dumps(await command(**json.loads(message)) or {}).encode()
        except CommandError as error:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
            raise

    return handle


@contextlib.contextmanager
def _short(directory: Path) -> Iterator[str]:
    """A path of the socket that is short enough for the kernel."""
    path = str((directory / SOCKET).resolve())
    if len(path.encode()) <= _LONGEST_PATH:
        yield path
        return
    if not Path("/proc/self/fd").exists():
        raise OSError(f"{directory} has too long a path for a socket: move it higher up.")
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        yield f"/proc/{os.getpid()}/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)
