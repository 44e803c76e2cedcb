"""Sends the requests of steering commands to the broker that coordinates the group."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, TypeAlias, overload

from kshim.callers import RequestContext
from kshim.cluster import NO_LEADER
from kshim.control.commands import SteeringError
from kshim.coordination.groups.consumer.requests import DescribeConsumerGroup
from kshim.coordination.groups.refusals import DeleteGroup, DescribeGroup
from kshim.coordination.groups.steering_requests import ExpireMember, FenceMember, ForceRebalance
from kshim.coordination.groups.texts import joined
from kshim.turns.promise import Promise
from kshim.turns.slices import others_first
from schemas.error_code import ErrorCode
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity

if TYPE_CHECKING:
    from kshim.configs.config import Config
    from kshim.coordination.interfaces import Groups
    from kshim.storage.clock import TimerClock
    from schemas.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
    from schemas.messages.delete_groups import DeletableGroupResult
    from schemas.messages.describe_groups import DescribedGroup
    from schemas.messages.leave_group import LeaveGroupResponse
    from schemas.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
    from schemas.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup

    Steered: TypeAlias = (
        DescribeGroup
        | DescribeConsumerGroup
        | OffsetFetchRequestGroup
        | OffsetCommitRequest
        | LeaveGroupRequest
        | DeleteGroup
        | ForceRebalance
        | ExpireMember
        | FenceMember
    )

API_VERSION = 5
"""A version in which DescribeGroups and LeaveGroup have instance ids, and OffsetCommit no retention time."""
CLIENT_ID = "kshim"
CLIENT_HOST = "/127.0.0.1"
REASON = "removed by an administrator"
"""The reason that is given when a member is removed."""
LOADING_S = 10.0
"""How long to wait for a coordinator that is loading."""


class Asked(Protocol):
    """The parts of a broker that requests about groups need."""

    @property
    def config(self) -> Config: ...
    @property
    def clock(self) -> TimerClock: ...
    @property
    def groups(self) -> Groups: ...


class Coordinators:
    """Sends requests to coordinators as a client does: each is answered when its effect is durable."""

    def __init__(self, broker: Asked, leader: Callable[[int], int]) -> None:
        """leader: returns the node id of the broker that coordinates a shard's groups, or NO_LEADER."""
        self._broker = broker
        self._leader = leader

    @overload
    async def ask(self, request: DescribeGroup) -> DescribedGroup: ...
    @overload
    async def ask(self, request: DescribeConsumerGroup) -> DescribedConsumerGroup: ...
    @overload
    async def ask(self, request: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup: ...
    @overload
    async def ask(self, request: OffsetCommitRequest) -> OffsetCommitResponse: ...
    @overload
    async def ask(self, request: LeaveGroupRequest) -> LeaveGroupResponse: ...
    @overload
    async def ask(self, request: DeleteGroup) -> DeletableGroupResult: ...
    @overload
    async def ask(self, request: ForceRebalance | ExpireMember | FenceMember) -> ErrorCode: ...
    async def ask(self, request: Steered) -> object:
        """Return the response to a request about one group. Raises SteeringError if no broker can answer."""
        groups, clock = self._broker.groups, self._broker.clock
        until_s = clock.seconds() + LOADING_S
        context = self._context(request.group_id)
        while (error := groups.refusal(context, request)) is not ErrorCode.NONE:
            if error is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS or clock.seconds() > until_s:
                raise SteeringError(f"the coordinator of group {request.group_id} answers {error.name}")
            await others_first(clock)
            context = self._context(request.group_id)
        answer = groups.submit(context, request)
        return await answer.deferred() if isinstance(answer, Promise) else answer

    async def members(self, group_id: str) -> list[MemberIdentity]:
        """The members of a group of either kind. Raises SteeringError if it does not exist."""
        found = await self._members(group_id)
        if found is None:
            raise SteeringError(f"there is no group {group_id}")
        return found

    async def without_members(self, group_id: str, wanted: str) -> None:
        """Raise SteeringError if a group has members. wanted: a clause that says what is not done then."""
        members = await self._members(group_id)
        if members:
            raise SteeringError(f"group {group_id} has members, so {wanted}: {listed(members)}")

    async def _members(self, group_id: str) -> list[MemberIdentity] | None:
        classic = await self.ask(DescribeGroup(group_id))
        if classic.group_state != "Dead":
            return [_identity(each.member_id, each.group_instance_id) for each in classic.members]
        described = await self.ask(DescribeConsumerGroup(group_id))
        if described.error_code != ErrorCode.NONE:
            return None
        return [_identity(each.member_id, each.instance_id) for each in described.members]

    def _context(self, group_id: str) -> RequestContext:
        broker = self._broker
        leader = self._leader(broker.groups.shard_for(group_id))
        if leader == NO_LEADER:
            raise SteeringError(f"no broker that runs coordinates group {group_id}")
        here = broker.config.listener_configs[0].bind
        return RequestContext(API_VERSION, CLIENT_ID, CLIENT_HOST, here, node_id=leader)


def _identity(member_id: str, group_instance_id: str | None) -> MemberIdentity:
    return MemberIdentity(member_id=member_id, group_instance_id=group_instance_id, reason=REASON)


def listed(members: Iterable[MemberIdentity]) -> str:
    """The ids of members, in words; "none" if there are no members."""
    return joined(member.member_id for member in members) or "none"
