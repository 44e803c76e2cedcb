"""FindCoordinator (10): which broker leads the shard of a group. From v4 on many keys at once (KIP-699)."""

from __future__ import annotations

from kshim.context import Broker, RequestContext
from schemas.error_code import ErrorCode
from schemas.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

FIRST_VERSION_WITH_KEYS = 4
GROUP = 0
TRANSACTION = 1


def find_coordinator(
    broker: Broker, context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """One coordinator for each key; up to v3 there is one key, and its coordinator is the answer itself."""
    if context.api_version >= FIRST_VERSION_WITH_KEYS:
        return FindCoordinatorResponse(
            coordinators=tuple(
                _find(broker, context, request.key_type, key) for key in request.coordinator_keys
            )
        )
    found = _find(broker, context, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message if found.error_code else "NONE",
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(broker: Broker, context: RequestContext, key_type: int, key: str) -> Coordinator:
    if key_type == GROUP:
        advertised = context.advertised
        return Coordinator(
            key=key,
            node_id=broker.node_id,
            host=advertised.host,
            port=advertised.port,
            error_code=ErrorCode.NONE,
            error_message="",
        )
    if key_type == TRANSACTION:
        error, why = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Transactions are not served."
    else:
        error, why = ErrorCode.INVALID_REQUEST, f"Unknown coordinator key type {key_type}."
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=why)
