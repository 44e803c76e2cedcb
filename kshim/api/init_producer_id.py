"""InitProducerId (22): a producer id for an idempotent producer (KIP-98, KIP-360)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshim.api.later import if_not_stored
from kshim.context import Broker, RequestContext
from schemas.error_code import ErrorCode
from schemas.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

NONE = -1


def init_producer_id(
    broker: Broker, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse | Deferred[InitProducerIdResponse]:
    """A new producer id with epoch 0; also where the request names an older id of its own, as in Kafka.

    Transactions are not served. Of the errors that say so, TRANSACTIONAL_ID_AUTHORIZATION_FAILED is the one
    that every client takes for final; others make some of them try for ever.
    """
    if (request.producer_id == NONE) != (request.producer_epoch == NONE) or request.transactional_id == "":
        return _refusal(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

    def given(producer_id: int) -> InitProducerIdResponse:
        return InitProducerIdResponse(error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=0)

    def not_given() -> InitProducerIdResponse:
        return _refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)  # retried by the client

    return broker.cluster.new_producer_id().addCallbacks(given, if_not_stored(not_given))


def _refusal(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=NONE, producer_epoch=NONE)
