"""ElectLeaders (43): let the preferred, or any, replicas lead partitions (KIP-183, KIP-460)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshim.api.later import if_not_stored
from kshim.cluster import leaders
from kshim.cluster.replicas import Election
from kshim.context import Broker, RequestContext
from schemas.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from schemas.error_code import ErrorCode

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}


def elect_leaders(
    broker: Broker, context: RequestContext, request: ElectLeadersRequest
) -> ElectLeadersResponse | Deferred[ElectLeadersResponse]:
    """Each partition by itself. Where all are asked for, those that stay as they are go unmentioned."""
    election = ELECTIONS.get(request.election_type)
    if election is None:
        return ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST)
    asked = request.topic_partitions
    wanted = None
    if asked is not None:
        wanted = [(topic.topic, index) for topic in asked for index in topic.partitions]

    def response(outcome: leaders.Outcome) -> ElectLeadersResponse:
        return ElectLeadersResponse(replica_election_results=_results(outcome, all_asked=wanted is None))

    def failed() -> ElectLeadersResponse:
        return ElectLeadersResponse(error_code=ErrorCode.KAFKA_STORAGE_ERROR)

    return leaders.elect(broker.cluster, election, wanted).addCallbacks(response, if_not_stored(failed))


def _results(outcome: leaders.Outcome, *, all_asked: bool) -> tuple[ReplicaElectionResult, ...]:
    by_topic: dict[str, list[PartitionResult]] = {}
    for (name, index), refusal in outcome.items():
        results = by_topic.setdefault(name, [])
        if all_asked and refusal is not None and refusal.error_code is ErrorCode.ELECTION_NOT_NEEDED:
            continue
        results.append(
            PartitionResult(
                partition_id=index,
                error_code=refusal.error_code if refusal else ErrorCode.NONE,
                error_message=refusal.message if refusal else None,
            )
        )
    return tuple(
        ReplicaElectionResult(topic=name, partition_result=tuple(results))
        for name, results in by_topic.items()
    )
