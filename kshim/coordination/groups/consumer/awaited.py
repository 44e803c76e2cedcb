"""The present state of a consumer group for people: which members it waits for, and for how long; see
`groups.waiting`.
"""

from __future__ import annotations

from kshim.coordination.groups.classic_group import CONSUMER
from kshim.coordination.groups.consumer.environment import Environment
from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.member import MemberState
from kshim.coordination.groups.rebalance_record import Who
from kshim.coordination.groups.timers import TimerKey, TimerKind, Timers
from kshim.coordination.groups.waiting import WaitsFor, because


def waits_for(group: ConsumerGroup, environment: Environment, timers: Timers) -> WaitsFor:
    """Describe what `group` waits for now. O(members)."""
    members = sorted(group.members.values(), key=lambda member: member.member_id)
    to_revoke = [each.member_id for each in members if each.state is MemberState.UNREVOKED_PARTITIONS]
    deadlines_ms = (
        timers.deadline_ms(TimerKey(TimerKind.REVOCATION, group.group_id, member_id))
        for member_id in to_revoke
    )
    return WaitsFor(
        state=group.state,
        generation=group.epoch,
        protocol_type=CONSUMER,
        protocol=group.subscriptions.preferred_assignor(environment.assignors),
        leader="",
        members=[
            Who(each.member_id, each.client_id, each.client_host, each.instance_id)
            for each in group.members.values()
        ],
        because=because(group.rebalance),
        began_ms=None if group.rebalance is None else group.rebalance.began_ms,
        until_ms=min((at_ms for at_ms in deadlines_ms if at_ms is not None), default=None),
        to_join=[],
        to_join_first=[],
        to_sync=[],
        assignment_epoch=group.assignment_epoch,
        to_revoke=to_revoke,
        to_get=[each.member_id for each in members if each.state is MemberState.UNRELEASED_PARTITIONS],
        to_hear=[
            each.member_id
            for each in members
            if each.state is MemberState.STABLE and each.epoch != group.assignment_epoch
        ],
    )
