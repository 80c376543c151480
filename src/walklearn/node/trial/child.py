"""`python -m walklearn.node.trial.child PARENT DIRECTORY`: a node that ends with its parent.

On Linux the kernel stops the process when the one that started it is killed. It asks for that
itself: done by the parent between fork and exec (`preexec_fn`), gRPC's threads make it hang or die.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

_PARENT_DIED = 1  # PR_SET_PDEATHSIG


def main(parent: int, directory: Path) -> None:
    """Run the node of the directory, and stay after the end of the walk."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DIED, signal.SIGTERM)
        if os.getppid() != parent:  # it was killed before we asked
            return
    from walklearn.node.disk.directory import NodeDirectory
    from walklearn.node.process.node import NodeOptions
    from walklearn.node.process.service import run_node

    run_node(NodeDirectory(directory), NodeOptions(stay=True))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
