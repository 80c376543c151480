"""Who connected to a node and never said a word: it was not a neighbour."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

HANDSHAKE_SECONDS = 5.0
# A connection that has not spoken by then was not a neighbour's.
SILENT_SECONDS = 2 * HANDSHAKE_SECONDS


class Connections:
    """Counts connections that never spoke: gRPC tells nobody of the handshakes it refuses.

    A neighbour speaks at once on a connection it opens. So of the connections that are older
    than the limit, as many were refused as there are more than have ever spoken.
    """

    def __init__(self, refused: Callable[[], None]) -> None:
        self._refused = refused
        self._older, self._spoken, self._counted = 0, 0, 0
        self._last_speakers: dict[str, None] = {}

    def opened(self) -> None:
        """Someone connected."""
        asyncio.get_running_loop().call_later(SILENT_SECONDS, self._judge)

    def spoke(self, address: str) -> None:
        """A call came in from this address."""
        if address in self._last_speakers:
            return
        self._spoken += 1
        self._last_speakers[address] = None
        if len(self._last_speakers) > 1000:
            del self._last_speakers[next(iter(self._last_speakers))]

    def _judge(self) -> None:
        self._older += 1
        if self._older > self._spoken + self._counted:
            self._counted += 1
            self._refused()
