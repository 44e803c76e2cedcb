"""A topic and its partitions as values, and their stored form.

A topic is stored as one JSON value under `topic/<name>`. It has only the configs that were set. Defaults are
looked up at each use, so that a changed broker default counts for every topic that does not override it.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TypedDict
from uuid import UUID

ZERO_UUID = UUID(int=0)
_RESERVED_UUIDS = (ZERO_UUID, UUID(int=1))  # Kafka's ZERO_UUID and METADATA_TOPIC_ID


NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition, with its replicas as node ids."""

    index: int
    """The partition's number for clients."""
    partition_no: int
    """The partition's number in the log: u32, never reused."""
    leader: int
    """A node id; NO_LEADER while no broker runs that may lead."""
    leader_epoch: int = 0
    replicas: tuple[int, ...] = ()
    """All replicas, the preferred leader first."""
    isr: tuple[int, ...] = ()
    """The replicas in sync."""
    elr: tuple[int, ...] = ()
    """The replicas that may lead when the ISR is empty (KIP-966)."""
    adding: tuple[int, ...] = ()
    """The replicas that a reassignment adds (KIP-455)."""
    removing: tuple[int, ...] = ()
    """The replicas that a reassignment removes."""
    last_known_elr: tuple[int, ...] = ()
    """The last leader, while there is no leader (KIP-966)."""


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic."""

    name: str
    topic_id: UUID
    partitions: tuple[Partition, ...]
    configs: Mapping[str, str] = field(default_factory=dict)
    """The overrides, names and values as Kafka spells them."""
    is_internal: bool = False

    def partition(self, index: int) -> Partition | None:
        """The partition with that index; None if it does not exist."""
        return self.partitions[index] if 0 <= index < len(self.partitions) else None


def new_partitions(
    index: int, partition_no: int, replicas: Sequence[tuple[int, ...]], running: Collection[int]
) -> tuple[Partition, ...]:
    """A partition for each of `replicas`, numbered from `index` and `partition_no` on.

    The first running replica of each becomes its leader. At least one replica of each runs.
    """
    in_sync = {nodes: tuple(node for node in nodes if node in running) for nodes in set(replicas)}
    return tuple(
        [
            Partition(index + n, partition_no + n, in_sync[nodes][0], 0, nodes, in_sync[nodes])
            for n, nodes in enumerate(replicas)
        ]
    )


_StoredPartition = tuple[int, int, int, *tuple[list[int], ...]]


class _StoredTopic(TypedDict):
    topic_id: str
    is_internal: bool
    configs: dict[str, str]
    partitions: list[_StoredPartition]


def encode_topic(topic: Topic) -> bytes:
    """The stored JSON value of `topic`."""
    facts = {
        "topic_id": str(topic.topic_id),
        "is_internal": topic.is_internal,
        "configs": dict(topic.configs),
    }
    partitions = ", ".join(map(_encoder(), topic.partitions))
    return f'{json.dumps(facts)[:-1]}, "partitions": [{partitions}]}}'.encode()


def _encoder() -> Callable[[Partition], str]:
    """A function that writes a partition as JSON, faster than `json.dumps`.

    Most partitions of a topic have the same lists, so the text of these is cached.
    """
    known: dict[tuple[tuple[int, ...], ...], str] = {}

    def encode(p: Partition) -> str:
        lists = p.replicas, p.isr, p.elr, p.adding, p.removing, p.last_known_elr
        text = known.get(lists) or known.setdefault(lists, json.dumps(lists)[1:-1])
        return f"[{p.partition_no}, {p.leader}, {p.leader_epoch}, {text}]"

    return encode


def decode_topic(name: str, value: bytes) -> Topic:
    """Read the topic called `name` from its stored JSON value."""
    stored: _StoredTopic = json.loads(value)
    return Topic(
        name=name,
        topic_id=UUID(stored["topic_id"]),
        is_internal=stored["is_internal"],
        configs=stored["configs"],
        partitions=tuple(map(_decode_partition, count(), stored["partitions"])),
    )


def _decode_partition(index: int, stored: _StoredPartition) -> Partition:
    partition_no, leader, leader_epoch, *lists = stored
    # Versions with a single broker stored no lists.
    return Partition(index, partition_no, leader, leader_epoch, *map(tuple, lists or ([leader], [leader])))


def new_topic_id(random_uuid: Callable[[], UUID] = uuid.uuid4) -> UUID:
    """A random topic id that is not reserved and whose text form does not begin with a dash.

    Kafka's `Uuid.randomUuid` does the same: an id that begins with "-" would be taken for an option on a
    command line.
    """
    while True:
        topic_id = random_uuid()
        if topic_id not in _RESERVED_UUIDS and not uuid_text(topic_id).startswith("-"):
            return topic_id


def uuid_text(value: UUID) -> str:
    """Kafka's text form of a uuid: url-safe base64 without padding, 22 characters."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()
