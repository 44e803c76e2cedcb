"""Refuses changes of topics as Kafka does, in Kafka's order and words.

Pure: a request and the existing topics go in, a `Refusal` or None comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from kshim.cluster.broker_configs import BrokerConfigs
from kshim.cluster.names import COORDINATORS_TOPICS, MetricNames, fault_in_name
from kshim.cluster.topic_configs import fault_in_configs
from kshim.cluster.topics import Topic
from schemas.error_code import ErrorCode

DEFAULT = -1
_MAX_PARTITIONS_PER_REQUEST = _MAX_RECORDS_PER_REQUEST = 10_000


class Refusal(NamedTuple):
    """The error code and message with which a response refuses a change."""

    error_code: ErrorCode
    message: str | None


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be created. DEFAULT (-1) as a number makes the broker choose it."""

    name: str
    num_partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    """(partition index, node ids of its replicas) for each partition; empty if the broker places them."""
    configs: Mapping[str, str | None] = field(default_factory=dict)


class Nodes(NamedTuple):
    """The brokers that may get replicas, by node id."""

    registered: Collection[int]
    running: Collection[int]
    cordoned: Collection[int]
    """The brokers whose log directories take no new replicas."""

    @property
    def usable(self) -> list[int]:
        """The brokers where kshim may place replicas by itself."""
        return [node for node in self.registered if node not in self.cordoned]


def refuse_new_topic(
    new: NewTopic, topics: Mapping[str, Topic], metric_names: MetricNames, nodes: Nodes, broker: BrokerConfigs
) -> Refusal | None:
    """The refusal of `new` beside the existing `topics`; None if it can be created."""
    fault = fault_in_name(new.name)
    if fault:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if new.name == "__cluster_metadata":
        return Refusal(
            ErrorCode.INVALID_REQUEST, "Creation of internal topic __cluster_metadata is prohibited."
        )
    if new.name in topics:
        return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{new.name}' already exists.")
    other = metric_names.colliding(new.name)
    if other is not None:
        message = f"Topic '{new.name}' collides with existing topic: {other}"
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
    fault = fault_in_configs(new.configs, broker)
    if fault:
        return Refusal(ErrorCode.INVALID_CONFIG, fault)
    return _refuse_assignments(new, nodes) if new.assignments else _refuse_counts(new, nodes)


def _refuse_counts(new: NewTopic, nodes: Nodes) -> Refusal | None:
    if new.replication_factor < -1 or new.replication_factor == 0:
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if new.num_partitions < -1 or new.num_partitions == 0:
        return Refusal(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        )
    fault = _fault_in_placing(new.replication_factor, nodes)
    if fault:
        message = f"Unable to replicate the partition {new.replication_factor} time(s): {fault}"
        return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    return None


def _fault_in_placing(replication_factor: int, nodes: Nodes) -> str | None:
    """The reason why no brokers can be chosen for so many replicas; None if they can."""
    usable = nodes.usable
    if not any(node in nodes.running for node in usable):
        return "All brokers are currently fenced, or have all their log directories cordoned."
    if replication_factor <= len(usable):
        return None
    return (
        f"The target replication factor of {replication_factor} cannot be reached because only "
        f"{len(usable)} broker(s) are registered or some brokers have all their log directories cordoned."
    )


def refuse_new_topics(wanted: Iterable[NewTopic]) -> Refusal | None:
    """The refusal of a whole request for its number of partitions; None if each topic is to be checked.

    Partitions of topics that could not be created count, too.
    """
    return _refuse_too_many(sum(len(new.assignments) or max(new.num_partitions, 0) for new in wanted))


