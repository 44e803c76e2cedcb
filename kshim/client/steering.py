"""Steers groups over Kafka's protocol, on kshim or any other cluster: their members and their offsets.

Each function takes and returns the JSON values that the server's command of the same name does. It raises
ClientError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from kshim.client import groups
from kshim.client.cluster import Cluster, Topic
from kshim.client.faults import ClientError
from kshim.client.groups import TopicPartition
from kshim.client.offsets import EARLIEST, LATEST, NO_OFFSET, offsets

_ALL: Final = -1
_REASON: Final = "removed with kshim group"

# ---- offsets


def set_offsets(cluster: Cluster, group_id: str, rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    given = {}
    for topic, partition, offset in rows:
        _existing(cluster, topic, partition)
        if not 0 <= offset < 2**63:
            raise ClientError(f"{topic}-{partition}: {offset} is no offset; they begin at 0")
        given[topic, partition] = offset
    return _commit(cluster, group_id, given)


def reset_offsets(
    cluster: Cluster, group_id: str, named: Sequence[Sequence[Any]], to: str, value: int
) -> list[list[Any]]:
    planned = plan_offsets(cluster, group_id, named, to, value)
    return _commit(cluster, group_id, {(topic, index): after for topic, index, _, after in planned})


def plan_offsets(
    cluster: Cluster, group_id: str, named: Sequence[Sequence[Any]], to: str, value: int
) -> list[list[Any]]:
    """Rows of topic, partition, the committed offset or None, and the offset that a reset would commit."""
    before = groups.committed(cluster, group_id)
    chosen: Iterable[TopicPartition] = sorted(before)
    if named:
        chosen = sorted((topic, n) for topic, index in named for n in _existing(cluster, topic, index))
    if not chosen:
        raise ClientError(f"group {group_id} has committed no offsets: name a topic")
    planned: list[list[Any]] = []
    for topic_name in dict.fromkeys(topic for topic, _ in chosen):
        topic = cluster.topic(topic_name)
        some = [partition for name, partition in chosen if name == topic_name]
        after = _places(cluster, topic, some, to, value, before)
        planned += [[topic_name, each, before.get((topic_name, each)), after[each]] for each in some]
    return planned


def _places(
    cluster: Cluster,
    topic: Topic,
    partitions: Sequence[int],
    to: str,
    value: int,
    before: Mapping[TopicPartition, int],
) -> dict[int, int]:
    """The offsets to which partitions are reset."""
    if to == "earliest":
        return offsets(cluster, topic, partitions, EARLIEST)
    ends = offsets(cluster, topic, partitions, LATEST)
    if to == "latest":
        return ends
    if to == "time":
        found = offsets(cluster, topic, partitions, value)
        return {each: ends[each] if at == NO_OFFSET else at for each, at in found.items()}
    first = offsets(cluster, topic, partitions, EARLIEST)
    for each in partitions:
        if (topic.name, each) not in before:
            raise ClientError(f"{topic.name}-{each}: there is no committed offset that could be shifted")
    return {each: min(max(before[topic.name, each] + value, first[each]), ends[each]) for each in partitions}


def _existing(cluster: Cluster, name: str, partition: int) -> Sequence[int]:
    """The partition, or for _ALL each one of the topic. Raises ClientError if it does not exist."""
    topic = cluster.topic(name)
    if partition != _ALL and partition not in topic.partitions:
        raise ClientError(f"{name} has the partitions 0 to {len(topic.partitions) - 1}")
    return list(topic.partitions) if partition == _ALL else [partition]


def _commit(cluster: Cluster, group_id: str, given: Mapping[TopicPartition, int]) -> list[list[Any]]:
    groups.check_empty(cluster, group_id, "its offsets stay as they are")
    groups.commit(cluster, group_id, given)
    return [[topic, partition, offset] for (topic, partition), offset in sorted(given.items())]


# ---- members


def remove_member(cluster: Cluster, group_id: str, name: str) -> str:
    found = groups.described(cluster, group_id)
    for member in found.members:
        if name in (member.member_id, member.instance_id):
            groups.remove(cluster, group_id, [member], _REASON)
            return member.member_id
    known = ", ".join(each.member_id for each in found.members[:5]) or "none"
    raise ClientError(f"group {group_id} has no member {name}; it has {known}")


def empty_group(cluster: Cluster, group_id: str) -> list[str]:
    members = groups.described(cluster, group_id).members
    if members:
        groups.remove(cluster, group_id, members, _REASON)
    return [each.member_id for each in members]


def delete_group(cluster: Cluster, group_id: str) -> None:
    groups.check_empty(cluster, group_id, "it is not deleted")
    groups.delete(cluster, group_id)


STEERING: Final[Mapping[str, Callable[..., Any]]] = {
    "set-offsets": set_offsets,
    "reset-offsets": reset_offsets,
    "plan-offsets": plan_offsets,
    "remove-member": remove_member,
    "empty-group": empty_group,
    "delete-group": delete_group,
}
"""The functions by the names of the server's commands."""
