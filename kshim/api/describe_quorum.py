"""DescribeQuorum (55): the brokers that keep the metadata of the cluster (KIP-595).

The brokers of one process share the metadata. Each of them becomes the controller when those before it are
stopped. So all are voters, the controller leads, and every running broker has all of the metadata. Its
offsets count the changes of the cluster from the first start on. There are no observers, and no listener for
controllers.

v1: when a replica last fetched, and last had everything (KIP-836); for a running broker both are now. v2:
error messages, and the nodes with their listeners (KIP-853).
"""

from __future__ import annotations

from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from schemas.error_code import ErrorCode
from schemas.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Node,
    PartitionData,
    ReplicaState,
    RequestTopicData,
    TopicData,
)

CLUSTER_METADATA = "__cluster_metadata"
UNKNOWN = "This server does not host this topic-partition."


def describe_quorum(
    broker: ClusterView, context: RequestContext, request: DescribeQuorumRequest
) -> DescribeQuorumResponse:
    """Describe the metadata's only partition.

    A request that names any other partition is refused as a whole.
    """
    asked = [(topic.topic_name, it.partition_index) for topic in request.topics for it in topic.partitions]
    if asked != [(CLUSTER_METADATA, 0)] or len(request.topics) > 1:
        return DescribeQuorumResponse(topics=tuple(map(_refused, request.topics)))
    topic = TopicData(topic_name=CLUSTER_METADATA, partitions=(_quorum(broker),))
    nodes = tuple(Node(node_id=node_id) for node_id in broker.cluster.node_ids)
    return DescribeQuorumResponse(topics=(topic,), nodes=nodes)


def _refused(topic: RequestTopicData) -> TopicData:
    partitions = tuple(
        PartitionData(
            partition_index=each.partition_index,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=UNKNOWN,
        )
        for each in topic.partitions
    )
    return TopicData(topic_name=topic.topic_name, partitions=partitions)


def _quorum(broker: ClusterView) -> PartitionData:
    cluster = broker.cluster
    return PartitionData(
        leader_id=cluster.controller_id,
        leader_epoch=cluster.writer.leader_epoch,
        high_watermark=cluster.writer.offset,
        current_voters=tuple(_voter(broker, node_id) for node_id in cluster.node_ids),
    )


def _voter(broker: ClusterView, node_id: int) -> ReplicaState:
    """The state of a voter, as the leader knows it: unknown while the voter is stopped."""
    if node_id not in broker.cluster.running:
        return ReplicaState(replica_id=node_id, log_end_offset=-1)
    now_ms = broker.now_ms()
    return ReplicaState(
        replica_id=node_id,
        log_end_offset=broker.cluster.writer.offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
