"""Finds the member that a heartbeat comes from, or makes it; refuses those that are fenced."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.member import GOES_AWAY, JOINS, Member, MemberState
from kshim.coordination.groups.consumer.reconciliation import Owned
from kshim.coordination.groups.consumer.refused import Refused
from kshim.coordination.groups.consumer.subscriptions import MOST_NAMES_BYTES
from kshim.coordination.groups.consumer.writing import Writing
from schemas.error_code import ErrorCode


class Found(NamedTuple):
    """The member as it is before a request changes it."""

    member: Member
    replaced: Member | None = None
    """The static member whose place it takes, with all that it had."""


def check_room(it: Writing, member_id: str, instance_id: str | None) -> None:
    """Refuse a new member of a full group. A static member that comes back is none (KAFKA-20601)."""
    group, most = it.group, it.settings.group_consumer_max_size
    if len(group.members) < most or member_id in group.members:
        return
    if instance_id is None or instance_id not in group.static_members:
        raise Refused(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {most} members.",
        )


def check_names(it: Writing, names: frozenset[str]) -> None:
    """Refuse topics whose names would take too much memory, together with those that other members name."""
    if not it.group.subscriptions.has_room(names):
        raise Refused(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The members of the consumer group name too many different topics: their names would take more "
            f"than {MOST_NAMES_BYTES} bytes.",
        )


def find_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, epoch: int, owned: Owned | None
) -> Found:
    """The member of a heartbeat. A new one is made for a heartbeat that joins."""
    if instance_id is None:
        return Found(_dynamic(group, member_id, epoch, owned))
    holder = group.static_member(instance_id)
    if epoch != JOINS:
        holder = check_holder(group, holder, member_id, instance_id)
        check_epoch(holder, epoch, owned)
        return Found(holder)
    if holder is None:
        return Found(group.members.get(member_id) or Member(member_id))
    is_free = holder.classic is not None or holder.epoch == GOES_AWAY
    if not is_free or group.fenced.get(holder.member_id) == member_id:
        # Kafka refuses the holder itself, too, if it joins again: clients of it fail for good.
        if holder.member_id == member_id:
            return Found(holder)
        raise Refused(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
            f"instance id is owned by {holder.member_id} member.",
        )
    return Found(successor(holder, member_id), holder)


def successor(holder: Member, member_id: str) -> Member:
    """The member that takes the place of a static one, with all that it had."""
    return replace(holder, member_id=member_id, epoch=0, previous_epoch=0)


def take_place(it: Writing, holder: Member, member: Member) -> None:
    """Write that `member` is in the place of a static one. The timers of the old id find nobody."""
    target = it.group.target_of(holder)
    it.remove_member(holder.member_id)
    it.put_member(member)
    it.noted.clear()
    it.put_target(member.member_id, target)
    it.put_current(member)


def check_holder(group: ConsumerGroup, holder: Member | None, member_id: str, instance_id: str) -> Member:
    """The holder of an instance id, if it is the member with that id."""
    if holder is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if holder.member_id != member_id:
        raise Refused(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{holder.member_id}.",
        )
    return holder


def known_member(group: ConsumerGroup, member_id: str) -> Member:
    """The member with that id."""
    member = group.members.get(member_id)
    if member is None:
        raise Refused(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}."
        )
    return member


def check_epoch(member: Member, epoch: int, owned: Owned | None) -> None:
    """Refuse a member that is not in its present epoch.

    The epoch before is accepted from a member that owns nothing beyond what it has: the answer with the
    present epoch was lost.
    """
    if epoch in (JOINS, member.epoch):
        return
    if epoch > member.epoch:
        relation = "greater"
    elif epoch == member.previous_epoch and _is_within(member, owned):
        return
    else:
        relation = "smaller"
    raise Refused(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {relation} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
    )


def check_state(member: Member, owned: Owned | None) -> None:
    """Refuse a member in a state of a later version of Kafka, unless it begins anew."""
    if member.state is MemberState.UNKNOWN and (owned is None or owned):
        raise Refused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. The member must abandon all its partitions and "
            "rejoin.",
        )


def _dynamic(group: ConsumerGroup, member_id: str, epoch: int, owned: Owned | None) -> Member:
    if epoch == JOINS:
        return group.members.get(member_id) or Member(member_id)
    member = known_member(group, member_id)
    check_epoch(member, epoch, owned)
    return member


def _is_within(member: Member, owned: Owned | None) -> bool:
    """True if the member says that it owns only partitions that it has."""
    if owned is None:
        return False
    return all(
        partition in member.assigned.get(topic_id, ())
        for topic_id, partitions in owned.items()
        for partition in partitions
    )
