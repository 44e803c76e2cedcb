"""A Kafka cluster for a test: make topics, write and read records, wait for groups, and clean up.

It needs no Kafka client, and works with any cluster: `Cluster("127.0.0.1:9092").produce("orders",
[b"first"])`. A call that waits in vain raises TimeoutError, which says what it saw last.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar, Unpack

from kshim.testing import groups, quotas, records, topics
from kshim.testing.arguments import checked, refuse_configs, waiting
from kshim.testing.brokers import Again, Brokers, Deadline
from kshim.testing.client_settings import Client, Settings, consumer_settings
from kshim.testing.groups import Group, Member, TopicPartition
from kshim.testing.initial import NOTHING, GivenRecords, GivenTopics, new_initial
from kshim.testing.new_records import Codec, NewRecord, Text, new_record
from kshim.testing.quotas import Limits, Quota
from kshim.testing.records import Consumed, Position
from schemas.records.compression import Compression

__all__ = ["Cluster", "LeftBehind"]

T = TypeVar("T")

TIMEOUT_S = 10.0
_RUN = os.urandom(4).hex()
_numbers = itertools.count(1)


class LeftBehind(UserWarning):
    """A test did not close all its consumers, so `reset` had to remove them from their groups."""


class Cluster:
    """A Kafka cluster. Each call opens connections of its own, so several threads may use one object."""

    @checked
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        """The addresses of its brokers, comma-separated, as clients take them."""
        self._initial = NOTHING

    # ---- names and topics

    @staticmethod
    def name(prefix: str) -> str:
        """Make a name that no other test uses, not even in another process."""
        return f"{prefix}-{_RUN}{os.getpid():x}-{next(_numbers)}"

    @waiting
    def topic(
        self,
        /,
        prefix: str = "topic",
        partitions: int | None = None,
        replicas: int | None = None,
        **configs: object,
    ) -> str:
        """Create a topic with a new, unique name, and return the name. None stands for the broker's default.

        configs: Kafka's topic configs, with "_" for ".": `topic(partitions=3, cleanup_policy="compact")`.
        """
        refuse_configs(configs)
        name = self.name(prefix)
        texts = {key.replace("_", "."): _text(value) for key, value in configs.items()}
        self.create_topic(name, partitions, replicas=replicas, configs=texts)
        return name

    def group(self, prefix: str = "group") -> str:
        """Make a group id that no other test uses."""
        return self.name(prefix)

    @waiting
    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        *,
        replicas: int | None = None,
        configs: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Create a topic. None stands for the broker's default. Raises Refused, TimeoutError."""
        with Brokers(self.bootstrap, Deadline(timeout_s)) as brokers:
            topics.create_topic(brokers, name, partitions, replicas, configs or {})

    @waiting
    def delete_topics(self, *names: str, timeout_s: float = TIMEOUT_S) -> None:
        """Delete topics. A topic that does not exist is no error. Raises Refused, TimeoutError."""
        with Brokers(self.bootstrap, Deadline(timeout_s)) as brokers:
            topics.delete_topics(brokers, names)

    @waiting
    def topics(self) -> list[str]:
        """The names of all topics except Kafka's own."""
        return self._once_reached(TIMEOUT_S, topics.own_topics)

    @waiting
    def begin_with(self, topics: GivenTopics | None = None, records: GivenRecords | None = None) -> None:
        """Create topics and append records, now and at the end of each `reset`. Raises Refused, TimeoutError.

        topics: as in {"orders": 3}, partitions by topic, or a list of topics. records: as in {"orders":
        ["first"]}, what `produce` takes, by topic.
        """
        self._initial = new_initial(topics, records)
        self._make_initial()

    def _make_initial(self) -> None:
        for topic in self._initial.names:
            self.create_topic(topic, self._initial.topics.get(topic))
        for topic, values in self._initial.records.items():
            self.produce(topic, values)

    # ---- clients

    def consumer_settings(self, client: Client, group: str | None = None) -> Settings:
        """The settings with which a consumer of this cluster starts and rebalances quickly, by the client's
        own names: `KafkaConsumer("orders", **kshim.consumer_settings("kafka-python", "readers"))`.

        Consumers read from the first record on, and send heartbeats ten times a second, so that they hear of
        a rebalance within 0.1 s, also in the first seconds of a generation.
        """
        return consumer_settings(client, self.bootstrap, group)

    # ---- records

    @waiting
    def produce(
        self,
        topic: str,
        values: Iterable[NewRecord | tuple[Text, Text] | Text],
        *,
        compression: Codec = "none",
        timeout_s: float = TIMEOUT_S,
    ) -> list[Position]:
        """Append records, and return the position of each. Raises Refused, TimeoutError.

        values: each is a value, a pair of key and value, or a NewRecord, which may also have headers, a
        timestamp and a partition. Without a partition the key decides, as in the Java client; records without
        a key go to the partitions in turn.
        """
        given = [new_record(value) for value in values]
        with Brokers(self.bootstrap, Deadline(timeout_s)) as brokers:
            return records.produce(brokers, topic, given, Compression[compression.upper()])

    @waiting
    def consume(
        self,
        topic: str,
        n: int | None = None,
        *,
        partition: int | None = None,
        offset: int | None = None,
        committed_only: bool = False,
        timeout_s: float = TIMEOUT_S,
    ) -> list[Consumed]:
        """Read a topic from its start without a group, and return its records, by partition and offset.

        n: return the first `n` records, and wait until there are so many; None for those that exist now.
        partition, offset: read only this partition, and begin at this offset. committed_only: read as with
        isolation.level=read_committed. Raises Refused, TimeoutError.
        """
        with Brokers(self.bootstrap, Deadline(timeout_s)) as brokers:
            reading = records.Reading(brokers, topic, partition, offset, committed_only)
            return reading.all() if n is None else reading.first(n)

    @waiting
    def end_offsets(self, topic: str, *, timeout_s: float = TIMEOUT_S) -> dict[TopicPartition, int]:
        """The offset that the next record of each partition gets. Raises Refused, TimeoutError."""
        return self._once_reached(timeout_s, lambda brokers: _ends(brokers, [topic]))

    # ---- groups

    @waiting
    def describe_group(self, group: str, *, timeout_s: float = TIMEOUT_S) -> Group:
        """The group's current state, members and assignments. Raises Refused, TimeoutError."""
        return self._once_reached(timeout_s, lambda brokers: groups.describe_group(brokers, group))

    @waiting
    def groups(self) -> list[str]:
        """The ids of all groups."""
        return sorted(self._once_reached(TIMEOUT_S, groups.groups))

    @waiting
    def offsets(self, group: str, *, timeout_s: float = TIMEOUT_S) -> dict[TopicPartition, int]:
        """The group's committed offsets: `kshim.offsets("readers")["orders", 0] == 3`. Raises Refused,
        TimeoutError.
        """
        return self._once_reached(timeout_s, lambda brokers: groups.offsets(brokers, group))

    @waiting
    def wait_stable(self, group: str, *, timeout_s: float = TIMEOUT_S) -> Group:
        """Wait until the group is Stable, and members have all partitions of the topics that they subscribe
        to.

        Raises Refused, TimeoutError.
        """
        return self.wait_for_assignment(group, None, timeout_s=timeout_s)

    @waiting
    def wait_for_assignment(
        self, group: str, members: int | None = 1, *, timeout_s: float = TIMEOUT_S
    ) -> Group:
        """Wait like `wait_stable`, and for exactly that many members. Raises Refused, TimeoutError."""
        wanted = "member(s)" if members is None else f"{members} member(s)"
        return self._wait(
            f"group {group}: waited for {wanted} with all partitions",
            group,
            timeout_s,
            lambda brokers: groups.check_stable(brokers, group, members),
        )

    @waiting
    def wait_empty(self, group: str, *, timeout_s: float = TIMEOUT_S) -> Group:
        """Wait until the group has no members. Raises Refused, TimeoutError."""

        def check(brokers: Brokers) -> Group:
            found = groups.describe_group(brokers, group)
            if found.members:
                raise Again(str(found))
            return found

        return self._wait(f"group {group}: waited for the last member to leave", group, timeout_s, check)

    @waiting
    def wait_caught_up(self, group: str, *names: str, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until the group has committed the end offset of every partition of the topics.

        Raises Refused, TimeoutError.
        """

        def check(brokers: Brokers) -> None:
            committed, ends = groups.offsets(brokers, group), _ends(brokers, names)
            if behind := groups.lag(committed, ends):
                at = [f"{of.topic}-{of.partition} {committed.get(of)} of {ends[of]}" for of in sorted(ends)]
                state = groups.describe_group(brokers, group)
                raise Again(f"{behind} record(s) behind: committed {', '.join(at)}\n{state}")

        self._wait(f"group {group}: waited for its commits to reach the end", group, timeout_s, check)

    # ---- quotas

    @waiting
    def quota(
        self,
        *,
        user: str | None = None,
        client_id: str | None = None,
        ip: str | None = None,
        timeout_s: float = TIMEOUT_S,
        **limits: Unpack[Limits],
    ) -> Quota:
        """Limit clients until the quota is removed: `with kshim.quota(client_id="c", producer_byte_rate=…):`.

        user, client_id, ip: which clients; an empty name stands for all that have no quota of their own.
        Requests of this object have the client id "kshim.testing". Raises Refused, TimeoutError.
        """
        entity = quotas.new_entity(user, client_id, ip)
        quotas.check_limits(limits)

        def alter(changes: Mapping[str, object]) -> None:
            self._once_reached(timeout_s, lambda brokers: quotas.alter_quotas(brokers, {entity: changes}))

        alter(limits)
        return Quota(lambda: alter(dict.fromkeys(limits)))

    # ---- between two tests

    @waiting
    def reset(self, *, timeout_s: float = TIMEOUT_S) -> None:
        """Delete all groups, and all topics except Kafka's own; then make those of `begin_with` again. A
        `Kshim` also loses all quotas and faults.

        Clients may stay connected. Consumers that a test forgot to close are removed from their groups, and
        will try to join again; a LeftBehind warning names them. Raises Refused, TimeoutError.
        """
        self._begin_reset()
        removed: list[tuple[str, Member]] = []
        with Brokers(self.bootstrap, Deadline(timeout_s)) as brokers:
            brokers.deadline.until_done(lambda: _forget_all(brokers, removed))
        if removed:
            listed = ", ".join(sorted({f"{member.member_id} of group {group}" for group, member in removed}))
            warnings.warn(f"reset() removed consumers that still run: {listed}", LeftBehind, stacklevel=4)
        self._make_initial()

    def _begin_reset(self) -> None:
        """Reset what a subclass has besides groups and topics."""

    # ---- waiting

    def _once_reached(self, timeout_s: float, step: Callable[[Brokers], T]) -> T:
        with Brokers(self.bootstrap, Deadline(timeout_s)) as brokers:
            return brokers.deadline.until_done(lambda: step(brokers))

    def _wait(self, failure: str, group: str, timeout_s: float, step: Callable[[Brokers], T]) -> T:
        try:
            return self._once_reached(timeout_s, step)
        except TimeoutError as error:
            raise TimeoutError(f"{failure}; {error}{self._more_about(group)}") from None

    def _more_about(self, group: str) -> str:
        """More text for the TimeoutError of a call that has waited for a group in vain."""
        return ""


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ends(brokers: Brokers, names: Collection[str]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(name, partition): end
        for name in names
        for partition, end in records.end_offsets(brokers, brokers.topic(name)).items()
    }


def _forget_all(brokers: Brokers, removed: list[tuple[str, Member]]) -> None:
    """Delete all groups, and all topics except Kafka's own. Raises Again, Refused, OSError.

    removed: gets the members that had to leave their groups for that.
    """
    groups.forget_groups(brokers, groups.groups(brokers), removed)
    topics.delete_topics(brokers, topics.own_topics(brokers))
    if left := groups.groups(brokers):
        raise Again(f"there is group {', '.join(sorted(left))} again")
