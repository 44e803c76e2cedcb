"""The range assignor: each topic's partitions are dealt out in runs, in the order of the members.

Topics with equal numbers of partitions and subscribers go to the same members, so that joins stay local. The
last target does not matter. Static members come first, in the order of their instance ids.
"""

from __future__ import annotations

from collections import defaultdict

from kshim.coordination.groups.consumer.assignors.spec import AssignorFailed, GroupSpec, MemberSpec
from kshim.coordination.groups.consumer.partitions import Assignment
from kshim.coordination.java import UTF_16_BIG_ENDIAN
from schemas.internal_topics.group_metadata_log import TopicId


def assign_ranges(group: GroupSpec) -> dict[str, Assignment]:
    """Assign each topic's partitions in ranges, by the rules above."""
    target: dict[str, dict[TopicId, frozenset[int]]] = {member_id: {} for member_id in group.members}
    subscribers: defaultdict[TopicId, list[str]] = defaultdict(list)
    for member_id, member in sorted(group.members.items(), key=_place):
        for topic_id in member.topic_ids:
            subscribers[topic_id].append(member_id)
    for topic_id, member_ids in subscribers.items():
        partitions = group.partitions.get(topic_id)
        if partitions is None:
            raise AssignorFailed("Member is subscribed to a non-existent topic")
        share, extras = divmod(partitions, len(member_ids))
        start = 0
        for index, member_id in enumerate(member_ids):
            end = start + share + (index < extras)
            if end > start:
                target[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return dict(target)


def _place(item: tuple[str, MemberSpec]) -> tuple[bool, bytes]:
    """The key by which members are sorted; Java compares strings by their UTF-16 units."""
    member_id, member = item
    name = member_id if member.instance_id is None else member.instance_id
    return member.instance_id is None, name.encode(UTF_16_BIG_ENDIAN, "surrogatepass")
