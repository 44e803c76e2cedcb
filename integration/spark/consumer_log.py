"""Invented logs of consumer groups, as Spark's Kafka source gives them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from pyspark.sql import DataFrame, SparkSession

from schemas import compiled
from schemas.internal_topics.consumer_group_log import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupValue,
    TopicPartitions,
)
from schemas.internal_topics.group_metadata_log import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    encode_key,
)

LOG = "key binary, value binary, partition int, offset long, timestamp timestamp"
T = 1_700_000_000
GROUP = "billing"
STABLE, UNREVOKED = 0, 1
TOPIC_ID = UUID(int=7)

Record = tuple[ConsumerGroupKey | GroupMetadataKey, ConsumerGroupValue | GroupMetadataValue | None]


def member(member_id: str, instance_id: str | None = None) -> Record:
    """A member's subscription."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=instance_id,
        client_id=f"client-{member_id}",
        client_host="/10.0.0.1",
        subscribed_topic_names=("orders",),
        rebalance_timeout_ms=60_000,
    )
    return ConsumerGroupMemberMetadataKey(group=GROUP, member_id=member_id), value


def current(
    member_id: str, epoch: int, *, state: int = STABLE, has: Sequence[int] = (), gives_up: Sequence[int] = ()
) -> Record:
    """The partitions that a member has, and those that it is to give up."""

    def held(partitions: Sequence[int]) -> tuple[TopicPartitions, ...]:
        return (TopicPartitions(topic_id=TOPIC_ID, partitions=tuple(partitions)),) if partitions else ()

    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=epoch,
        previous_member_epoch=epoch - 1,
        state=state,
        assigned_partitions=held(has),
        partitions_pending_revocation=held(gives_up),
    )
    return ConsumerGroupCurrentMemberAssignmentKey(group=GROUP, member_id=member_id), value


def epoch(number: int) -> Record:
    """A group epoch."""
    return ConsumerGroupMetadataKey(group=GROUP), ConsumerGroupMetadataValue(epoch=number)


def gone(member_id: str) -> list[Record]:
    """The tombstones of a member."""
    return [
        (ConsumerGroupCurrentMemberAssignmentKey(group=GROUP, member_id=member_id), None),
        (ConsumerGroupMemberMetadataKey(group=GROUP, member_id=member_id), None),
    ]


NO_EPOCH: Record = (ConsumerGroupMetadataKey(group=GROUP), None)
NO_CLASSIC: Record = (GroupMetadataKey(group=GROUP), None)


def classic(generation: int, *member_ids: str) -> Record:
    """The record of a classic group."""
    members = tuple(
        MemberMetadata(
            member_id=member_id,
            group_instance_id=None,
            client_id=f"client-{member_id}",
            client_host="/10.0.0.1",
            rebalance_timeout=60_000,
            session_timeout=45_000,
            subscription=b"",
            assignment=b"",
        )
        for member_id in member_ids
    )
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=generation,
        protocol="range",
        leader=member_ids[0] if member_ids else None,
        current_state_timestamp=-1,
        members=members,
    )
    return GroupMetadataKey(group=GROUP), value


def log_of(spark: SparkSession, records: Sequence[Record], group: str = GROUP) -> DataFrame:
    """The records in this order, one a second from T on.

    group: a name for the group that is as long as GROUP.
    """
    assert len(group) == len(GROUP)
    rows = [
        (
            bytearray(encode_key(key).replace(GROUP.encode(), group.encode())),
            None if value is None else _encoded(value),
            3,
            number,
            datetime.fromtimestamp(T + number, UTC),
        )
        for number, (key, value) in enumerate(records)
    ]
    return spark.createDataFrame(rows, LOG)


def _encoded(value: ConsumerGroupValue | GroupMetadataValue) -> bytearray:
    # v1 of a classic group has no time, so the record's time counts.
    version = 1 if isinstance(value, GroupMetadataValue) else 0
    return bytearray(compiled.encoder(type(value), version)(value, version.to_bytes(2)))
