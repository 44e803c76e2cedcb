"""What a coordinator decides, as values: the records to commit, the replies they release, and what follows.

Both coordinators, of groups and of transactions, use these types. A request that cannot be answered yet is
parked under its caller's token; the reply to it is part of the decision of whichever later call completes it.
The named tuples here are built once or more per request, which is why they are tuples and not dataclasses (a
third of the time to build).
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
    """The sender of a request: the token that its reply is addressed to, and what a group remembers of its
    client.
    """

    token: int
    api_version: int = 0
    client_id: str = ""
    client_host: str = ""
    node_id: int = 0
    """The broker that was asked; it answers only for the shards that it leads. ANY_NODE: whichever broker
    leads.
    """


class GroupRecord(NamedTuple):
    """One record of `__consumer_offsets`; a value of None is a tombstone."""

    key: GroupMetadataKey | OffsetCommitKey
    value: GroupMetadataValue | OffsetCommitValue | None


class Reply(NamedTuple):
    """A response message and the token of the request that it answers."""

    token: int
    response: Any


class Decision(NamedTuple):
    """What to do in one shard. Replies leave, and endings follow, once these records and all earlier ones of
    the shard are durable.
    """

    shard: int
    records: tuple[Any, ...] = ()
    replies: tuple[Reply, ...] = ()
    reports: tuple[object, ...] = ()
    """Lines for the log, by str(): a rebalance and its cause, an expiry."""
    endings: tuple[Any, ...] = ()
    """Transactions whose outcome is durable with these records; each of their partitions is to get its
    marker.
    """
    producer: ProducerIdAndEpoch | None = None
    """The producer whose transaction the records are part of; None if they count at once."""
    marker: EndTxnMarker | None = None
    """The end of a transaction, to be made durable like a record; a decision with a marker has no records."""
