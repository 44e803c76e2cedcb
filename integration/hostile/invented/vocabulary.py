"""The words of invented requests: for each field name, values that make sense in such a field.

A member id or a producer id makes sense only if the server has given it out. So the vocabulary learns values
from answers: a field of a request can get the values of all fields with its name, or with one of its ALIASES.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Final
from uuid import UUID

from integration.hostile import victim
from schemas.message import Value

TOPICS: Final = ("narrow", "wide", "compacted", "__consumer_offsets", "__transaction_state", "new")
GROUPS: Final = ("crowd", "sole", "fresh", "late")
VICTIM: Final = victim.TOPIC
"""The name of the victim's topic and group. It is never learned: deleting the topic makes nobody wait."""
TRANSACTIONAL_IDS: Final = ("first", "second", "third")
MOST_LEARNED: Final = 50
"""Most learned values for one name. The latest ones are kept."""

ALIASES: Final[Mapping[str, str]] = {
    "generation_id_or_member_epoch": "generation_id",
    "member_epoch": "generation_id",
    "topic": "topic",
    "topic_name": "topic",
    "topic_names": "topic",
    "v3_and_below_transactional_id": "transactional_id",
    "v3_and_below_producer_id": "producer_id",
    "v3_and_below_producer_epoch": "producer_epoch",
    "forgotten_topics_data": "topic",
    "transactional_ids": "transactional_id",
    "groups": "group_id",
    "groups_names": "group_id",
    "group": "group_id",
    "coordinator_keys": "key",
    "partition": "partition_index",
    "partitions": "partition_index",
    "partition_indexes": "partition_index",
    "index": "partition_index",
    "leader": "member_id",
}
TEXTS: Final[Mapping[str, tuple[str, ...]]] = {
    "topic": TOPICS,
    "name": (*TOPICS, "range", "cleanup.policy", "retention.ms", "max.message.bytes", "SCRAM-SHA-256"),
    "group_id": GROUPS,
    "transactional_id": TRANSACTIONAL_IDS,
    "key": (*GROUPS, *TRANSACTIONAL_IDS),
    "resource_name": (*TOPICS, "", "1", "*", *GROUPS),
    "resource_name_filter": (*TOPICS, "*"),
    "principal": ("User:one", "User:*"),
    "principal_filter": ("User:one",),
    "host": ("*", "127.0.0.1"),
    "host_filter": ("*",),
    "entity_type": ("user", "client-id", "ip"),
    "entity_name": ("one", "two"),
    "protocol_type": ("consumer",),
    "protocol_name": ("range",),
    "transactional_id_pattern": (".*", "f.*"),
    "subscribed_topic_regex": (".*",),
    "states_filter": ("Stable", "Empty", "Ongoing"),
    "types_filter": ("classic", "consumer"),
    "value": ("compact", "1000", "delete"),
    "mechanism": ("PLAIN",),
    "producer_id_filters": (),
}
NUMBERS: Final[Mapping[str, tuple[int, ...]]] = {
    "partition_index": (0, 1, 2, 999),
    "acks": (-1, 0, 1),
    "timeout_ms": (1, 1000, 5000),
    "timeout": (1000,),
    "session_timeout_ms": (6000, 30_000, 300_000),
    "rebalance_timeout_ms": (1, 1000, 60_000),
    "transaction_timeout_ms": (1000, 60_000),
    "max_wait_ms": (0, 100, 2000),
    "min_bytes": (0, 1, 100_000_000),
    "max_bytes": (0, 1, 50_000_000),
    "partition_max_bytes": (1, 1_000_000, 50_000_000),
    "replica_id": (-1,),
    "num_partitions": (1, 1, 10, 300, -1),
    "replication_factor": (1, 1, -1),
    "count": (2, 1000),
    "key_type": (0, 1, 2),
    "resource_type": (2, 4, 1, 3, 8, 16, 32),
    "resource_type_filter": (1, 2, 3),
    "pattern_type": (3, 4),
    "pattern_type_filter": (1, 2, 3, 4),
    "operation": (2, 3, 4, 8),
    "permission_type": (3,),
    "permission_type_filter": (1, 3),
    "config_operation": (0, 1, 2, 3),
    "isolation_level": (0, 1),
    "timestamp": (-1, -2, -3, 0),
    "response_partition_limit": (1, 2000),
    "brokerid": (1,),
    "producer_id": (-1,),
    "producer_epoch": (-1, 0),
    "session_id": (0,),
    "session_epoch": (-1, 0, 1),
    "generation_id": (-1, 0, 1),
}
EDGES: Final = (0, 1, -1, 2, 127, 32_767, 2**31 - 1, 2**63 - 1, -(2**63))


class Vocabulary:
    """The known words, and the words learned from answers."""

    def __init__(self) -> None:
        self._learned: dict[str, dict[Any, None]] = {}
        self._theme: dict[str, str] = {}

    def begin(self, chance: Random) -> None:
        """Choose one group, one topic and so on for a history, so that its steps concern the same things."""
        self._theme = {name: chance.choice(known) for name, known in TEXTS.items() if known}
        self._theme["key"] = self._theme["group_id"]

    def word(self, name: str, chance: Random) -> str:
        """A text for a field of this name, short or long."""
        name = ALIASES.get(name, name)
        if name in self._theme and chance.random() < 0.6:
            return self._theme[name]
        learned = self._values(name, str)
        if learned and chance.random() < 0.6:
            return str(learned[-1])
        known = [*TEXTS.get(name, ()), *learned]
        if known and chance.random() < 0.85:
            return str(chance.choice(known))
        return chance.choice(("", "x", "ü" * 40, "n" * 249, "[/x]\x1b[31m", "w" * 2000, "z" * 32_000))

    def number(self, name: str, bits: int, chance: Random) -> int:
        """A number that fits into `bits` bits."""
        name = ALIASES.get(name, name)
        learned = self._values(name, int)
        known = [*NUMBERS.get(name, ()), *learned, *learned[-1:] * len(learned)]
        number = int(chance.choice(known)) if known and chance.random() < 0.85 else chance.choice(EDGES)
        return max(-(1 << bits - 1), min(number, (1 << bits - 1) - 1))

    def uuid(self, name: str, chance: Random) -> bytes:
        """The 16 bytes of an id."""
        known = self._values(ALIASES.get(name, name), UUID)
        if known and chance.random() < 0.9:
            found: UUID = chance.choice(known)
            return found.bytes
        return chance.choice((bytes(16), chance.randbytes(16)))

    def learn(self, answer: Any) -> None:
        """Learn the values of all fields of a message."""
        if isinstance(answer, tuple):
            for each in answer[:MOST_LEARNED]:
                self.learn(each)
        elif isinstance(answer, Value):
            for each in type(answer).__definition__.fields:
                value = getattr(answer, each.name)
                if isinstance(value, str | UUID) or (isinstance(value, int) and value > 0):
                    self._keep(ALIASES.get(each.name, each.name), value)
                else:
                    self.learn(value)

    def _keep(self, name: str, value: Any) -> None:
        if value == VICTIM or (isinstance(value, str) and len(value) > 300):
            return
        known = self._learned.setdefault(name, {})
        known.pop(value, None)
        known[value] = None
        if len(known) > MOST_LEARNED:
            del known[next(iter(known))]

    def _values(self, name: str, kind: type) -> list[Any]:
        return [value for value in self._learned.get(name, ()) if isinstance(value, kind)]
