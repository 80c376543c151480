"""Handshake of the two ends of a connection: certificates first, then TLS.

Neighbours know each other's public key and no more. So who dials says its certificate, the other
answers with its own, both in the clear: they hold a public key and nothing else that is told to
nobody. If each key is the expected one, TLS 1.3 begins, in which either end trusts this one
certificate only, and so proves that it holds the key. Nothing else is ever trusted.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
import tempfile
from collections.abc import Callable
from typing import NoReturn

from walklearn.node.wire import certificates
from walklearn.node.wire.identity import Identity, check_address, fingerprint_of_key
from walklearn.node.wire.session import Session, Undelivered

SECONDS = 5.0  # for a handshake, from the first byte to the last

_MAGIC = b"walklearn 1\n"
_LENGTH = struct.Struct(">H")
_LONGEST_CERTIFICATE = 4096
_SHUTDOWN_SECONDS = 1.0


class StrangerError(Exception):
    """Whoever is at the other end is not who it should be; or says nothing that makes sense."""


async def dial(
    identity: Identity, address: str, fingerprint: str, make: Callable[[bytes], Session]
) -> Session:
    """Open a session with the neighbour at this address, if it holds the fingerprint's key."""
    connection = await _connected(address)
    try:
        await _tell(connection, identity)
        theirs = await _hear(connection)
        if not theirs:
            raise Undelivered(f"the node at {address} has not added this one")
        if _fingerprint(theirs) != fingerprint:
            raise Undelivered(f"at {address} is a node with another key")
        context = _context(identity, theirs, server_side=False)
        _, session = await asyncio.get_running_loop().create_connection(
            lambda: make(theirs), sock=connection, ssl=context, server_hostname="",
            ssl_handshake_timeout=SECONDS, ssl_shutdown_timeout=_SHUTDOWN_SECONDS,
        )  # fmt: skip
        _check_proved(session)
        try:
            await session.ready
        except BaseException:
            session.abort()
            raise
    except StrangerError as error:
        connection.close()
        raise Undelivered(f"at {address} is no walklearn node: {error}") from None
    except BaseException:
        connection.close()
        raise
    return session


async def claim(connection: socket.socket) -> tuple[bytes, str]:
    """Read the certificate that a caller shows, and its fingerprint; nothing is proved yet."""
    theirs = await _hear(connection)
    return theirs, _fingerprint(theirs)


async def send_away(connection: socket.socket, fingerprint: str) -> NoReturn:
    """Tell whoever dialled that it is no neighbour."""
    await asyncio.get_running_loop().sock_sendall(connection, _MAGIC + _LENGTH.pack(0))
    raise StrangerError(f"not a neighbour: {fingerprint}")


async def welcome(
    identity: Identity, connection: socket.socket, theirs: bytes, session: Session
) -> None:
    """Open the session with whoever dialled, if it holds the key of its certificate."""
    await _tell(connection, identity)
    context = _context(identity, theirs, server_side=True)
    try:
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: session, connection, ssl=context,
            ssl_handshake_timeout=SECONDS, ssl_shutdown_timeout=_SHUTDOWN_SECONDS,
        )  # fmt: skip
    except (OSError, ssl.SSLError) as error:
        raise StrangerError(f"the handshake failed: {error}") from None
    _check_proved(session)


def _check_proved(session: Session) -> None:
    if not session.is_proved:
        raise StrangerError("two certificates")


async def _connected(address: str) -> socket.socket:
    loop = asyncio.get_running_loop()
    host, port = check_address(address)
    error: OSError = OSError("no address")
    for family, kind, _, _, place in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        connection = socket.socket(family, kind)
        connection.setblocking(False)
        try:
            await loop.sock_connect(connection, place)
            return connection
        except BaseException as reason:
            connection.close()
            if not isinstance(reason, OSError):
                raise
            error = reason
    raise error


async def _tell(connection: socket.socket, identity: Identity) -> None:
    own = ssl.PEM_cert_to_DER_cert(identity.certificate.decode())
    message = _MAGIC + _LENGTH.pack(len(own)) + own
    await asyncio.get_running_loop().sock_sendall(connection, message)


async def _hear(connection: socket.socket) -> bytes:
    header = await _read(connection, len(_MAGIC) + _LENGTH.size)
    (size,) = _LENGTH.unpack(header[len(_MAGIC) :])
    if header[: len(_MAGIC)] != _MAGIC or size > _LONGEST_CERTIFICATE:
        raise StrangerError("it speaks another language")
    return await _read(connection, size)


async def _read(connection: socket.socket, size: int) -> bytes:
    """Read exactly so many bytes, because what follows is for TLS."""
    content = b""
    while len(content) < size:
        more = await asyncio.get_running_loop().sock_recv(connection, size - len(content))
        if not more:
            raise StrangerError("it hung up")
        content += more
    return content


def _fingerprint(certificate: bytes) -> str:
    try:
        return fingerprint_of_key(certificates.public_key(certificate))
    except ValueError as error:
        raise StrangerError(str(error)) from None


def _context(identity: Identity, theirs: bytes, server_side: bool) -> ssl.SSLContext:
    """TLS 1.3 with one certificate that is trusted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server_side else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # a key is asked for, not a name
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_verify_locations(cadata=theirs)
    except ssl.SSLError as error:
        raise StrangerError(f"its certificate cannot be read: {error}") from None
    _load(context, identity)
    return context


def _load(context: ssl.SSLContext, identity: Identity) -> None:
    """Load this node's key; `ssl` takes it from a file only, which has a name for a moment."""
    content = identity.key + b"\n" + identity.certificate
    if hasattr(os, "memfd_create") and os.path.exists("/proc/self/fd"):
        descriptor = os.memfd_create("identity")
        try:
            os.write(descriptor, content)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile() as file:  # for its owner only
        file.write(content)
        file.flush()
        context.load_cert_chain(file.name)
