"""RemoveRaftVoter (81): refused, see `requests.voters` (KIP-853)."""

from __future__ import annotations

from kshim.answering.views import ClusterView
from kshim.answering.voters import fixed_voters, refuse_cluster, refuse_voter
from kshim.callers import RequestContext
from schemas.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


def remove_raft_voter(
    broker: ClusterView, context: RequestContext, request: RemoveRaftVoterRequest
) -> RemoveRaftVoterResponse:
    """Refuse. The checks are in Kafka's order: cluster, voter; a valid request is refused, too."""
    refusal = (
        refuse_cluster(request.cluster_id, broker.cluster.cluster_id)
        or refuse_voter(request.voter_id, request.voter_directory_id, "Remove")
        or fixed_voters("removing")
    )
    return RemoveRaftVoterResponse(error_code=refusal.error_code, error_message=refusal.message)
