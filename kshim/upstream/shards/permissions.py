"""Checks at the start that the upstream's ACLs let kshim use its topic and its group.

The upstream can list what a client may do with a topic or a group (KIP-430). Without ACLs it lists all
operations.
"""

from __future__ import annotations

from typing import Final

from kshim.cluster.acl import AclOperation
from kshim.storage.interfaces import StorageError
from kshim.upstream.coordinators import ANSWER_S, UpstreamCoordinators
from kshim.upstream.interfaces import Upstream
from schemas.error_code import ErrorCode
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic

NEWEST_DESCRIBE: Final = 5
"""The newest version of DescribeGroups that lists the operations even for a group that does not exist."""
OF_TOPIC: Final = (AclOperation.READ, AclOperation.WRITE)
OF_GROUP: Final = (AclOperation.READ,)
NOTHING: Final = 0
EVERYTHING: Final = -1
"""Assumed if the upstream cannot answer now; joining the group will show what is missing."""


async def check_permissions(
    upstream: Upstream, coordinators: UpstreamCoordinators, topic: str, group_id: str
) -> None:
    """Check all permissions. Raises StorageError (one line with all that is missing), LinkError."""
    of_topic = await _of_topic(upstream, topic)
    of_group = await _of_group(coordinators, group_id)
    missing = [
        *(f"{each.name} on topic {topic}" for each in OF_TOPIC if not of_topic & 1 << each),
        *(f"{each.name} on group {group_id}" for each in OF_GROUP if not of_group & 1 << each),
    ]
    if missing:
        raise StorageError(f"the upstream's ACLs are in the way: kshim needs {', '.join(missing)}")


async def _of_topic(upstream: Upstream, topic: str) -> int:
    """Return the allowed operations on a topic, one bit for each."""
    request = MetadataRequest(
        topics=(MetadataRequestTopic(name=topic),),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    (found,) = (await upstream.ask(request)).topics
    operations: int = found.topic_authorized_operations
    return NOTHING if found.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED else operations


async def _of_group(coordinators: UpstreamCoordinators, group_id: str) -> int:
    """Return the allowed operations on a group, one bit for each."""
    link = await coordinators.link(group_id)
    if link is ErrorCode.GROUP_AUTHORIZATION_FAILED:
        return NOTHING
    if isinstance(link, ErrorCode):
        return EVERYTHING
    request = DescribeGroupsRequest(groups=(group_id,), include_authorized_operations=True)
    (found,) = (await link.ask(request, newest=NEWEST_DESCRIBE, timeout_s=ANSWER_S)).groups
    if found.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
        return NOTHING
    operations: int = found.authorized_operations
    return EVERYTHING if found.error_code else operations
