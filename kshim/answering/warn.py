"""Warns of clients that are set up wrongly, or are sent to a wrong address, and are answered all the same."""

from __future__ import annotations

import logging

from kshim.answering.broker import Broker
from kshim.answering.views import AnyView
from kshim.callers import RequestContext
from kshim.callers.mistake import Mistake

logger = logging.getLogger(__name__)


def warn(broker: AnyView, context: RequestContext, mistake: Mistake, **details: object) -> None:
    """Log what the client's user should change, once for an address, a client id and a group."""
    names = context.client_id, details.get("group")
    level = broker.once.level((context.client_host, mistake), names)
    logger.log(level, "%s: %s", context.sender, mistake.line(**details))


def warn_if_lost(broker: Broker, context: RequestContext, *, names_any: bool) -> None:
    """Warn if the client seems unable to reach the broker whose address it was given; see `arrivals`.

    names_any: whether it asked about a topic, a group or a transactional id.
    """
    client, cluster = context.client, broker.cluster
    if client is None or cluster.running != cluster.node_ids:
        return
    asking = broker.arrivals.asked(client, names_any=names_any)
    if asking is not None:
        details = {"times": asking.times, "seconds": asking.seconds, "advertised": context.advertised}
        # Once for an address: the mistake is in the server's settings.
        level = broker.once.level((context.client_host, Mistake.NEVER_CAME))
        logger.log(level, "%s: %s", context.sender, Mistake.NEVER_CAME.line(**details))
