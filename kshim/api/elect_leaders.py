"""ElectLeaders (43): make the preferred replica, or any replica, lead partitions (KIP-183, KIP-460)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from kshim.cluster import Refusal, leaders
from kshim.cluster.changes import Outcome, TopicPartition
from kshim.cluster.replicas import Election
from kshim.storage.interfaces import StorageError
from kshim.turns.slices import in_pieces
from schemas.error_code import ErrorCode
from schemas.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)

PARTITIONS_AT_ONCE = 500
ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}


async def elect_leaders(
    broker: ClusterView, context: RequestContext, request: ElectLeadersRequest
) -> ElectLeadersResponse:
    """Elect a leader for each partition. If the request names none, all partitions are meant, and the answer
    leaves out those that need no election.
    """
    asked = request.topic_partitions
    wanted = None
    if asked is not None:
        if not asked:
            return ElectLeadersResponse()
        wanted = [(topic.topic, index) for topic in asked for index in topic.partitions]
    election = ELECTIONS.get(request.election_type)
    if election is None:
        unknown = Refusal(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
        results = _as_asked(asked or (), [(partition, unknown) for partition in wanted or ()])
        return ElectLeadersResponse(error_code=unknown.error_code, replica_election_results=results)

    async def elect(some: Sequence[TopicPartition]) -> Outcome:
        return await leaders.elect(broker.cluster, election, some)

    everything = wanted if wanted is not None else list(leaders.all_partitions(broker.cluster.topics))
    try:
        outcome = await in_pieces(broker.rounds, context.turn, everything, elect, PARTITIONS_AT_ONCE)
    except StorageError:
        return ElectLeadersResponse(error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    results = _changed(outcome) if asked is None else _as_asked(asked, outcome)
    return ElectLeadersResponse(replica_election_results=results)


def _as_asked(
    asked: Iterable[TopicPartitions], outcome: Iterable[tuple[TopicPartition, Refusal | None]]
) -> tuple[ReplicaElectionResult, ...]:
    """A result for each partition of the request, in the request's order."""
    results = (_result(index, refusal) for (_, index), refusal in outcome)
    return tuple(
        ReplicaElectionResult(
            topic=topic.topic, partition_result=tuple(itertools.islice(results, len(topic.partitions)))
        )
        for topic in asked
    )


def _changed(outcome: Iterable[tuple[TopicPartition, Refusal | None]]) -> tuple[ReplicaElectionResult, ...]:
    """The results of the partitions that needed an election, grouped by topic."""
    by_topic: dict[str, list[PartitionResult]] = {}
    for (name, index), refusal in outcome:
        results = by_topic.setdefault(name, [])
        if refusal is None or refusal.error_code is not ErrorCode.ELECTION_NOT_NEEDED:
            results.append(_result(index, refusal))
    return tuple(
        ReplicaElectionResult(topic=name, partition_result=tuple(results))
        for name, results in by_topic.items()
    )


def _result(index: int, refusal: Refusal | None) -> PartitionResult:
    return PartitionResult(
        partition_id=index,
        error_code=refusal.error_code if refusal else ErrorCode.NONE,
        error_message=refusal.message if refusal else None,
    )
