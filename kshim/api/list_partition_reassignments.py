"""ListPartitionReassignments (46): the partitions that are moving to other replicas (KIP-455).

Only partitions that wait for a stopped broker are listed. All others have moved at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from kshim.cluster import Topic
from schemas.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def list_partition_reassignments(
    broker: ClusterView, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return the reassignments of the requested topics, or of all topics for null.

    Unknown topics have none.
    """
    topics = broker.cluster.topics
    asked: list[tuple[Topic, Sequence[int]]]
    if request.topics is None:
        asked = [(topic, range(len(topic.partitions))) for topic in topics.values()]
    else:
        asked = [
            (topics[wanted.name], wanted.partition_indexes)
            for wanted in request.topics
            if wanted.name in topics
        ]
    ongoing = ((topic.name, tuple(_ongoing(topic, indexes))) for topic, indexes in asked)
    return ListPartitionReassignmentsResponse(
        error_message=None,
        topics=tuple(
            OngoingTopicReassignment(name=name, partitions=found) for name, found in ongoing if found
        ),
    )


def _ongoing(topic: Topic, indexes: Sequence[int]) -> Iterator[OngoingPartitionReassignment]:
    for index in indexes:
        partition = topic.partition(index)
        if partition is not None and (partition.adding or partition.removing):
            yield OngoingPartitionReassignment(
                partition_index=index,
                replicas=partition.replicas,
                adding_replicas=partition.adding,
                removing_replicas=partition.removing,
            )
