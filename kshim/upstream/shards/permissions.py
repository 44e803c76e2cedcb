"""What the upstream's ACLs have to let kshim do with its topic and its group; asked once, at the start.

The upstream says what a client may do with a topic or a group, if it is asked for that (KIP-430). Where it
has no ACLs it says that everything is allowed.
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
"""Of DescribeGroups: later versions say nothing about a group that does not exist."""
OF_TOPIC: Final = (AclOperation.READ, AclOperation.WRITE)
OF_GROUP: Final = (AclOperation.READ,)
NOTHING: Final = 0
EVERYTHING: Final = -1
"""Where the upstream cannot say it now; joining the group shows it."""


async def check_permissions(
    upstream: Upstream, coordinators: UpstreamCoordinators, topic: str, group_id: str
) -> None:
    """Raise StorageError, one line that names all that is missing. Raises LinkError."""
    of_topic = await _of_topic(upstream, topic)
    of_group = await _of_group(coordinators, group_id)
    missing = [
        *(f"{each.name} on topic {topic}" for each in OF_TOPIC if not of_topic & 1 << each),
        *(f"{each.name} on group {group_id}" for each in OF_GROUP if not of_group & 1 << each),
    ]
    if missing:
        raise StorageError(f"the upstream's ACLs are in the way: kshim needs {', '.join(missing)}")


async def _of_topic(upstream: Upstream, topic: str) -> int:
    """A bit for each operation that is allowed."""
    request = MetadataRequest(
        topics=(MetadataRequestTopic(name=topic),),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    (found,) = (await upstream.ask(request)).topics
    operations: int = found.topic_authorized_operations
    return NOTHING if found.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED else operations


async def _of_group(coordinators: UpstreamCoordinators, group_id: str) -> int:
    """The same of a group."""
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
