"""A coordinator's decisions as values: the records to commit, the replies they release, and what follows.

Both coordinators, of groups and of transactions, use these types. A request that cannot be answered yet is
parked under its caller's token; the reply to it is part of the decision of whichever later call completes it.
The named tuples here are built once or more per request, which is why they are tuples and not dataclasses (a
third of the time to build).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kshim.coordination.fencing import ProducerIdAndEpoch
from schemas.internal_topics.consumer_group_log import ConsumerGroupKey, ConsumerGroupValue
from schemas.internal_topics.group_metadata_log import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from schemas.records.end_txn_marker import EndTxnMarker

ANY_NODE = -1

RecordKey = GroupMetadataKey | OffsetCommitKey | ConsumerGroupKey
RecordValue = GroupMetadataValue | OffsetCommitValue | ConsumerGroupValue


class Caller(NamedTuple):
    """The sender of a request: the token that its reply is addressed to, and the facts about its client that
    a group remembers.
    """

    token: int
    api_version: int = 0
    client_id: str = ""
    client_host: str = ""
    node_id: int = 0
    """The broker that received the request; it answers only for the shards that it leads. ANY_NODE: the
    broker that leads the shard answers, whichever that is.
    """


class GroupRecord(NamedTuple):
    """One record of `__consumer_offsets`; a value of None is a tombstone."""

    key: RecordKey
    value: RecordValue | None


class Reply(NamedTuple):
    """A response message and the token of the request that it answers."""

    token: int
    response: object


class HalfDecided(Exception):
    """A bug, its cause, has ended a decision half way: what is in memory may be ahead of the log."""

    def __init__(self, shard: int) -> None:
        super().__init__(shard)
        self.shard = shard


class Decision(NamedTuple):
    """What to do in one shard. The replies are sent, and the endings carried out, once these records and all
    earlier records of the shard are durable.
    """

    shard: int
    records: tuple[Any, ...] = ()
    replies: tuple[Reply, ...] = ()
    reports: tuple[object, ...] = ()
    """Objects whose str() is a line for the log: a rebalance and its cause, an expiry."""
    endings: tuple[object, ...] = ()
    """Transactions whose outcome becomes durable with these records; then each of their partitions gets its
    marker.
    """
    producer: ProducerIdAndEpoch | None = None
    """The producer whose transaction the records are part of; None if they count at once."""
    marker: EndTxnMarker | None = None
    """The end of a transaction, which becomes durable like a record. A decision with a marker has no records.
    """
