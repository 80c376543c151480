"""Files of the roster signer: the roster, to give to everybody, and the key, to keep.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     roster = new_roster(Path(folder, "hospitals.roster"))
...     files = sorted(file.name for file in Path(folder).iterdir())
>>> files, roster.number
(['hospitals.roster', 'hospitals.roster.key'], 0)
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from walklearn.files.atomic_write import atomic_write
from walklearn.node.disk.directory import others_may_read
from walklearn.node.wire.identity import Identity, verified
from walklearn.node.wire.roster import DEGREE, Roster, RosterError

_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"


def new_roster(path: Path, degree: int = DEGREE) -> Roster:
    """Make a roster signer's key and an empty roster that it signed."""
    for file in (path, key_file(path)):
        if file.exists():
            raise RosterError(f"{file} exists: a roster is made once, and changed by `roster add`.")
    signer = Identity.create("roster-signer")
    roster = Roster.new(signer, degree)
    atomic_write(key_file(path), signer.key + signer.certificate, private=True)
    atomic_write(path, roster.encode())
    return roster


def change_roster(path: Path, change: Callable[[Roster], Roster]) -> Roster:
    """Put the changed roster, signed anew, in place of the old one."""
    signer = _signer(path)
    roster = change(Roster.decode(path.read_bytes(), signer.fingerprint)).signed(signer)
    atomic_write(path, roster.encode())
    return roster


def key_file(path: Path) -> Path:
    """Return the path of the roster signer's key."""
    return path.with_name(path.name + ".key")


def _signer(path: Path) -> Identity:
    file = key_file(path)
    try:
        key, begin, certificate = file.read_bytes().partition(_CERTIFICATE)
    except FileNotFoundError:
        raise RosterError(
            f"{file} is missing: only the roster signer changes a roster, with the key that "
            "`walklearn node roster new` made."
        ) from None
    if shared := others_may_read(file):
        raise RosterError(f"{shared}, or if somebody did, agree on another roster signer.")
    signer = Identity(key, begin + certificate)
    if not _is_whole(signer):
        raise RosterError(
            f"{file} is damaged: put it back from a copy. Without one nobody can change the "
            "roster, and the participants have to agree on another roster signer."
        )
    return signer


def _is_whole(signer: Identity) -> bool:
    """True if key and certificate can be read and belong together."""
    try:
        return verified(signer.public_key, b"a trial", signer.sign(b"a trial"))
    except (ValueError, TypeError, AssertionError):  # what the cryptography says of a damaged key
        return False
