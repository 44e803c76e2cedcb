"""FindCoordinator (10): which broker coordinates a group (0) or the transactions of a transactional id (1).

The coordinator is the leader of the partition with the records of that group or transactional id. v4: many
keys at once (KIP-699).
"""

from __future__ import annotations

from functools import partial

from kshim.answering import Broker
from kshim.answering.node_endpoints import node_endpoints
from kshim.answering.warn import warn_if_lost
from kshim.callers import RequestContext
from kshim.cluster import TRANSACTION_STATE_TOPIC, Topic
from kshim.coordination.shards import partition_for
from kshim.storage.interfaces import StorageError
from kshim.turns.slices import in_slices
from schemas.error_code import ErrorCode
from schemas.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

FIRST_VERSION_WITH_KEYS = 4
GROUP = 0
TRANSACTION = 1
KEY_US = 10


async def find_coordinator(
    broker: Broker, context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Find the coordinators.

    The first request for a transactional id waits until `__transaction_state` exists.
    """
    if context.api_version >= FIRST_VERSION_WITH_KEYS and not request.coordinator_keys:
        return FindCoordinatorResponse()
    topic = await _topic(broker, request.key_type)
    return await _respond(broker, context, request, topic)


async def _topic(broker: Broker, key_type: int) -> Topic | None:
    """The topic with the records of the coordinator of that type; None if it does not exist."""
    if key_type == GROUP:
        return broker.cluster.group_metadata_topic
    if key_type != TRANSACTION:
        return None
    if TRANSACTION_STATE_TOPIC not in broker.cluster.topics:
        try:
            await broker.cluster.auto_create_topics([TRANSACTION_STATE_TOPIC])
        except StorageError:
            return None
    return broker.cluster.topics.get(TRANSACTION_STATE_TOPIC)


async def _respond(
    broker: Broker, context: RequestContext, request: FindCoordinatorRequest, topic: Topic | None
) -> FindCoordinatorResponse:
    """Answer with the coordinator of each key. Up to v3 there is one key, and the fields of its coordinator
    are directly in the answer.
    """
    if topic is not None:
        warn_if_lost(broker, context, names_any=True)
        context.stays_the_same = True
    if context.api_version >= FIRST_VERSION_WITH_KEYS:
        find = partial(_find, broker, context, request.key_type, topic)
        found_all = await in_slices(broker.rounds, context.turn, request.coordinator_keys, find, _cost_us)
        return FindCoordinatorResponse(coordinators=tuple(found_all))
    found = _find(broker, context, request.key_type, topic, request.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message if found.error_code else "NONE",
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _cost_us(key: str) -> int:
    """The time that a key takes. It grows with the key, which is hashed letter by letter."""
    return KEY_US + len(key) // 8


def _find(
    broker: Broker, context: RequestContext, key_type: int, topic: Topic | None, key: str
) -> Coordinator:
    if topic is None:
        return _nobody(key_type, key)
    leader = topic.partitions[partition_for(key, len(topic.partitions))].leader

    def coordinator(node_id: int, host: str, port: int) -> Coordinator:
        return Coordinator(key=key, node_id=node_id, host=host, port=port, error_message="")

    found = node_endpoints(broker, context, [leader], coordinator)
    return found[0] if found else _nobody(key_type, key)


def _nobody(key_type: int, key: str) -> Coordinator:
    if key_type in (GROUP, TRANSACTION):
        error, why = ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available."
    else:
        error, why = ErrorCode.INVALID_REQUEST, f"Unknown coordinator key type {key_type}."
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=why)
