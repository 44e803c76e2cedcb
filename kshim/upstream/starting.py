"""The start in front of an upstream: the errors that a user can mend, and the first look at the upstream."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kshim.client.session import LoginFailed
from kshim.configs.upstream import WrongUpstreamProperty
from kshim.server import StartError
from kshim.upstream.contact import Contact
from kshim.upstream.indexes import WrongUpstream
from kshim.upstream.link import LinkError
from kshim.upstream.missing import OLDEST, lacks, missing
from schemas.api_key import ApiKey

logger = logging.getLogger(__name__)


@contextmanager
def start_errors() -> Iterator[None]:
    """Turn the errors that a user can mend into StartError."""
    try:
        yield
    except (LinkError, LoginFailed, WrongUpstream, WrongUpstreamProperty, OSError) as error:
        raise StartError(str(error)) from error


async def first_look(contact: Contact, timeout_s: float, *, passes_consumers: bool) -> Mapping[int, range]:
    """Connect to the upstream, and check that it is new enough; log what it lacks. Return the versions that
    it serves. Raises LinkError, StartError.
    """
    link = await contact.first(timeout_s)
    if lacks(link.versions, OLDEST):
        raise StartError(
            f"upstream broker {link.address} is older than Kafka 2.8: it has no topic ids (Metadata v10)"
        )
    if lacking := missing(link.versions):
        logger.info("upstream broker %s lacks %s", link.address, lacking)
    if passes_consumers and ApiKey.CONSUMER_GROUP_HEARTBEAT not in link.versions:
        logger.warning(
            "upstream broker %s serves no groups of the consumer protocol, and upstream.groups.protocols"
            " leaves them to it: members with group.protocol=consumer are served by nobody",
            link.address,
        )
    return link.versions
