"""Bytes for pyarrow's readers, in memory of its own.

A reader's threads may let go of what they read only after Python has begun to end. If that
belongs to Python, the process then ends in `terminate called without an active exception`
instead of with its exit code (apache/arrow issue 34314; 5 to 15 of 100 processes that end as
soon as they have read something, on a busy machine).
"""

from __future__ import annotations

from typing import Any

from walklearn.files.extras import package


def arrow_memory(content: bytes) -> Any:
    """A copy of ``content`` that pyarrow's readers take as a file.

    >>> arrow_memory(b"rows").read()
    b'rows'
    """
    arrow = package("pyarrow", "tables", "this needs")
    memory = arrow.allocate_buffer(len(content))
    with arrow.FixedSizeBufferWriter(memory) as writer:
        writer.write(content)
    return arrow.BufferReader(memory)
