"""InitProducerId (22): a producer id and epoch, for an idempotent or a transactional producer (KIP-98).

v3: a producer may give its id and epoch, to continue with the next epoch (KIP-360); v4: the error
PRODUCER_FENCED (KIP-588).
"""

from __future__ import annotations

from dataclasses import replace

from kshim.answering.views import CoordinatorView
from kshim.callers import RequestContext
from kshim.storage.interfaces import StorageError
from schemas.error_code import ErrorCode
from schemas.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

FIRST_VERSION_WITH_FENCED = 4
NONE = -1


async def init_producer_id(
    broker: CoordinatorView, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """Forward to the transaction coordinator.

    Without a transactional id, answer with a new producer id and epoch 0, even if the producer gave its id
    and epoch, as Kafka does.
    """
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        return _refusal(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        response = await broker.transactions.submit(context, request)
        return response if context.api_version >= FIRST_VERSION_WITH_FENCED else _for_old_client(response)
    try:
        producer_id = await broker.cluster.producer_ids.new()
    except StorageError:
        # Kafka's answer while it waits for a block of ids. After COORDINATOR_NOT_AVAILABLE, kafka-python
        # would search for ever for the coordinator of a transactional id that it does not have.
        return _refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=0)


def _for_old_client(response: InitProducerIdResponse) -> InitProducerIdResponse:
    if response.error_code == ErrorCode.PRODUCER_FENCED:
        return replace(response, error_code=ErrorCode.INVALID_PRODUCER_EPOCH)
    return response


def _refusal(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=NONE, producer_epoch=NONE)
