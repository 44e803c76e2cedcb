"""The log of kshim in front of an upstream: the records are elsewhere, and so are the ends of partitions."""

from __future__ import annotations

from kshim.storage.interfaces import Offsets
from kshim.storage.memory import MemoryLog

UNKNOWN = -1


class NoLog(MemoryLog):
    """Holds nothing, and knows of no partition where it ends."""

    def offsets(self, partition_no: int) -> Offsets:
        return Offsets(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
