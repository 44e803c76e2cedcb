"""The uniform assignor: all members get equally many partitions, and keep what they have if they can."""

from __future__ import annotations

from kshim.coordination.groups.consumer.assignors.heterogeneous import assign_unlike
from kshim.coordination.groups.consumer.assignors.spec import AssignorFailed, GroupSpec, InSteps
from kshim.coordination.groups.consumer.partitions import Assignment, size
from kshim.coordination.java import MASK, in_order_of_a_hash_map, uuid_hash
from schemas.internal_topics.group_metadata_log import TopicId

_Free = list[tuple[TopicId, int]]


def assign_uniformly(group: GroupSpec) -> InSteps[dict[str, Assignment]]:
    """See the module, and `_assign_alike` and `assign_unlike`."""
    if not group.members:
        return {}
    return (yield from (_assign_alike if group.is_homogeneous else assign_unlike)(group))


def _assign_alike(group: GroupSpec) -> InSteps[dict[str, Assignment]]:
    """Assign to members that all have the subscription of the first. Each of P partitions goes to one of M
    members: P div M to every member, one more to P mod M of them.

    A member gets one more if it has it already; if too few do, the last members take one more.
    """
    member_ids = in_order_of_a_hash_map(group.members, group.code_of)
    topic_ids = in_order_of_a_hash_map(sorted(group.members[member_ids[0]].topic_ids), uuid_hash)
    if not topic_ids:
        return {}
    free, total = yield from _free(group, topic_ids)
    quota, extras = divmod(total, len(member_ids))
    target: dict[str, Assignment] = {}
    wanting: list[tuple[str, int]] = []
    subscribed = frozenset(topic_ids)
    for index, member_id in enumerate(member_ids):
        has_extra = extras > 0
        kept, room = _keep(group.members[member_id].target, subscribed, quota + has_extra, free)
        target[member_id] = kept
        if room > 0 and has_extra and len(member_ids) - index > extras:
            has_extra = False
            room -= 1
        if room > 0:
            wanting.append((member_id, room))
        extras -= has_extra
        yield 1 + len(kept)
    yield from _fill(target, wanting, free)
    return target


def _free(group: GroupSpec, topic_ids: list[TopicId]) -> InSteps[tuple[_Free, int]]:
    """The partitions that nobody had in the last target, and how many there are with the others."""
    taken: dict[TopicId, set[int]] = {topic_id: set() for topic_id in topic_ids}
    for member in group.members.values():
        for topic_id, partitions in member.target.items():
            if topic_id in taken:
                taken[topic_id] |= partitions
        yield len(member.target)
    free: _Free = []
    total = 0
    for topic_id in topic_ids:
        count = group.partitions.get(topic_id)
        if count is None:
            raise AssignorFailed(
                f"Members are subscribed to topic {topic_id} which doesn't exist in the topic metadata."
            )
        total += count
        free += [(topic_id, partition) for partition in range(count) if partition not in taken[topic_id]]
        yield count
    return free, total


def _keep(
    last: Assignment, subscribed: frozenset[TopicId], quota: int, free: _Free
) -> tuple[Assignment, int]:
    """The part of its last target that a member keeps, and the room left in its quota. The rest becomes free.

    If the member keeps everything, the result is the last target itself.
    """
    room = quota - size(last)
    if room >= 0 and subscribed.issuperset(last):
        return last, room
    kept: dict[TopicId, frozenset[int]] = {}
    for topic_id in in_order_of_a_hash_map(last, uuid_hash):
        partitions = last[topic_id]
        if topic_id not in subscribed:
            continue
        if len(partitions) <= quota:
            quota -= len(partitions)
            kept[topic_id] = partitions
            continue
        ordered = in_order_of_a_hash_map(sorted(partitions), _int_hash)
        if quota:
            kept[topic_id] = frozenset(ordered[:quota])
        free += [(topic_id, partition) for partition in ordered[quota:]]
        quota = 0
    return kept, quota


def _fill(target: dict[str, Assignment], wanting: list[tuple[str, int]], free: _Free) -> InSteps[None]:
    """Give the free partitions to the members that have room, in the order of both."""
    start = 0
    for member_id, room in wanting:
        gained: dict[TopicId, set[int]] = {}
        for topic_id, partition in free[start : start + room]:
            gained.setdefault(topic_id, set()).add(partition)
        start += room
        if gained:
            kept = target[member_id]
            more = {topic_id: kept.get(topic_id, frozenset()) | those for topic_id, those in gained.items()}
            target[member_id] = {**kept, **more}
        yield room
    if start < len(free):
        raise AssignorFailed("Partitions were left unassigned")


def _int_hash(number: int) -> int:
    return number & MASK
