"""Identity of a node: a key, and the invite for its neighbours.

There is no authority. A node makes an ECDSA P-256 key; its neighbours keep the public one and
trust that one only, as SSH and Syncthing do. What people compare by eye is the *fingerprint*, the
SHA-256 of the public key. An *invite* is one line with name, address and public key, and a
checksum against a damaged paste; the certificate, which TLS needs, is fetched when they meet:

    walklearn1:alice@192.0.2.7:7447/A3fQ…x8.1f0c9a3e

>>> identity = Identity.create()
>>> invite = Invite("alice", "192.0.2.7:7447", identity.public_key)
>>> len(invite.encode())
85
>>> Invite.decode(invite.encode()) == invite
True
>>> len(invite.fingerprint)
64
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import ssl
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

from walklearn.node.wire import certificates

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

SCHEME = "walklearn1"
LONGEST_INVITE = 600
# So that nothing signed here can pass for something that TLS has the same key sign.
_SIGNED = b"walklearn signature\n"


class IdentityError(ValueError):
    """A name, address, certificate or invite that cannot be used, and why."""


@dataclass(frozen=True)
class Identity:
    """A node's private key and certificate, both in PEM. The key never leaves the node."""

    key: bytes
    certificate: bytes

    @classmethod
    def create(cls, name: str = "node") -> Self:
        """Make a new key; strangers see its certificate, so those of all nodes bear one name."""
        check_name(name)
        return cls(*certificates.create(name))

    @property
    def fingerprint(self) -> str:
        """The identity that neighbours use."""
        return fingerprint_of_key(self.public_key)

    @property
    def public_key(self) -> bytes:
        """The P-256 point in its 33 bytes; its SHA-256 is the fingerprint."""
        try:
            der = ssl.PEM_cert_to_DER_cert(self.certificate.decode("ascii").strip())
            return certificates.public_key(der)
        except ValueError as error:
            raise IdentityError(f"this is not a walklearn node's certificate: {error}.") from None

    def sign(self, message: bytes) -> bytes:
        """Sign a message, which begins with what it is about (see `verified`)."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec

        return self._private_key.sign(_SIGNED + message, ec.ECDSA(hashes.SHA256()))

    @cached_property
    def _private_key(self) -> EllipticCurvePrivateKey:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key = load_pem_private_key(self.key, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return key


@dataclass(frozen=True)
class Invite:
    """A participant as others identify it.

    Parameters
    ----------
    name
        What the participant is called.
    address
        Host:port, or empty for one that dials and cannot be dialled.
    public_key
        The public key, a P-256 point in 33 bytes.

    Examples
    --------
    >>> invite = Invite("alice", "192.0.2.7:7447", Identity.create().public_key)
    >>> Invite.decode(invite.encode()) == invite
    True
    """

    name: str
    address: str
    public_key: bytes

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.address:
            check_address(self.address)
        if len(self.public_key) != 33 or self.public_key[0] not in (2, 3):
            raise IdentityError(f"the key of {self.name} is not a P-256 key in 33 bytes.")

    def verify(self) -> Self:
        """Return the invite itself, once its key is checked: done when a neighbour is added."""
        from cryptography.hazmat.primitives.asymmetric import ec

        try:
            ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), self.public_key)
        except ValueError:
            raise IdentityError(f"the key of {self.name} is no point of the curve P-256.") from None
        return self

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the key, in hex: what neighbours know it by."""
        return fingerprint_of_key(self.public_key)

    def encode(self) -> str:
        """The one line to send to a neighbour, or to the roster signer."""
        at = f"@{self.address}" if self.address else ""
        body = f"{SCHEME}:{self.name}{at}/{to_text(self.public_key)}"
        return f"{body}.{_checksum(body)}"

    @classmethod
    def decode(cls, line: str) -> Self:
        """Read an invite.

        Parameters
        ----------
        line
            What `encode` gave; white space that a mail program put in does not matter.

        Returns
        -------
        Invite
            An `IdentityError` is raised for what is no invite, or not a whole one.
        """
        line = "".join(line.split()).strip("\"'")  # a mail program may have wrapped it
        scheme, _, rest = line.partition(":")
        if scheme != SCHEME or len(line) > LONGEST_INVITE:
            raise IdentityError(
                f'an invite is one line that begins with "{SCHEME}:", as `walklearn node invite` '
                f"prints it; this begins with {line[:24]!r}."
            )
        body, _, checksum = line.rpartition(".")
        if checksum != _checksum(body):
            raise IdentityError(
                "the invite is incomplete or was changed on its way (its checksum does not fit): "
                "copy the whole line again."
            )
        who, _, key = rest.rpartition(".")[0].rpartition("/")
        name, _, address = who.partition("@")
        return cls(name, address, from_text(key))


def fingerprint_of_key(public_key: bytes) -> str:
    """SHA-256 of a public key (a compressed P-256 point), in hex."""
    return hashlib.sha256(public_key).hexdigest()


def verified(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """True if the holder of the key signed the message.

    >>> alice = Identity.create("alice")
    >>> signature = alice.sign(b"roster 1")
    >>> verified(alice.public_key, b"roster 1", signature)
    True
    >>> verified(alice.public_key, b"roster 2", signature)
    False
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), public_key)
        key.verify(signature, _SIGNED + message, ec.ECDSA(hashes.SHA256()))
    except (InvalidSignature, ValueError):
        return False
    return True


def for_eyes(digest: str) -> str:
    """The beginning of a fingerprint in short groups, to compare by eye or over the telephone.

    100 bits: nobody finds another key that begins with the same ones.

    >>> for_eyes("0123456789abcdef" * 4)
    '01234 56789 abcde f0123 45678'
    """
    return " ".join(digest[start : start + 5] for start in range(0, 25, 5))


def check_name(name: str) -> None:
    """Check that a node's name is a DNS label."""
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name):
        raise IdentityError(
            f"a node's name has 1 to 63 letters a-z, digits and inner hyphens, got {name!r}."
        )


def check_address(address: str) -> tuple[str, int]:
    """Read host and port of host:port; an IPv6 address stands in brackets.

    >>> check_address("[::1]:7447")
    ('::1', 7447)
    """
    found = re.fullmatch(r"(\[[0-9a-fA-F:.%]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})", address)
    if not found or not 0 < int(found[2]) < 65536 or len(address) > 300:
        raise IdentityError(
            f"an address is host:port with a port from 1 to 65535 (IPv6 as [::1]:7447), "
            f"got {address!r}."
        )
    return found[1].strip("[]"), int(found[2])


def to_text(content: bytes) -> str:
    """Bytes in letters, digits, - and _."""
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def from_text(text: str) -> bytes:
    """The bytes that `to_text` wrote."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise IdentityError(f"a key or signature is damaged: {error}.") from None


def no_address(one: str, other: str) -> str:
    """Return the message that neither of two neighbours has an address."""
    return (
        f"neither {one} nor {other} has an address, so they cannot be neighbours: neither can dial "
        "the other. Choose neighbours that can be dialled."
    )


def _checksum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:8]
