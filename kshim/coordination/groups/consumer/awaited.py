"""The present state of a consumer group for people: which members it waits for, and for how long; see
`groups.waiting`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kshim.coordination.groups.classic_group import CONSUMER
from kshim.coordination.groups.consumer.environment import Environment
from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.member import Member, MemberState
from kshim.coordination.groups.rebalance_record import Who
from kshim.coordination.groups.timers import TimerKey, TimerKind, Timers
from kshim.coordination.groups.waiting import Revoking, WaitsFor, because


def waits_for(group: ConsumerGroup, environment: Environment, timers: Timers) -> WaitsFor:
    """Describe what `group` waits for now. O(members)."""
    members = sorted(group.members.values(), key=lambda member: member.member_id)
    to_revoke = [each for each in members if each.state is MemberState.UNREVOKED_PARTITIONS]
    revoking = sorted(_revoking(group, to_revoke, environment, timers), key=lambda it: it["until_ms"])
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
        until_ms=revoking[0]["until_ms"] if revoking else None,
        to_join=[],
        to_join_first=[],
        to_sync=[],
        assignment_epoch=group.assignment_epoch,
        to_revoke=[each.member_id for each in to_revoke],
        revoking=revoking,
        to_get=[each.member_id for each in members if each.state is MemberState.UNRELEASED_PARTITIONS],
        to_hear=[
            each.member_id
            for each in members
            if each.state is MemberState.STABLE and each.epoch != group.assignment_epoch
        ],
    )


def _revoking(
    group: ConsumerGroup, members: Iterable[Member], environment: Environment, timers: Timers
) -> Iterator[Revoking]:
    for member in members:
        until_ms = timers.deadline_ms(TimerKey(TimerKind.REVOCATION, group.group_id, member.member_id))
        if until_ms is None:  # it speaks the classic protocol: another timer removes it
            continue
        found = ((environment.topics.with_id(each), held) for each, held in member.revoking.items())
        yield {
            "member_id": member.member_id,
            "partitions": {topic.name: sorted(held) for topic, held in found if topic is not None},
            "since_ms": until_ms - member.rebalance_timeout_ms,
            "until_ms": until_ms,
        }
