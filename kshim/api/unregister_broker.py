"""UnregisterBroker (64): forget a broker that is gone for good (KIP-500).

In kshim it is a broker that `kshim cluster stop-broker` has stopped. When it starts again, it is registered
again.
"""

from __future__ import annotations

from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from schemas.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


async def unregister_broker(
    broker: ClusterView, context: RequestContext, request: UnregisterBrokerRequest
) -> UnregisterBrokerResponse:
    """Forget a broker that does not run, so that DescribeCluster no longer lists it."""
    refusal = await broker.cluster.unregister_broker(request.broker_id)
    if refusal is None:
        return UnregisterBrokerResponse()
    return UnregisterBrokerResponse(error_code=refusal.error_code, error_message=refusal.message)
