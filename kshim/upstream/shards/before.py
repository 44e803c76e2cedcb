"""The group of all kshim processes, as the upstream describes it to one that is no member: before it joins,
and after it has left.
"""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from kshim.storage.clock import Clock, after
from kshim.upstream.coordinators import ANSWER_S, UpstreamCoordinators
from kshim.upstream.fellows import Fellow
from kshim.upstream.link import LinkError
from kshim.upstream.shards.membership import Assigned, decode_assigned
from kshim.upstream.shards.said import Unlike
from schemas.error_code import ErrorCode
from schemas.message import MalformedMessage
from schemas.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse

logger = logging.getLogger(__name__)

TAKEN_S, AGAIN_S = 5.0, 0.1
"""How long to wait for the others' assignment, and between two looks."""
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


async def taken_over(
    clock: Clock, coordinators: UpstreamCoordinators, group_id: str, topic: str, left: Fellow
) -> Assigned | None:
    """Return the assignment of the other processes once the process `left` is not among them; None if there
    are none, or if that takes longer than TAKEN_S.
    """
    until_s = clock.seconds() + TAKEN_S
    while clock.seconds() < until_s:
        found = await look(coordinators, group_id, topic)
        if found.has_no_members:
            return None
        others = found.assigned
        if others is not None and all(each.node_id != left.node_id for each in others.everybody):
            return others
        await after(clock, AGAIN_S)
    return None


def _assigned_in(group: DescribedGroup, topic: str) -> Assigned | None:
    """Return the assignment in the first member that can be read; None if there is none."""
    for member in group.members:
        try:
            return decode_assigned(member.member_assignment, topic)[0]
        except (MalformedMessage, Unlike) as error:
            logger.debug("member %s: %s", member.member_id, error)
    return None
