"""Whether a key is its owner's alone."""

from __future__ import annotations

import stat
from pathlib import Path


def others_may_read(key: Path) -> str:
    """What is wrong and what to do, without a full stop; empty if only the owner may read it."""
    mode = stat.S_IMODE(key.stat().st_mode)
    if not mode & 0o077:
        return ""
    return f"others may read the key {key} (permissions {mode:o}): make it private with chmod 600"
