"""Tells whether groups of the consumer protocol are served, and which topics a client may see."""

from __future__ import annotations

from collections.abc import Collection

from kshim.answering.views import KnownClusterView, MembersView
from kshim.callers import RequestContext
from kshim.callers.principal import ANONYMOUS
from kshim.cluster.acl import AclOperation, AclResource


def is_served(broker: KnownClusterView) -> bool:
    """True if neither a setting nor the cluster's feature switches the protocol off."""
    protocols = broker.config.group_coordinator_rebalance_protocols
    return "consumer" in protocols and broker.cluster.group_version > 0


def visible_topics(broker: MembersView, context: RequestContext, topics: Collection[str]) -> Collection[str]:
    """Those of some topics that a request's sender may describe."""
    authorizer = broker.authorizer
    if authorizer is None:
        return topics
    principal = str(context.client.principal if context.client else ANONYMOUS)
    host = context.client_host.removeprefix("/")
    describe, resource = AclOperation.DESCRIBE, AclResource.TOPIC
    return [name for name in topics if authorizer.allows(principal, host, describe, resource, name)]
