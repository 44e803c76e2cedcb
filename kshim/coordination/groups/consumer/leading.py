"""What happens to a consumer group when its shard begins to be led, and when it is given up."""

from __future__ import annotations

from kshim.coordination.groups.consumer.member import MemberState
from kshim.coordination.groups.consumer.recording import gives_way
from kshim.coordination.groups.consumer.targets import assign_later
from kshim.coordination.groups.consumer.writing import Writing
from kshim.coordination.groups.timers import TimerKind
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse


def begin_to_lead(it: Writing) -> None:
    """Give each member a session, and time to give up what it has still to give up. Compute a target that was
    due; and look at the topics of a group that has only classic members, whose heartbeats do not.
    """
    group = it.group
    session_ms = it.environment.configs.session_timeout_ms(group.group_id)
    assign_later(it)
    if group.members and group.subscriptions.classic_members == len(group.members):
        it.arm(TimerKind.TARGET, "", 0)
    for member in group.members.values():
        it.arm(TimerKind.SESSION, member.member_id, session_ms)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            it.arm(TimerKind.REVOCATION, member.member_id, member.rebalance_timeout_ms)


def give_up(it: Writing) -> None:
    """Cancel the timers of the group, and answer its parked heartbeats NOT_COORDINATOR."""
    group = it.group
    for parked in group.parked.values():
        refusal = ConsumerGroupHeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)
        it.draft.reply(parked.caller.token, refusal)
    group.parked.clear()
    gives_way(it.draft, group)
    for member_id in group.members:
        it.cancel_all(member_id)
    it.cancel_all()
