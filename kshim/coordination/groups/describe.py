"""Describes and lists groups: DescribeGroups (15) and ListGroups (16)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.member import Member
from kshim.coordination.groups.states import State
from schemas.error_code import ErrorCode
from schemas.messages.describe_groups import DescribedGroup, DescribedGroupMember
from schemas.messages.list_groups import ListedGroup, ListGroupsRequest

TYPE = "classic"
FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND = 6
LONGEST_SHOWN = 10_000
"""How many characters of a group id an error message may repeat; the message is at most 32767 bytes long."""


def describe(group: ClassicGroup) -> DescribedGroup:
    """The group and its members. Subscriptions and protocol are included only while the group is stable: only
    then are they final.
    """
    stable = group.state is State.STABLE
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=tuple(_member(group, member, stable=stable) for member in group.members.values()),
    )


def _member(group: ClassicGroup, member: Member, *, stable: bool) -> DescribedGroupMember:
    client_id, client_host = member.described_client
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=client_id,
        client_host=client_host,
        member_metadata=member.metadata(group.protocol_name) if stable else b"",
        member_assignment=member.assignment,
    )


def describe_absent(group_id: str, api_version: int, *, is_of_another_kind: bool = False) -> DescribedGroup:
    """A group that does not exist as a classic group: up to v5 it is shown as Dead, without an error."""
    if api_version < FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND:
        return DescribedGroup(group_id=group_id, group_state=State.DEAD)
    reason = "is not a classic group" if is_of_another_kind else "not found"
    return DescribedGroup(
        group_id=group_id,
        group_state=State.DEAD,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"Group {group_id[:LONGEST_SHOWN]} {reason}.",
    )


def _listed(group: ClassicGroup) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state,
        group_type=TYPE,
    )


def list_groups(groups: Iterable[ClassicGroup], request: ListGroupsRequest) -> Iterator[ListedGroup]:
    """The groups that pass the filters; all groups pass an empty filter.

    Case does not matter. Blanks around states are ignored, but blanks around types count, as in Apache Kafka.
    """
    states = {state.strip().lower() for state in request.states_filter}
    types = {type_.lower() for type_ in request.types_filter}
    if types and TYPE not in types:
        return
    for group in groups:
        if not states or group.state.lower() in states:
            yield _listed(group)
