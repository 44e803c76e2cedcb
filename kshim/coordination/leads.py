"""One shard while a broker leads it: the records it has gathered, and the replies that wait for them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from kshim.coordination.decision import Decision, Reply
from kshim.coordination.fencing import ProducerIdAndEpoch
from kshim.coordination.loading import Leader
from kshim.turns.turn import Signal
from schemas.records.end_txn_marker import EndTxnMarker

MOST_BYTES: Final = 512 * 1024
"""An append of this size takes no further records; the other records of the turn go into the next append."""

Entry = tuple[bytes, bytes | None]
"""Key and value of a record."""


@dataclass(slots=True, eq=False)
class Append:
    """Records that become durable together, and the replies and endings that wait for them."""

    producer: ProducerIdAndEpoch | None = None
    marker: EndTxnMarker | None = None
    entries: list[Entry] = field(default_factory=list)
    size: int = 0
    replies: list[Reply] = field(default_factory=list)
    endings: list[object] = field(default_factory=list)
    settled: Signal | None = None
    """Fires when the append is durable, or void; made for the first that waits for it."""

    def takes(self, decision: Decision) -> bool:
        """True if the records of `decision` may join this batch."""
        may_grow = self.marker is None and decision.marker is None and self.size < MOST_BYTES
        return may_grow and self.producer == decision.producer


@dataclass(slots=True, eq=False)
class Lead:
    """One shard for as long as it is led by a broker."""

    shard: int
    leader: Leader
    gathering: Append | None = None
    """The append that takes the records of this turn; None if the shard has none yet."""
    unsettled: deque[Append] = field(default_factory=deque)
    """All appends that are not durable yet, `gathering` included."""
