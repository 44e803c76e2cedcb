"""Heartbeats whose answers wait until there is something to say.

In Kafka a member learns what has changed with its next heartbeat. Here the heartbeat of a member that has
nothing to do waits, if its client can wait: until something changes for the member, until another request
follows on its connection, or until its client would miss the answer. Then it is answered like a heartbeat
that comes at that moment, and says nothing: what the first one said was noted when it came.

A heartbeat that brings a regular expression waits until the topics have been searched, and one that joins
until the member gets a partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kshim.coordination.decision import Caller
from kshim.coordination.groups.consumer.environment import Visible
from kshim.coordination.groups.consumer.group import ConsumerGroup, Parked
from kshim.coordination.groups.consumer.member import JOINS, Member, MemberState
from kshim.coordination.groups.consumer.requests import Patience
from kshim.coordination.groups.consumer.targets import next_step
from kshim.coordination.groups.consumer.writing import Writing
from kshim.coordination.groups.timers import TimerKind
from schemas.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

INTERVALS_MS = {Patience.INTERVAL: 1_000, Patience.INTERVAL_BUT_FIRST: 2_000, Patience.LONG: 100}
"""The intervals of members that wait. None of a member's heartbeats is here for the rest of the interval."""
LONGEST_WAIT_MS = 8_000
"""The longest wait, in ms: clients give up a request after 10 s or more."""
SHORT_WAIT_MS = 900
"""The longest wait for a search of the topics, and of a member that joins, in ms."""

CLOSING_MS = 50
"""How long after a member has left the parked heartbeats of the others are answered, in ms. Applications
close their consumers one after another. librdkafka never ends a consumer that it destroys while the
application has not answered a rebalance.
"""


def interval_ms(it: Writing, patience: Patience) -> int:
    """The interval that a member is given. After an answer that waited, the next heartbeat should come
    soon.
    """
    configs, group_id = it.environment.configs, it.group.group_id
    configured_ms = configs.heartbeat_interval_ms(group_id)
    if patience is Patience.NONE or configs.is_interval_set(group_id):
        return configured_ms
    return min(configured_ms, INTERVALS_MS[patience])


def may_wait(
    it: Writing,
    request: ConsumerGroupHeartbeatRequest,
    answer: ConsumerGroupHeartbeatResponse,
    patience: Patience,
) -> bool:
    """True if the answer says nothing new, and the member has nothing to do but wait.

    A member that joins waits for its first partitions, if it can: others are about to give them up.
    """
    if patience is Patience.NONE:
        return False
    assert answer.member_id is not None
    member = it.group.members[answer.member_id]
    joins = request.member_epoch == JOINS
    if not joins and (answer.assignment is not None or answer.member_epoch != request.member_epoch):
        return False  # the heartbeat that it is answered as would say neither
    if _waits_for_search(it, member):
        return not (joins and member.assigned)
    if joins:
        return _waits_for_partitions(it, member) and patience is not Patience.INTERVAL
    return member.state is not MemberState.UNREVOKED_PARTITIONS


def park(
    it: Writing,
    caller: Caller,
    request: ConsumerGroupHeartbeatRequest,
    member_id: str,
    visible: Visible,
    patience: Patience,
) -> None:
    """Park a heartbeat. The member has no other parked one."""
    group = it.group
    joins = request.member_epoch == JOINS
    silent = ConsumerGroupHeartbeatRequest(
        group_id=group.group_id,
        member_id=member_id,
        member_epoch=request.member_epoch,
        topic_partitions=() if joins else None,
    )
    is_short = joins or _waits_for_search(it, group.members[member_id])
    wait_ms = SHORT_WAIT_MS if is_short else _longest_wait_ms(it, patience)
    group.parked[member_id] = Parked(caller, silent, visible, patience, it.now_ms + wait_ms)
    it.arm(TimerKind.WAIT, member_id, wait_ms)


def may_have_news(it: Writing) -> Iterator[str]:
    """The members whose parked heartbeats may have something to say by now, found without much work."""
    members, epoch = it.group.members, it.group.assignment_epoch
    for member_id, parked in it.group.parked.items():
        if parked.request.member_epoch == JOINS or not members[member_id].is_reconciled_to(epoch):
            yield member_id


def has_news(it: Writing, member_id: str) -> bool:
    """True if a member's heartbeat is parked and has something to say: the member is gone, or can take a
    step.
    """
    parked, member = it.group.parked.get(member_id), it.group.members.get(member_id)
    return parked is not None and (member is None or _has_news(it, member, parked))


def be_quiet(it: Writing) -> None:
    """Put off the answers with news: a member leaves, and others may be about to leave, too."""
    it.group.quiet_until_ms = it.now_ms + CLOSING_MS


def put_off(it: Writing, member_id: str) -> bool:
    """Put off a parked heartbeat that has something to say, if its member had better not hear of it yet;
    return True if it is put off.
    """
    parked, until_ms = it.group.parked[member_id], it.group.quiet_until_ms
    if it.now_ms >= until_ms or parked.request.member_epoch == JOINS or member_id not in it.group.members:
        return False
    it.arm(TimerKind.WAIT, member_id, min(until_ms, parked.until_ms) - it.now_ms)
    return True


def _has_news(it: Writing, member: Member, parked: Parked) -> bool:
    if _waits_for_search(it, member):
        return False
    if parked.request.member_epoch == JOINS and not _waits_for_partitions(it, member):
        return True
    after = next_step(it, member)
    return after is not member and replace(after, previous_epoch=member.previous_epoch) != member


def stay(group: ConsumerGroup) -> list[str]:
    """The members whose parked heartbeats do not join."""
    return [member_id for member_id, parked in group.parked.items() if parked.request.member_epoch != JOINS]


def take(it: Writing, member_id: str) -> Parked | None:
    """Take a member's parked heartbeat, if there is one."""
    parked = it.group.parked.pop(member_id, None)
    if parked is not None:
        it.cancel(TimerKind.WAIT, member_id)
    return parked


def _waits_for_partitions(it: Writing, member: Member) -> bool:
    """True if a member has no partitions, and others are to give up some, or its target is being computed."""
    is_to_get_some = member.state is MemberState.UNRELEASED_PARTITIONS or it.group.computation is not None
    return is_to_get_some and not member.assigned


def _waits_for_search(it: Writing, member: Member) -> bool:
    known = it.group.subscriptions
    is_searched = not member.regex or member.regex in known.resolved
    return not is_searched and (it.group.search is not None or it.is_armed(TimerKind.REGEX))


def _longest_wait_ms(it: Writing, patience: Patience) -> int:
    session_ms = it.environment.configs.session_timeout_ms(it.group.group_id)
    longest_ms = min(LONGEST_WAIT_MS, session_ms // 3)
    if patience is Patience.LONG:
        return longest_ms
    percent = 90 if patience is Patience.INTERVAL else 75
    return min(longest_ms, interval_ms(it, patience) * percent // 100)
