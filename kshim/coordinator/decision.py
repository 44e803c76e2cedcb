"""What the coordinator decides, as values: the records to commit and the replies they release.

A request that cannot be answered yet is parked under its caller's token; the reply to it is part of the
decision of whichever later call completes it. The named tuples here are built once or more per request, which
is why they are tuples and not dataclasses (a third of the time to build).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kshim.coordinator.expiry_report import ExpiryReport
from kshim.coordinator.fencing import Producer
from kshim.coordinator.rebalance_report import RebalanceReport
from schemas.end_txn_marker import EndTxnMarker
from schemas.group_metadata_log import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)


class Caller(NamedTuple):
    """Who asks: the token its reply is addressed to, and what a group remembers of its client."""

    token: int
    api_version: int
    client_id: str = ""
    client_host: str = ""
    node_id: int = 0
    """The broker that was asked: it answers only for the shards that it leads."""


class Record(NamedTuple):
    """One record of `__consumer_offsets`; a value of None is a tombstone."""

    key: GroupMetadataKey | OffsetCommitKey
    value: GroupMetadataValue | OffsetCommitValue | None


class Reply(NamedTuple):
    """A response message and the token of the request that it answers."""

    token: int
    response: Any


class Decision(NamedTuple):
    """Records to commit, and replies that leave once these and all earlier records are durable."""

    records: tuple[Record, ...] = ()
    replies: tuple[Reply, ...] = ()
    rebalances: tuple[RebalanceReport, ...] = ()
    """Rebalances that this call completed: why each happened and how long it took."""
    expired: tuple[ExpiryReport, ...] = ()
    """Groups from which this call took what has expired."""
    producer: Producer | None = None
    """Whose transaction the records are part of; None where they count at once."""
    marker: EndTxnMarker | None = None
    """The end of a transaction, to be made durable like a record; then there are no records."""


NOTHING = Decision()
