"""Counts what a request uses of its client's quotas, and fills in throttle_time_ms (KIP-13, 124, 219, 599).

While there are quotas, it stands between `dispatch.answer` and an API's function. Fetch and the APIs that
change topics count their use themselves, in `context.account`, because it decides what they do.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from time import perf_counter
from typing import Final

from kshim.answering.views import Answering, ApiFunction
from kshim.callers import RequestContext
from kshim.quotas.account import Account
from kshim.turns.promise import run, settled
from schemas.api_key import ApiKey
from schemas.message import Value

logger = logging.getLogger(__name__)

EXEMPT: Final = {ApiKey.WRITE_TXN_MARKERS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
"""WriteTxnMarkers comes only from brokers, and a client that authenticates is not known yet."""
NO_REPLY: Final = 0
"""The acks of a Produce without an answer. As in Kafka, its time does not count."""


def metered(function: ApiFunction, api_key: int, size: int) -> ApiFunction:
    """Wrap `function`, so that it counts what its request uses. size: of the frame, in bytes."""

    def perform(broker: Answering, context: RequestContext, request: object) -> object:
        client = context.client
        account = None
        if client is not None and api_key not in EXEMPT:
            account = broker.quotas.account(client.principal.name, context.client_id, perf_counter())
        if account is None:
            return function(broker, context, request)
        context.account = account
        if api_key == ApiKey.PRODUCE:
            account.produced(size)
        # Only a Produce has acks. Its class is not imported before a client produces.
        counts_time = getattr(request, "acks", None) != NO_REPLY
        return _counted(broker, context, account, counts_time, function(broker, context, request))

    return perform


async def _counted(
    broker: Answering, context: RequestContext, account: Account, counts_time: bool, response: object
) -> object:
    """Return the response, or what a promise or a coroutine gives, with the client's throttle time."""
    response = run(settled(response))
    account.put_aside()
    if account.throttle_ms:
        context.turn.is_alone = True  # as in Kafka, no later request begins before the throttle time is over
    return _answered(broker, context, account, counts_time, await settled(response))


def _answered(
    broker: Answering, context: RequestContext, account: Account, counts_time: bool, response: object
) -> object:
    """Return the response with the client's throttle time."""
    account.answered(counts_time=counts_time)
    throttle_ms = account.throttle_ms
    if not throttle_ms:
        return response
    context.turn.throttle_ms = throttle_ms
    broker.quotas.throttled[account.limited_by] += 1
    cause = context.client and context.client.address.host, account.limited_by, context.client_id[:50]
    level = min(broker.once.level(cause), logging.INFO)
    logger.log(level, "%s: throttled for %d ms by its %s", context.sender, throttle_ms, account.limited_by)
    if isinstance(response, Value) and hasattr(response, "throttle_time_ms"):
        return replace(response, throttle_time_ms=throttle_ms)
    return response
