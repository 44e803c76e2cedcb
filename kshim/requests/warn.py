"""Warns of a client that is set up wrongly, and is answered all the same."""

from __future__ import annotations

import logging

from kshim.requests.broker import Broker
from kshim.requests.context import RequestContext
from kshim.requests.mistake import Mistake

logger = logging.getLogger(__name__)


def warn(broker: Broker, context: RequestContext, mistake: Mistake, **details: object) -> None:
    """Say in the log what the client's user should change, once for an address."""
    level = broker.once.level((context.client_host, mistake))
    logger.log(level, "%s: %s", context.sender, mistake.line(**details))
