"""UnregisterController (94): forget a controller that is gone for good; refused.

kshim has no controllers beside its brokers, so there is none to forget: the broker that is the controller is
the active one, and no other is registered.
"""

from __future__ import annotations

from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from schemas.error_code import ErrorCode
from schemas.messages.unregister_controller import UnregisterControllerRequest, UnregisterControllerResponse


def unregister_controller(
    broker: ClusterView, context: RequestContext, request: UnregisterControllerRequest
) -> UnregisterControllerResponse:
    """Refuse, in Kafka's words."""
    if request.controller_id == broker.cluster.controller_id:
        return UnregisterControllerResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="Controller cannot unregister itself while it is active.",
        )
    return UnregisterControllerResponse(
        error_code=ErrorCode.CONTROLLER_ID_NOT_REGISTERED,
        error_message=f"Controller ID {request.controller_id} is not currently registered.",
    )
