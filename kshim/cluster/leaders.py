"""Changes the leaders of partitions: elections, reassignments, brokers that stop and start.

Each change treats its partitions one by one, by the rules of `replicas`; the refusal of one partition does
not affect the others. Refusals are Kafka's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from twisted.internet.defer import Deferred

from kshim.cluster import replicas
from kshim.cluster.changes import Change, Outcome, TopicPartition
from kshim.cluster.checks import Refusal, fault_in_replicas
from kshim.cluster.cluster import Cluster
from kshim.cluster.replicas import Election
from kshim.cluster.topics import NO_LEADER, Partition, Topic
from schemas.error_code import ErrorCode

Step = Callable[[Partition, int], Partition | Refusal]
"""Takes a partition and its topic's min.insync.replicas; returns the changed partition, or a refusal."""

_NOT_NEEDED = Refusal(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
_NONE_IN_PROGRESS = Refusal(
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."
)
_NOBODY = {
    Election.PREFERRED: Refusal(
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
    ),
    Election.UNCLEAN: Refusal(
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available."
    ),
}


def elect(cluster: Cluster, election: Election, wanted: Sequence[TopicPartition]) -> Deferred[Outcome]:
    """Elect the leaders of partitions by the rules of `election`. Errbacks StorageError."""

    def step(partition: Partition, min_isr: int) -> Partition | Refusal:
        led = partition.leader != NO_LEADER
        if led and (election is Election.UNCLEAN or partition.leader == partition.replicas[0]):
            return _NOT_NEEDED
        after = replicas.elected(partition, election, cluster.running, min_isr)
        return _NOBODY[election] if after == partition else after

    def decide() -> Change:
        return _change(cluster, ((partition, step) for partition in wanted))

    return cluster.change_topics(decide)


def reassign(
    cluster: Cluster,
    wanted: Sequence[tuple[TopicPartition, Sequence[int] | None]],
    *,
    allow_replication_factor_change: bool = True,
) -> Deferred[Outcome]:
    """Give partitions new replicas; None instead of replicas cancels the reassignment in progress. Errbacks
    StorageError.
    """

    nodes = cluster.nodes()

    def to(target: Sequence[int] | None) -> Step:
        def step(partition: Partition, min_isr: int) -> Partition | Refusal:
            if target is None:
                if partition.adding or partition.removing:
                    return replicas.cancelled(partition, cluster.running, min_isr)
                return _NONE_IN_PROGRESS
            fault = fault_in_replicas(target, nodes)
            if fault:
                return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, fault)
            factor = len(set(partition.replicas) - set(partition.removing))
            if factor != len(target) and not allow_replication_factor_change:
                message = f"The replication factor is changed from {factor} to {len(target)}"
                return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, message)
            return replicas.reassigned(partition, target, cluster.running, min_isr)

        return step

    steps = [(partition, to(target)) for partition, target in wanted]
    return cluster.change_topics(lambda: _change(cluster, steps))


def move_leader(cluster: Cluster, wanted: TopicPartition, node_id: int) -> Deferred[Outcome]:
    """Make broker `node_id` the leader of a partition, even if it is no replica. Errbacks StorageError."""

    def step(partition: Partition, min_isr: int) -> Partition | Refusal:
        if node_id not in cluster.running:
            return Refusal(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {node_id} does not run")
        return replicas.led_by(partition, node_id, cluster.running, min_isr)

    return cluster.change_topics(lambda: _change(cluster, [(wanted, step)]))


def stop_broker(cluster: Cluster, node_id: int) -> Deferred[Outcome]:
    """Mark a broker as stopped, and move its leaderships to other brokers. Errbacks StorageError."""

    def decide() -> Change:
        running = tuple(node for node in cluster.running if node != node_id)

        def step(partition: Partition, min_isr: int) -> Partition:
            return replicas.stopped(partition, node_id, running, min_isr)

        return _change(cluster, ((each, step) for each in all_partitions(cluster.topics)), running)

    return cluster.change_topics(decide)


def start_broker(cluster: Cluster, node_id: int) -> Deferred[Outcome]:
    """Mark a broker as running: it follows again, and leads partitions without a leader. Errbacks
    StorageError.
    """

    def decide() -> Change:
        running = tuple(sorted({*cluster.running, node_id}))

        def step(partition: Partition, min_isr: int) -> Partition:
            return replicas.started(partition, node_id, running, min_isr)

        return _change(cluster, ((each, step) for each in all_partitions(cluster.topics)), running)

    return cluster.change_topics(decide)


def all_partitions(topics: Mapping[str, Topic]) -> Iterator[TopicPartition]:
    for topic in topics.values():
        for partition in topic.partitions:
            yield topic.name, partition.index


def _change(
    cluster: Cluster,
    steps: Iterable[tuple[TopicPartition, Step]],
    running: tuple[int, ...] | None = None,
) -> Change:
    """Apply each step to its partition. Every step sees the partition as it was before the change, so of two
    steps for one partition the later wins.
    """
    topics = cluster.topics
    outcome: list[tuple[TopicPartition, Refusal | None]] = []
    partitions: dict[str, list[Partition]] = {}
    for (name, index), step in steps:
        topic = topics.get(name)
        if topic is None or topic.partition(index) is None:
            outcome.append(((name, index), _unknown(name, index, topic)))
            continue
        after = step(topic.partitions[index], cluster.log_config(topic).min_insync_replicas)
        outcome.append(((name, index), after if isinstance(after, Refusal) else None))
        if isinstance(after, Partition):
            if name not in partitions:
                partitions[name] = list(topic.partitions)
            partitions[name][index] = after
    changed = {
        name: replace(topics[name], partitions=tuple(now))
        for name, now in partitions.items()
        if tuple(now) != topics[name].partitions
    }
    return Change(changed, outcome, running)


def _unknown(name: str, index: int, topic: Topic | None) -> Refusal:
    what = f"No such topic as {name}" if topic is None else f"No such partition as {name}-{index}"
    return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, what)
