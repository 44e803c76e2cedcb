"""The commands about the members of a group: rebalance, expire, fence, remove. And deleting the group."""

from __future__ import annotations

from kshim.control.commands import Command, Commands, SteeringError
from kshim.control.coordinators import Coordinators, listed
from kshim.coordination.groups.refusals import DeleteGroup
from kshim.coordination.groups.steering_requests import ExpireMember, FenceMember, ForceRebalance
from kshim.coordination.groups.texts import joined
from schemas.error_code import ErrorCode
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity


class MemberSteering:
    """Carries out the commands of `kshim group` about members.

    Each method returns when its effect is durable, and raises SteeringError if it is refused.
    """

    def __init__(self, coordinators: Coordinators) -> None:
        self._coordinators = coordinators

    def commands(self) -> Commands:
        return {
            "rebalance-group": Command(self.rebalance, (str,)),
            "expire-member": Command(self.expire, (str, str)),
            "fence-member": Command(self.fence, (str, str)),
            "remove-member": Command(self.remove, (str, str)),
            "empty-group": Command(self.empty, (str,)),
            "delete-group": Command(self.delete, (str,)),
        }

    async def rebalance(self, group_id: str) -> list[str]:
        """Make a group rebalance, and return the ids of its members."""
        members = await self._coordinators.members(group_id)
        error = await self._coordinators.ask(ForceRebalance(group_id))
        if error is not ErrorCode.NONE:
            raise SteeringError(f"group {group_id} has no members that could rebalance")
        return [member.member_id for member in members]

    async def expire(self, group_id: str, member_id: str) -> None:
        """End a member's session, as if it had sent no heartbeat."""
        members = await self._coordinators.members(group_id)
        error = await self._coordinators.ask(ExpireMember(group_id, member_id))
        if error is not ErrorCode.NONE:
            raise SteeringError(f"group {group_id} has no member {member_id}; it has {listed(members)}")

    async def fence(self, group_id: str, group_instance_id: str) -> str:
        """Fence a static member, and return its member id."""
        members = await self._coordinators.members(group_id)
        static = [member for member in members if member.group_instance_id]
        error = await self._coordinators.ask(FenceMember(group_id, group_instance_id))
        if error is not ErrorCode.NONE:
            known = joined(str(member.group_instance_id) for member in static) or "none"
            raise SteeringError(
                f"group {group_id} has no member with the group.instance.id {group_instance_id}; "
                f"it has {known}"
            )
        return next(m.member_id for m in static if m.group_instance_id == group_instance_id)

    async def remove(self, group_id: str, name: str) -> str:
        """Remove a member, and return its member id. name: its member id or its group.instance.id."""
        members = await self._coordinators.members(group_id)
        for member in members:
            if name in (member.member_id, member.group_instance_id):
                await self._leave(group_id, member)
                return member.member_id
        raise SteeringError(f"group {group_id} has no member {name}; it has {listed(members)}")

    async def empty(self, group_id: str) -> list[str]:
        """Remove all members, and return their ids."""
        members = await self._coordinators.members(group_id)
        await self._leave(group_id, *members)
        return [member.member_id for member in members]

    async def delete(self, group_id: str) -> None:
        """Delete a group without members, and its offsets."""
        await self._coordinators.members(group_id)
        await self._coordinators.without_members(group_id, "it is not deleted")
        deleted = await self._coordinators.ask(DeleteGroup(group_id))
        if deleted.error_code != ErrorCode.NONE:
            raise SteeringError(f"group {group_id}: {ErrorCode(deleted.error_code).name}")

    async def _leave(self, group_id: str, *members: MemberIdentity) -> None:
        """Remove members as Kafka's admin client does. A member that has left meanwhile is no error."""
        left = await self._coordinators.ask(LeaveGroupRequest(group_id=group_id, members=members))
        if left.error_code != ErrorCode.NONE:
            raise SteeringError(f"group {group_id}: {ErrorCode(left.error_code).name}")
