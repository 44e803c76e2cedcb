"""What a coordinator decides, as values: the records to commit, the replies they release, and what follows.

Both coordinators, of groups and of transactions, decide in these words. A request that cannot be answered yet
is parked under its caller's token; the reply to it is part of the decision of whichever later call completes
it. The named tuples here are built once or more per request, which is why they are tuples and not dataclasses
(a third of the time to build).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kshim.coordination.fencing import ProducerIdAndEpoch
from schemas.internal_topics.group_metadata_log import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from schemas.records.end_txn_marker import EndTxnMarker

ANY_NODE = -1


class Caller(NamedTuple):
    """Who asks: the token its reply is addressed to, and what a group remembers of its client."""

    token: int
    api_version: int = 0
    client_id: str = ""
    client_host: str = ""
    node_id: int = 0
    """The broker that was asked: it answers only for the shards that it leads. ANY_NODE: whichever does."""


class GroupRecord(NamedTuple):
    """One record of `__consumer_offsets`; a value of None is a tombstone."""

    key: GroupMetadataKey | OffsetCommitKey
    value: GroupMetadataValue | OffsetCommitValue | None


class Reply(NamedTuple):
    """A response message and the token of the request that it answers."""

    token: int
    response: Any


class Decision(NamedTuple):
    """What is to be done in one shard. Replies leave, and endings follow, once these records and all earlier
    ones of the shard are durable.
    """

    shard: int
    records: tuple[Any, ...] = ()
    replies: tuple[Reply, ...] = ()
    reports: tuple[object, ...] = ()
    """What the log is told, by str(): a rebalance and why, what has expired."""
    endings: tuple[Any, ...] = ()
    """Transactions whose outcome these records are: each partition of theirs is to get its marker."""
    producer: ProducerIdAndEpoch | None = None
    """Whose transaction the records are part of; None where they count at once."""
    marker: EndTxnMarker | None = None
    """The end of a transaction, to be made durable like a record; then there are no records."""
