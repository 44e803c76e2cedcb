"""Keeps a group's epoch, its target and its members' partitions up to date, in this order.

A large target is computed in slices, each in a decision of its own. Meanwhile the old one stays.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import islice

from kshim.coordination.groups.consumer.assignors.spec import Assignor, GroupSpec, InSteps, MemberSpec
from kshim.coordination.groups.consumer.computing import Computation
from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.member import Member, MemberState
from kshim.coordination.groups.consumer.partitions import NOTHING, Assignment
from kshim.coordination.groups.consumer.reconciliation import Owned, Step, reconcile
from kshim.coordination.groups.consumer.subscriptions import common, topics_of
from kshim.coordination.groups.consumer.topics import Topics, metadata_hash
from kshim.coordination.groups.consumer.writing import Writing
from kshim.coordination.groups.timers import TimerKind
from schemas.internal_topics.group_metadata_log import TopicId

logger = logging.getLogger(__name__)

REFRESH_MS = 2**31 - 1
"""After this long, in ms, the topics are looked at even though no change of them was seen."""


def bump_if_changed(it: Writing, is_bumped: bool) -> bool:
    """Look at the topics that the group subscribes to. Write a new group epoch if they have changed since, or
    if `is_bumped`; return True if that was done.
    """
    now = metadata_hash(it.group.subscriptions.existing(it.environment.topics))
    if not is_bumped and now == it.group.metadata_hash:
        return False
    it.begin_epoch(now)
    return True


def refresh(it: Writing, is_bumped: bool) -> None:
    """Like `bump_if_changed`; the topics need not be looked at again until they change."""
    group = it.group
    bump_if_changed(it, is_bumped)
    group.refresh_at = (it.now_ms + REFRESH_MS, group.epoch)
    if group.has_old_metadata:
        it.forget_old_metadata()


def assign(it: Writing) -> None:
    """Begin to compute a target for the group epoch, if the last one is of an earlier epoch.

    `group.consumer.assignment.interval.ms` after the last target at the earliest: until then the target of an
    earlier epoch stays.
    """
    group = it.group
    if not _is_due(group) or group.computation is not None:
        return
    if it.now_ms < group.assigned_ms + it.environment.configs.assignment_interval_ms(group.group_id):
        assign_later(it)
        return
    # A start without consumer groups needs no assignor.
    from kshim.coordination.groups.consumer.assignors.table import ASSIGNORS

    assignor = ASSIGNORS[group.subscriptions.preferred_assignor(it.environment.assignors)]
    work = _compute(group, it.environment.topics, assignor)
    group.computation = Computation(group.epoch, tuple(group.members), work)
    _go_on(it, group.computation)


def catch_up(it: Writing) -> None:
    """Look at the group's topics if they have changed. Go on with the target that is being computed, or begin
    with the next one if that is due.
    """
    if it.group.needs_refresh(it.now_ms):
        refresh(it, is_bumped=False)
    if it.group.computation is None:
        assign(it)
    else:
        _go_on(it, it.group.computation)


def _go_on(it: Writing, computation: Computation) -> None:
    """Compute for a moment. At the end write the target of the members that are still there.

    If the assignor fails, the last target stays until the group changes again: an error would end clients.
    """
    group = it.group
    group.computation = None
    try:
        is_done = computation.go_on()
    except Exception:
        logger.exception(
            "internal error: group %s: no target for epoch %d, the last one stays",
            group.group_id,
            computation.epoch,
        )
        group.failed_epoch = computation.epoch
        assign_later(it)
        return
    if not is_done:
        group.computation = computation
        it.arm(TimerKind.TARGET, "", 0)
        return
    for member_id in filter(group.members.__contains__, computation.member_ids):
        target, last = computation.targets.get(member_id, NOTHING), group.targets.get(member_id)
        if last is not target and last != target:
            it.put_target(member_id, target)
    it.put_assignment_epoch(computation.epoch, it.now_ms)
    it.cancel(TimerKind.TARGET)
    assign_later(it)


def assign_later(it: Writing) -> None:
    """Compute the target in a decision of its own, as soon as that may be done."""
    group = it.group
    if group.members and _is_due(group):
        interval_ms = it.environment.configs.assignment_interval_ms(group.group_id)
        it.arm(TimerKind.TARGET, "", group.assigned_ms + interval_ms - it.now_ms)


def _is_due(group: ConsumerGroup) -> bool:
    """True if the group has no target for its epoch, and none has failed."""
    return group.assignment_epoch < group.epoch != group.failed_epoch


def subscribed_ids(it: Writing, member: Member) -> frozenset[TopicId]:
    """The ids of the topics that a member subscribes to, as far as they exist, and it has or is to have
    partitions of them; if there are none, of any other.
    """
    topics, known = it.environment.topics, it.group.subscriptions
    held = map(topics.with_id, {*it.group.target_of(member), *member.assigned})
    found = frozenset(topic.topic_id for topic in held if topic and known.subscribes(member, topic.name))
    if found:
        return found
    others = map(topics.named, common(topics_of(member, known.resolved), topics.names()))
    return frozenset(islice((topic.topic_id for topic in others if topic is not None), 1))


def next_step(it: Writing, member: Member, owned: Owned | None = None, is_new: bool = False) -> Member:
    """The member after one step to its target; see `reconcile`. is_new: its subscription has changed."""
    group = it.group
    if member.is_reconciled_to(group.assignment_epoch) and not is_new:
        return member
    step = Step(
        group.assignment_epoch,
        group.target_of(member),
        subscribed_ids(it, member),
        group.partition_epochs.of,
        is_new,
        owned,
    )
    return reconcile(member, step)


def take_step(it: Writing, member: Member, owned: Owned | None, is_new: bool) -> Member:
    """Take the member one step to its target. A member that is to give up partitions has its rebalance
    timeout for it; classic members have other timers.
    """
    moved = next_step(it, member, owned, is_new)
    if moved == member:
        return member
    it.put_current(moved)
    if moved.classic is None:
        if moved.state is MemberState.UNREVOKED_PARTITIONS:
            it.arm(TimerKind.REVOCATION, moved.member_id, moved.rebalance_timeout_ms)
        else:
            it.cancel(TimerKind.REVOCATION, moved.member_id)
    return moved


def _compute(group: ConsumerGroup, topics: Topics, assignor: Assignor) -> InSteps[Mapping[str, Assignment]]:
    spec = yield from _spec(group, topics)
    return (yield from assignor(spec))


def _spec(group: ConsumerGroup, topics: Topics) -> InSteps[GroupSpec]:
    """Describe a group for an assignor, as it is before the first step."""
    known, members, targets = group.subscriptions, tuple(group.members.values()), group.targets.copy()
    resolved, codes = known.resolved.copy(), group.hash_codes.copy()
    is_homogeneous = known.is_homogeneous(len(members))
    found = known.existing(topics)
    ids = {topic.name: topic.topic_id for topic in found}
    kinds: dict[tuple[frozenset[str], str], frozenset[TopicId]] = {}
    specs = {}
    for member in members:
        kind = member.topic_names, member.regex
        if kind not in kinds:
            names = common(topics_of(member, resolved), ids.keys())
            kinds[kind] = frozenset(ids[name] for name in names)
            yield len(kinds[kind])
        target = targets.get(member.member_id, NOTHING)
        specs[member.member_id] = MemberSpec(kinds[kind], target, member.instance_id)
        yield 1
    partitions = {topic.topic_id: topic.partitions for topic in found}
    return GroupSpec(specs, partitions, is_homogeneous, codes.__getitem__)
