"""The records of consumer groups (KIP-848) in __consumer_offsets: kinds 3 to 8 and 16.

`group_metadata_log` reads and writes them together with those of offsets and classic groups. All values are
of v0, which is flexible. Later versions of Kafka have added tagged fields: metadata_hash (4.1, KIP-1101),
assignment_epochs (4.3, KIP-1251) and assignment_timestamp (4.3, KIP-1263). metadata_hash has replaced kind 4,
which is only read, and deleted.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from schemas.message import entity, field, message
from schemas.primitives import (
    array,
    bytes_,
    int8,
    int32,
    int64,
    nullable,
    nullable_array,
    nullable_string,
    string,
    uuid,
)


@message(versions=range(1), flexible=None)
class ConsumerGroupMetadataKey:
    group: str = field(string)


@message(versions=range(1), flexible=0)
class ConsumerGroupMetadataValue:
    epoch: int = field(int32)
    metadata_hash: int = field(int64, tag=0)
    """A hash of the subscribed topics; 0 if there are none, and in records from before Kafka 4.1."""


@message(versions=range(1), flexible=None)
class ConsumerGroupPartitionMetadataKey:
    group: str = field(string)


@entity
class PartitionMetadata:
    partition: int = field(int32)
    racks: tuple[str, ...] = field(array(string))


@entity
class TopicMetadata:
    topic_id: UUID = field(uuid)
    topic_name: str = field(string)
    num_partitions: int = field(int32)
    partition_metadata: tuple[PartitionMetadata, ...] = field(array(PartitionMetadata))


@message(versions=range(1), flexible=0)
class ConsumerGroupPartitionMetadataValue:
    topics: tuple[TopicMetadata, ...] = field(array(TopicMetadata))


@message(versions=range(1), flexible=None)
class ConsumerGroupMemberMetadataKey:
    group: str = field(string)
    member_id: str = field(string)


@entity
class ClassicProtocol:
    name: str = field(string)
    metadata: bytes = field(bytes_)


@entity
class ClassicMemberMetadata:
    """The fields of a member that uses the classic protocol. Timeouts in ms."""

    session_timeout_ms: int = field(int32)
    supported_protocols: tuple[ClassicProtocol, ...] = field(array(ClassicProtocol))


@message(versions=range(1), flexible=0)
class ConsumerGroupMemberMetadataValue:
    instance_id: str | None = field(nullable_string)
    rack_id: str | None = field(nullable_string)
    client_id: str = field(string)
    client_host: str = field(string)
    subscribed_topic_names: Sequence[str] = field(array(string))
    subscribed_topic_regex: str | None = field(nullable_string)
    rebalance_timeout_ms: int = field(int32, default=-1)
    server_assignor: str | None = field(nullable_string)
    classic_member_metadata: ClassicMemberMetadata | None = field(
        nullable(ClassicMemberMetadata), tag=0, default=None
    )


@message(versions=range(1), flexible=None)
class ConsumerGroupTargetAssignmentMetadataKey:
    group: str = field(string)


@message(versions=range(1), flexible=0)
class ConsumerGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = field(int32)
    assignment_timestamp: int = field(int64, tag=0)
    """When the target was computed, in ms since the epoch; 0 if unknown."""


@message(versions=range(1), flexible=None)
class ConsumerGroupTargetAssignmentMemberKey:
    group: str = field(string)
    member_id: str = field(string)


@entity
class TopicPartition:
    topic_id: UUID = field(uuid)
    partitions: tuple[int, ...] = field(array(int32))


@message(versions=range(1), flexible=0)
class ConsumerGroupTargetAssignmentMemberValue:
    topic_partitions: Sequence[TopicPartition] = field(array(TopicPartition))


@message(versions=range(1), flexible=None)
class ConsumerGroupCurrentMemberAssignmentKey:
    group: str = field(string)
    member_id: str = field(string)


@entity
class TopicPartitions:
    topic_id: UUID = field(uuid)
    partitions: tuple[int, ...] = field(array(int32))
    assignment_epochs: tuple[int, ...] | None = field(nullable_array(int32), tag=0, default=None)
    """For each partition, the epoch in which the member got it; None in records from before Kafka 4.3."""


@message(versions=range(1), flexible=0)
class ConsumerGroupCurrentMemberAssignmentValue:
    member_epoch: int = field(int32)
    previous_member_epoch: int = field(int32)
    state: int = field(int8)
    assigned_partitions: tuple[TopicPartitions, ...] = field(array(TopicPartitions))
    partitions_pending_revocation: tuple[TopicPartitions, ...] = field(array(TopicPartitions))


@message(versions=range(1), flexible=None)
class ConsumerGroupRegularExpressionKey:
    group: str = field(string)
    regular_expression: str = field(string)


@message(versions=range(1), flexible=0)
class ConsumerGroupRegularExpressionValue:
    topics: tuple[str, ...] = field(array(string))
    version: int = field(int64)
    """The version of the cluster's metadata in which the topics were found."""
    timestamp: int = field(int64)
    """When the search for the topics began, in ms since the epoch."""


ConsumerGroupKey = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)
ConsumerGroupValue = (
    ConsumerGroupMetadataValue
    | ConsumerGroupPartitionMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
    | ConsumerGroupRegularExpressionValue
)

KINDS: Final[Mapping[int, tuple[type[ConsumerGroupKey], type[ConsumerGroupValue]]]] = {
    3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    4: (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    6: (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
}
"""By kind: the classes of its key and its value."""
