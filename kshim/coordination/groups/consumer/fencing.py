"""Removes members: they leave, they are silent for too long, or they do not give up partitions in time."""

from __future__ import annotations

from collections.abc import Collection

from kshim.coordination.groups.consumer.downgrade import becomes_classic, downgrade
from kshim.coordination.groups.consumer.member import Member
from kshim.coordination.groups.consumer.targets import assign_later, bump_if_changed
from kshim.coordination.groups.consumer.writing import Writing


def fence(it: Writing, members: Collection[Member]) -> None:
    """Remove members in one step. If only classic members remain, the group becomes a classic one. Else the
    group epoch grows once; the target is computed in a decision of its own.

    An empty group has an empty target of its last epoch (KAFKA-20442).
    """
    gone = {member.member_id for member in members}
    remaining = [member for member in it.group.members.values() if member.member_id not in gone]
    if becomes_classic(it.group, remaining, it.settings):
        for member_id in gone:
            it.cancel_all(member_id)
        downgrade(it, remaining, rebalances=True)
        return
    for member in members:
        it.remove_member(member.member_id)
        it.cancel_all(member.member_id)
    it.forget_regexes(member.regex for member in members)
    bump_if_changed(it, is_bumped=True)
    if it.group.members:
        assign_later(it)
    else:
        it.put_assignment_epoch(it.group.epoch, 0)
