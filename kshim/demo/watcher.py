"""An ordinary kafka-python admin client: it creates the topic, then asks again and again for the group's
state.
"""

from threading import Event as Signal
from typing import Any

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import KafkaError

from kshim.demo.events import Created, GroupSeen, GroupUnseen, Offsets, Partitions, now_ms
from kshim.demo.worker import one_line, run, tell

PAUSE_MS = 250
REQUEST_TIMEOUT_MS = 3_000


def by_partition(offsets: dict[TopicPartition, Any]) -> Offsets:
    """(partition, offset) pairs, sorted."""
    return tuple(sorted((partition.partition, seen.offset) for partition, seen in offsets.items()))


def partitions_of(member: dict[str, Any]) -> Partitions:
    """The partitions in the description of a member; none while the group rebalances."""
    assignment = member["member_assignment"]
    if not assignment:
        return ()
    return tuple(sorted(p for topic in assignment["assigned_partitions"] for p in topic["partitions"]))


def look(admin: KafkaAdminClient, name: str, group_id: str, partitions: list[TopicPartition]) -> GroupSeen:
    """Ask for the group's state and members, its committed offsets and the log end offsets."""
    asked_ms = now_ms()
    group = admin.describe_groups([group_id])[group_id]
    committed = admin.list_group_offsets(group_id)[group_id]
    ends = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    return GroupSeen(
        name=name,
        at_ms=now_ms(),
        asked_ms=asked_ms,
        state=group["group_state"],
        members=tuple(sorted((member["client_id"], partitions_of(member)) for member in group["members"])),
        committed=by_partition(committed),
        ends=by_partition(ends),
    )


def watch(arguments: list[str], stop: Signal) -> None:
    """Create the topic, then report the group's state until asked to stop.

    Arguments: NAME BOOTSTRAP GROUP TOPIC PARTITIONS.
    """
    name, bootstrap, group_id, topic, count = arguments
    admin = KafkaAdminClient(
        bootstrap_servers=bootstrap,
        client_id=name,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        reconnect_backoff_max_ms=500,
    )
    admin.create_topics({topic: {"num_partitions": int(count)}}, wait_for_metadata=True)
    tell(Created(name=name, at_ms=now_ms(), topic=topic, partitions=int(count)))
    partitions = [TopicPartition(topic, number) for number in range(int(count))]
    while not stop.wait(PAUSE_MS / 1000):
        try:
            tell(look(admin, name, group_id, partitions))
        except KafkaError as error:
            tell(GroupUnseen(name=name, at_ms=now_ms(), error=one_line(error)))
    admin.close()


if __name__ == "__main__":
    run(watch)
