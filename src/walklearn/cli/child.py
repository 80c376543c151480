"""`python -m walklearn.cli.child PARENT ARGUMENTS`: `walklearn ARGUMENTS`, ended with its parent.

On Linux the kernel stops the process when the one that started it is killed. It asks for that
itself: done by the parent between fork and exec (`preexec_fn`), gRPC's threads make it hang or die.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PARENT_DIED = 1  # PR_SET_PDEATHSIG


def main(parent: int, *arguments: str) -> None:
    """Run the command line."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DIED, signal.SIGTERM)
        if os.getppid() != parent:  # it was killed before we asked
            return
    from walklearn.cli import main as command_line

    command_line(list(arguments), prog_name="walklearn")


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
