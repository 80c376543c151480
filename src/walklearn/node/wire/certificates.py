"""The certificates of nodes: made at `node init`, told when two neighbours meet.

ECDSA P-256. CA:FALSE: a node vouches for nobody else. Subject and authority key identifiers,
without which a certificate that signed itself is not found among those that are trusted.

>>> import ssl
>>> key, certificate = create("node")
>>> len(public_key(ssl.PEM_cert_to_DER_cert(certificate.decode())))
33
"""

from __future__ import annotations

import datetime

# Devices without a battery start in 1970 or in 2000, and a pinned certificate need not expire:
# RFC 5280 has this end for "no end".
_START = datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC)
_END = datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)

# id-ecPublicKey with the curve prime256v1, as a certificate has it.
_P256 = bytes.fromhex("06072a8648ce3d020106082a8648ce3d030107")


def create(name: str) -> tuple[bytes, bytes]:
    """Make a new key, and a certificate for the name that the key itself signs, both in PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    public = key.public_key()
    identifier = x509.SubjectKeyIdentifier.from_public_key(public)
    authority = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_START)
        .not_valid_after(_END)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(identifier, critical=False)
        .add_extension(authority, critical=False)
        .sign(key, hashes.SHA256())
    )
    return private, certificate.public_bytes(serialization.Encoding.PEM)


def public_key(der: bytes) -> bytes:
    """The P-256 key of a certificate, as a compressed point; ValueError if it has none.

    Read off the structure (RFC 5280, 4.1) rather than found by a search: what stands elsewhere in
    the certificate is for its maker to choose. A running node so needs no other package for it.
    """
    certificate, more = _element(der, 0x30)
    if more:  # TLS would trust a second certificate behind the first as well
        raise ValueError("something follows the certificate")
    rest, _ = _element(certificate, 0x30)
    for tag in (0xA0, 0x02, 0x30, 0x30, 0x30, 0x30):  # version, serial, algorithm, …, subject
        _, rest = _element(rest, tag)
    info, _ = _element(rest, 0x30)
    algorithm, rest = _element(info, 0x30)
    bits, rest = _element(rest, 0x03)
    if algorithm != _P256 or rest or len(bits) != 66 or bits[:2] != b"\x00\x04":
        raise ValueError("the certificate's key is not ECDSA P-256")
    return bytes([2 + bits[65] % 2]) + bits[2:34]


def _element(content: bytes, tag: int) -> tuple[bytes, bytes]:
    """Read the first element of a DER text, which must be of this kind, and what follows it."""
    if len(content) < 2 or content[0] != tag:
        raise ValueError("this is not a certificate")
    size, start = content[1], 2
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(content[2:start], "big")
        if start == 2 or size < 0x80:
            raise ValueError("this is not a certificate in DER")
    if len(content) < start + size:
        raise ValueError("the certificate is cut short")
    return content[start : start + size], content[start + size :]
