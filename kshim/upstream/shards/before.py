"""The group of all kshim processes, as the upstream describes it before this process joins."""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from kshim.upstream.coordinators import ANSWER_S, UpstreamCoordinators
from kshim.upstream.link import LinkError
from kshim.upstream.shards.membership import Assigned, decode_assigned
from kshim.upstream.shards.said import Unlike
from schemas.error_code import ErrorCode
from schemas.message import MalformedMessage
from schemas.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse

logger = logging.getLogger(__name__)

WITHOUT_MEMBERS: Final = ("Empty", "Dead")
"""The states of a group without members."""


class Found(NamedTuple):
    """The group as the upstream describes it."""

    has_no_members: bool = False
    assigned: Assigned | None = None
    """The assignment of its members; None if it has none that can be read."""


async def look(coordinators: UpstreamCoordinators, group_id: str, topic: str) -> Found:
    """Ask the upstream for the group. The answer is empty if the upstream cannot describe the group."""
    try:
        link = await coordinators.link(group_id)
        if isinstance(link, ErrorCode):
            return Found()  # a new cluster is just creating its coordinators
        request = DescribeGroupsRequest(groups=(group_id,))
        answer: DescribeGroupsResponse = await link.ask(request, timeout_s=ANSWER_S)
    except LinkError as error:
        logger.debug("%s", error)
        return Found()
    (group,) = answer.groups
    return Found(group.group_state in WITHOUT_MEMBERS, _assigned_in(group, topic))


def _assigned_in(group: DescribedGroup, topic: str) -> Assigned | None:
    """Return the assignment in the first member that can be read; None if there is none."""
    for member in group.members:
        try:
            return decode_assigned(member.member_assignment, topic)[0]
        except (MalformedMessage, Unlike) as error:
            logger.debug("member %s: %s", member.member_id, error)
    return None
