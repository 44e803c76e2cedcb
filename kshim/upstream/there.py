"""Describes groups as they are at the upstream, whichever protocol their members use there.

DescribeGroups answers for a group of the consumer protocol (KIP-848) as for one that does not exist.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from kshim.upstream.upstream_groups import DESCRIBE, DESCRIBE_CONSUMER, UpstreamGroups
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from schemas.messages.describe_groups import DescribedGroup

DESCRIBED_IN = 5
"""The version of DescribeGroups before the first that answers GROUP_ID_NOT_FOUND."""
DEAD = "Dead"
WITHOUT_MEMBERS = frozenset(("Empty", DEAD, ""))
"""States of a group without members; "" is in answers with an error."""


class MemberThere(NamedTuple):
    """A member that a group has at the upstream."""

    member_id: str
    client_id: str
    client_host: str


class GroupThere(NamedTuple):
    """A group as the upstream describes it."""

    group_id: str
    state: str = ""
    members: Sequence[MemberThere] = ()
    error: int = ErrorCode.NONE
    """Why the upstream has not described it."""
    is_consumer: bool = False
    """True for a group of the consumer protocol (KIP-848)."""

    @property
    def exists(self) -> bool:
        """True if the upstream has the group, as far as is known."""
        return not self.error and self.state != DEAD

    @property
    def is_used(self) -> bool:
        """True if the group has members at the upstream, as far as is known."""
        return self.state not in WITHOUT_MEMBERS


async def describe_there(upstream: UpstreamGroups, group_ids: Collection[str]) -> list[GroupThere]:
    """Describe groups of the upstream, in this order. Each that is no classic group is asked for again as a
    group of the consumer protocol.
    """
    asked = [upstream.ask(DESCRIBE, each, DESCRIBED_IN) for each in group_ids]
    found = {each.group_id: _there(each) for each in [await answer for answer in asked]}
    absent = [each.group_id for each in found.values() if each.state == DEAD]
    for described in await upstream.ask_many(DESCRIBE_CONSUMER, absent):
        if described.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
            found[described.group_id] = _there(described)._replace(is_consumer=True)
    return [found[each] for each in group_ids]


def _there(it: DescribedGroup | DescribedConsumerGroup) -> GroupThere:
    members = [MemberThere(each.member_id, each.client_id, each.client_host) for each in it.members]
    return GroupThere(it.group_id, it.group_state, members, it.error_code)
