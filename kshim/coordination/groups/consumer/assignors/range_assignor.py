"""The range assignor: each topic's partitions are dealt out in runs, in the order of the members.

Topics with equal numbers of partitions and subscribers go to the same members, so that joins stay local. The
last target does not matter. Static members come first, in the order of their instance ids.
"""

from __future__ import annotations

from kshim.coordination.groups.consumer.assignors.spec import (
    AssignorFailed,
    GroupSpec,
    InSteps,
    MemberSpec,
    subscribers,
)
from kshim.coordination.groups.consumer.partitions import Assignment
from kshim.coordination.java import UTF_16_BIG_ENDIAN
from schemas.internal_topics.group_metadata_log import TopicId


def assign_ranges(group: GroupSpec) -> InSteps[dict[str, Assignment]]:
    """Assign each topic's partitions in ranges, by the rules above."""
    target: dict[str, dict[TopicId, frozenset[int]]] = {member_id: {} for member_id in group.members}
    in_order = sorted(group.members.items(), key=_place)
    subscribed = yield from subscribers([member.topic_ids for _, member in in_order])
    for topic_id, places in subscribed.items():
        partitions = group.partitions.get(topic_id)
        if partitions is None:
            raise AssignorFailed("Member is subscribed to a non-existent topic")
        share, extras = divmod(partitions, len(places))
        start = 0
        for index, place in enumerate(places[:partitions]):
            end = start + share + (index < extras)
            target[in_order[place][0]][topic_id] = frozenset(range(start, end))
            start = end
        yield partitions
    return dict(target)


def _place(item: tuple[str, MemberSpec]) -> tuple[bool, bytes]:
    """The key by which members are sorted; Java compares strings by their UTF-16 units."""
    member_id, member = item
    name = member_id if member.instance_id is None else member.instance_id
    return member.instance_id is None, name.encode(UTF_16_BIG_ENDIAN, "surrogatepass")
