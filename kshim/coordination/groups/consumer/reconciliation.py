"""Takes a member one step from what it has towards what it is to have.

A member first gives up the partitions that it is not to keep, and stays in its epoch until it says that it
did. Then it enters the target's epoch with what it keeps and what is free, and waits for the rest, which
others still hold.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import replace
from typing import NamedTuple

from kshim.coordination.groups.consumer.member import Member, MemberState
from kshim.coordination.groups.consumer.partition_epochs import FREE
from kshim.coordination.groups.consumer.partitions import HOLDS_NOTHING, Assignment, Held, joined
from schemas.internal_topics.group_metadata_log import TopicId

Owned = Mapping[TopicId, Collection[int]]
"""The partitions that a member says it owns."""


class Step(NamedTuple):
    """What a step depends on, besides the member."""

    epoch: int
    """The epoch of the target."""
    target: Assignment
    """What the member is to have."""
    subscribed: Set[TopicId]
    """The topics that the member subscribes to now. Partitions of others are taken from it at once."""
    epoch_of: Callable[[TopicId, int], int]
    """Returns the epoch of a partition, or FREE."""
    has_new_subscription: bool = False
    """True if the member's subscription has changed with this request."""
    owned: Owned | None = None
    """None if the member says nothing of what it owns."""


def reconcile(member: Member, step: Step) -> Member:
    """The member after this step; the same object if nothing changes.

    A member in an unknown state starts from the target's epoch; its caller has made sure that it owns
    nothing.
    """
    if member.is_reconciled_to(step.epoch):
        return _trim(member, step) if step.has_new_subscription else member
    if member.state is MemberState.UNREVOKED_PARTITIONS and _owns_some(member.revoking, step.owned):
        return _trim(member, step) if step.has_new_subscription else member
    epoch = step.epoch if member.state is MemberState.UNKNOWN else member.epoch
    return _compute(member, step, epoch)


def _owns_some(held: Held, owned: Owned | None) -> bool:
    """True if the member still owns one of these partitions, or does not say that it does not."""
    if owned is None:
        return True
    for topic_id, partitions in owned.items():
        of_topic = held.get(topic_id)
        if of_topic is not None and any(partition in of_topic for partition in partitions):
            return True
    return False


def _trim(member: Member, step: Step) -> Member:
    """Take from the member the topics that it does not subscribe to any more; its epoch stays.

    Without any topic the epoch becomes the previous one as well, even if the member had no partitions.
    """
    gone = {
        topic_id: partitions
        for topic_id, partitions in member.assigned.items()
        if topic_id not in step.subscribed
    }
    if not gone and (step.subscribed or member.revoking):
        return member
    kept = {topic_id: those for topic_id, those in member.assigned.items() if topic_id not in gone}
    revoking = joined(member.revoking, gone)
    trimmed = replace(member.at_epoch(member.epoch), assigned=kept)
    if revoking and _owns_some(revoking, step.owned):
        return replace(trimmed, state=MemberState.UNREVOKED_PARTITIONS, revoking=revoking)
    return trimmed


def _compute(member: Member, step: Step, epoch: int) -> Member:
    """Compare what the member has with what it is to have. epoch: its epoch if it has to give up some."""
    kept: dict[TopicId, Mapping[int, int]] = {}
    revoking: dict[TopicId, Mapping[int, int]] = {}
    gained: dict[TopicId, Mapping[int, int]] = {}
    waits = False
    for topic_id in dict.fromkeys((*step.target, *member.assigned)):
        target = step.target.get(topic_id, frozenset()) if topic_id in step.subscribed else frozenset()
        has = member.assigned.get(topic_id, {})
        kept_here = {partition: since for partition, since in has.items() if partition in target}
        if kept_here:
            kept[topic_id] = kept_here
        if len(kept_here) < len(has):
            revoking[topic_id] = {each: since for each, since in has.items() if each not in target}
        wanted = target - kept_here.keys()
        own = member.revoking.get(topic_id, {})
        free = {
            partition: step.epoch
            for partition in wanted
            if step.epoch_of(topic_id, partition) == FREE or partition in own
        }
        waits = waits or len(free) < len(wanted)
        if free:
            gained[topic_id] = free
    if revoking and _owns_some(revoking, step.owned):
        return _moved(member, epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
    state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
    return _moved(member, step.epoch, state, joined(kept, gained) if gained else kept, HOLDS_NOTHING)


def _moved(member: Member, epoch: int, state: MemberState, assigned: Held, revoking: Held) -> Member:
    """The member in another epoch, by one `replace`: it is the dearest part of a step."""
    return replace(
        member,
        epoch=epoch,
        previous_epoch=member.epoch,
        state=state,
        assigned=assigned,
        revoking=revoking,
    )
