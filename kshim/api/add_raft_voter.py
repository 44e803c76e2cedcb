"""AddRaftVoter (80): refused, see `requests.voters` (KIP-853)."""

from __future__ import annotations

from collections.abc import Sequence

from kshim.answering.views import ClusterView
from kshim.answering.voters import fixed_voters, refuse_cluster, refuse_voter
from kshim.callers import RequestContext
from kshim.cluster import Refusal
from schemas.error_code import ErrorCode
from schemas.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener

CONTROLLER = "CONTROLLER"
"""The name that Kafka's sample configs give to the listener of controllers."""


def add_raft_voter(
    broker: ClusterView, context: RequestContext, request: AddRaftVoterRequest
) -> AddRaftVoterResponse:
    """Refuse. The checks are in Kafka's order: cluster, voter, listeners; a valid request is refused, too."""
    refusal = (
        refuse_cluster(request.cluster_id, broker.cluster.cluster_id)
        or refuse_voter(request.voter_id, request.voter_directory_id, "Add")
        or _refuse_listeners(request.listeners)
        or fixed_voters("adding")
    )
    return AddRaftVoterResponse(error_code=refusal.error_code, error_message=refusal.message)


def _refuse_listeners(listeners: Sequence[Listener]) -> Refusal | None:
    addresses = {each.name.upper(): f"{each.host}/<unresolved>:{each.port}" for each in listeners}
    if "" in addresses:  # Apache Kafka would crash
        return Refusal(ErrorCode.INVALID_REQUEST, "Add voter request has a listener without a name")
    if CONTROLLER in addresses:
        return None
    endpoints = ", ".join(f"ListenerName({name})={address}" for name, address in addresses.items())
    message = (
        f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{endpoints}}})) for the "
        f"default listener ListenerName({CONTROLLER})"
    )
    return Refusal(ErrorCode.INVALID_REQUEST, message)
