"""ConsumerGroupHeartbeat (68): a member of a group of the consumer protocol (KIP-848) joins, stays or leaves.

If the protocol is switched off, members are refused as by Apache Kafka: UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from kshim.answering.consumer_protocol import is_served, visible_topics
from kshim.answering.views import MembersView
from kshim.answering.warn import warn
from kshim.callers import RequestContext
from kshim.callers.context import NamedMember
from kshim.callers.mistake import Mistake
from kshim.callers.patience import is_patient, waits_longer_than_the_interval, waits_when_it_joins
from kshim.coordination.groups.consumer.member import JOINS
from kshim.coordination.groups.consumer.requests import Patience
from kshim.coordination.groups.consumer.topic_names import MANY, UNPREPARED, Prepared, prepared, read_aside
from kshim.turns.aside import OURS
from kshim.turns.promise import Answer, run, settled
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def consumer_group_heartbeat(
    broker: MembersView, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> Answer[ConsumerGroupHeartbeatResponse]:
    """Forward to the group's coordinator. The answer may wait until there is something to say."""
    if not is_served(broker):
        warn(broker, context, Mistake.CONSUMER_PROTOCOL, group=request.group_id)
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if context.client is not None and request.member_id:
        context.client.member = NamedMember(request.group_id, request.member_id)
    names = request.subscribed_topic_names
    many = names if names is not None and len(names) > MANY else None
    large = broker.groups.large_subscriptions(request.group_id) if request.member_epoch == JOINS else ()
    if many is not None or large:
        return run(_with_many_names(broker, context, request, many, large))
    return _forward(broker, context, request)


async def _with_many_names(
    broker: MembersView,
    context: RequestContext,
    request: ConsumerGroupHeartbeatRequest,
    names: Sequence[str] | None,
    large: Sequence[bytes],
) -> ConsumerGroupHeartbeatResponse:
    """Prepare many names aside, so that the coordinator's work does not depend on their number.

    names: those of the request, if they are many. large: subscriptions of a classic group that the request
    converts.
    """
    context.turn.is_alone = True
    address = context.client.address if context.client else OURS
    known = UNPREPARED
    if large:
        known = Prepared(subscriptions=await broker.aside.run(partial(read_aside, large), address))
    if names is not None:
        with suppress(ValueError):  # the coordinator says what is wrong
            alike = broker.groups.latest_large_set(request.group_id)
            known = known._replace(names=await broker.aside.run(partial(prepared, names, alike), address))
    return await settled(_forward(broker, context, request, known))


def _forward(
    broker: MembersView,
    context: RequestContext,
    request: ConsumerGroupHeartbeatRequest,
    known: Prepared = UNPREPARED,
) -> Answer[ConsumerGroupHeartbeatResponse]:
    visible = partial(visible_topics, broker, context)
    return broker.groups.member_heartbeat(context, request, visible, _patience(broker, context), known)


def _patience(broker: MembersView, context: RequestContext) -> Patience:
    """How long the answer may wait."""
    if not broker.config.group_heartbeat_park_enable or not is_patient(context):
        return Patience.NONE
    if waits_longer_than_the_interval(context):
        return Patience.LONG
    return Patience.INTERVAL_BUT_FIRST if waits_when_it_joins(context) else Patience.INTERVAL
