"""Certificates, fingerprints and invites."""

from __future__ import annotations

import datetime
import hashlib

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from hypothesis import given
from hypothesis import strategies as st

from walklearn.node.wire import certificates
from walklearn.node.wire.identity import Identity, IdentityError, Invite, check_address

Key = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
ALICE = Identity.create("alice")
INVITE = Invite("alice", "192.0.2.7:7447", ALICE.public_key)


def test_the_certificate_is_what_the_wire_needs() -> None:
    certificate = x509.load_pem_x509_certificate(ALICE.certificate)
    extensions = certificate.extensions
    constraints = extensions.get_extension_for_class(x509.BasicConstraints)
    names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    subject = extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    authority = extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    assert not constraints.value.ca
    assert names.get_values_for_type(x509.DNSName) == ["alice"]
    assert subject.digest == authority.key_identifier
    assert certificate.not_valid_before_utc.year < 1971
    assert certificate.not_valid_after_utc.year == 9999
    point = serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint
    key = certificate.public_key().public_bytes(*point)
    assert ALICE.public_key == key
    assert ALICE.fingerprint == hashlib.sha256(key).hexdigest()


@pytest.mark.parametrize("address", ["192.0.2.7:7447", "[::1]:1", "host-1.example.org:65535", ""])
def test_an_invite_survives_its_line(address: str) -> None:
    invite = Invite("alice", address, ALICE.public_key)
    line = invite.encode()
    assert line.count("\n") == 0
    assert Invite.decode(line) == invite
    assert Invite.decode(f'  "{line[:40]}\n  {line[40:]}"\n') == invite


@pytest.mark.parametrize(
    "address", ["host", "host:0", "host:65536", ":7447", "::1:7447", "a b:1", "host:1/x", "host:-1"]
)
def test_a_wrong_address_is_refused(address: str) -> None:
    with pytest.raises(IdentityError, match="host:port"):
        check_address(address)


@pytest.mark.parametrize("name", ["", "Alice", "a_b", "-a", "a-", "a.b", "a" * 64, "ä"])
def test_a_wrong_name_is_refused(name: str) -> None:
    with pytest.raises(IdentityError, match="name"):
        Identity.create(name)


@given(st.integers(0, len(INVITE.encode()) - 1), st.characters(codec="ascii"))
def test_a_damaged_invite_is_refused(place: int, character: str) -> None:
    line = INVITE.encode()
    damaged = line[:place] + character + line[place + 1 :]
    if damaged == line:
        return
    with pytest.raises(IdentityError, match="invite"):
        Invite.decode(damaged)


@given(st.text(max_size=300))
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(IdentityError, match="walklearn1"):
        Invite.decode(text)


def _certificate(name: str, ca: bool, key: Key, signer: Key) -> bytes:
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=100_000))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    )
    algorithm = hashes.SHA256() if isinstance(signer, ec.EllipticCurvePrivateKey) else None
    return builder.sign(signer, algorithm).public_bytes(serialization.Encoding.DER)


def test_the_key_is_read_off_every_certificate_as_its_parser_reads_it() -> None:
    """Also off one that has another key elsewhere; what is not P-256 or not whole is refused."""
    p256, p384 = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP384R1())
    lure = ALICE.certificate.decode().replace("\n", "")[:60]
    for name in ("bob", lure, "x" * 64):
        der = _certificate(name, True, p256, p256)
        point = serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint
        assert certificates.public_key(der) == p256.public_key().public_bytes(*point)
        for end in range(len(der)):
            with pytest.raises(ValueError, match="certificate"):
                certificates.public_key(der[:end])
    edwards = ed25519.Ed25519PrivateKey.generate()
    for key in (p384, edwards):
        with pytest.raises(ValueError, match="P-256"):
            certificates.public_key(_certificate("bob", False, key, key))


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reading_of_a_key(content: bytes) -> None:
    with pytest.raises(ValueError, match="certificate"):
        certificates.public_key(content)


def test_a_key_that_is_no_point_of_the_curve_is_refused() -> None:
    with pytest.raises(IdentityError, match="curve"):
        Invite("bob", "host:1", b"\x02" + bytes(31) + b"\x01").verify()
    INVITE.verify()