def refuse_made_topics(made: Iterable[Topic]) -> Refusal | None:
    """The refusal of all topics that passed their checks, if together they are too large; else None.

    Kafka's controller writes at most 10,000 records at once: one for each topic, config and partition.
    """
    if sum(1 + len(topic.configs) + len(topic.partitions) for topic in made) > _MAX_RECORDS_PER_REQUEST:
        return Refusal(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    return None


def _refuse_too_many(partitions: int) -> Refusal | None:
    if partitions > _MAX_PARTITIONS_PER_REQUEST:
        return Refusal(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    return None


def _refuse_assignments(new: NewTopic, nodes: Nodes) -> Refusal | None:
    if new.replication_factor != -1 or new.num_partitions != -1:
        what = "replication factor" if new.replication_factor != -1 else "numPartitions"
        message = f"A manual partition assignment was specified, but {what} was not set to -1."
        return Refusal(ErrorCode.INVALID_REQUEST, message)
    seen: set[int] = set()
    size = len(new.assignments[0][1])
    for index, replicas in new.assignments:
        if index in seen:
            fault: str | None = f"Found multiple manual partition assignments for partition {index}"
        else:
            fault = fault_in_replicas(replicas, nodes, size) or _fault_in_running(index, replicas, nodes)
        if fault:
            return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, fault)
        seen.add(index)
    if seen != set(range(len(seen))):
        return Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return None


def fault_in_replicas(replicas: Sequence[int], nodes: Nodes, size: int | None = None) -> str | None:
    """The fault in the requested replicas of a partition, in Kafka's words; None if there is none.

    size: the required number of replicas; None allows any.
    """
    if not replicas:
        return "The manual partition assignment includes an empty replica list."
    previous: int | None = None
    for replica in sorted(replicas):
        fault = _fault_in_replica(replica, nodes)
        if fault:
            return fault
        if replica == previous:
            return f"The manual partition assignment includes the broker {replica} more than once."
        previous = replica
    if size is not None and len(replicas) != size:
        return (
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this "
            f"is not consistent with previous partitions, which have {size} replica(s)."
        )
    return None


def _fault_in_replica(replica: int, nodes: Nodes) -> str | None:
    fault = None
    if replica not in nodes.registered:
        fault = "but no such broker is registered."
    elif replica in nodes.cordoned:
        fault = "but all its log directories are cordoned."
    return fault and f"The manual partition assignment includes broker {replica}, {fault}"


def _fault_in_running(index: int, replicas: Sequence[int], nodes: Nodes) -> str | None:
    if any(replica in nodes.running for replica in replicas):
        return None
    return (
        f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
        "controlled shutdown."
    )


def refuse_new_partitions(
    topic: Topic | None,
    count: int,
    assignments: Sequence[Sequence[int]] | None,
    nodes: Nodes,
    admit: Callable[[int], Refusal | None] = lambda _: None,
) -> Refusal | None:
    """The refusal to grow `topic` to `count` partitions; None if it can grow.

    admit: called with the number of added partitions; it may refuse them. As in Kafka, it is called before
    the brokers of `assignments` are checked.
    """
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    have = len(topic.partitions)
    if count == have:
        return Refusal(ErrorCode.INVALID_PARTITIONS, f"Topic already has {have} partition(s).")
    if count < have:
        message = (
            f"The topic {topic.name} currently has {have} partition(s); {count} would not be an increase."
        )
        return Refusal(ErrorCode.INVALID_PARTITIONS, message)
    if topic.name in COORDINATORS_TOPICS:
        return _refuse_internal(topic.name)
    if assignments is not None and len(assignments) != count - have:
        message = (
            f"Attempted to add {count - have} additional partition(s), but only {len(assignments)} "
            "assignment(s) were specified."
        )
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    if (refusal := admit(count - have)) is not None:
        return refusal
    size = len(topic.partitions[0].replicas)
    if assignments is not None:
        faults = (
            fault_in_replicas(replicas, nodes, size) or _fault_in_running(index, replicas, nodes)
            for index, replicas in enumerate(assignments, have)
        )
        fault = next(filter(None, faults), None)
        if fault:
            return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, fault)
    elif fault := _fault_in_placing(size, nodes):
        return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, fault)
    return _refuse_too_many(count - have)


def refuse_deletion(topic: Topic, topics: Mapping[UUID, Topic]) -> Refusal | None:
    """The refusal to delete `topic`; None if it can be deleted."""
    if topic.topic_id not in topics:
        message = "This server does not host this topic-partition."
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    return _refuse_internal(topic.name) if topic.name in COORDINATORS_TOPICS else None


def _refuse_internal(name: str) -> Refusal:
    """The refusal to delete or extend a topic with a coordinator's state, which is found by partition number.

    Kafka allows such a change, and then loses or misplaces its groups.
    """
    return Refusal(
        ErrorCode.POLICY_VIOLATION, f"Topic {name} is internal; it cannot be deleted or given partitions."
    )


def refuse_to_unregister(
    node_id: int, registered: Collection[int], running: Collection[int]
) -> Refusal | None:
    """The refusal to unregister a broker; None if it can be unregistered.

    Kafka also unregisters a running broker, which then serves no partition.
    """
    if node_id not in registered:
        message = f"Broker ID {node_id} is not currently registered"
        return Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    if node_id in running:
        return Refusal(ErrorCode.POLICY_VIOLATION, f"Broker ID {node_id} is running")
    return None
