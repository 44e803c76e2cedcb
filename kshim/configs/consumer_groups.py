"""The properties of groups of the consumer protocol (KIP-848), and what they must be to one another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kshim.configs.java import INT_MAX
from kshim.configs.property import property_field
from kshim.configs.upstream_groups import UpstreamGroupsProperties
from kshim.configs.values import integer, one_of

PROTOCOLS = ("classic", "consumer")
ASSIGNORS = {
    "uniform": "uniform",
    "range": "range",
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}
"""The assignors that there are, by the names with which Kafka is set up."""


def _int(default: int, doc: str, *, low: int = 1, high: int = INT_MAX, kafka_default: str = "") -> int:
    return property_field(default, integer(low, high), doc, kafka_default)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _protocols(text: str) -> str:
    names = _names(text)
    if not set(names) <= {*PROTOCOLS, "share", "streams"} or "classic" not in names:
        raise ValueError("expected classic, or classic,consumer")
    return ",".join(name for name in PROTOCOLS if name in names)


def _assignors(text: str) -> str:
    names = [ASSIGNORS.get(name, "") for name in _names(text)]
    if not names or "" in names or len(set(names)) < len(names):
        raise ValueError("expected uniform, range, or both, comma-separated")
    return ",".join(names)


@dataclass(frozen=True, slots=True, kw_only=True, init=False, eq=False, repr=False)
class ConsumerGroupsProperties(UpstreamGroupsProperties):
    """The part of Config about groups of the consumer protocol."""

    group_coordinator_rebalance_protocols: str = property_field(
        "classic,consumer",
        _protocols,
        "The protocols of groups that are served. Without consumer, consumers with group.protocol=consumer "
        "are refused.",
        "classic,consumer,streams",
    )
    group_consumer_session_timeout_ms: int = _int(
        45000, "After how long a silent member of a consumer group is removed."
    )
    group_consumer_min_session_timeout_ms: int = _int(
        45000, "Smallest consumer.session.timeout.ms that a group may have."
    )
    group_consumer_max_session_timeout_ms: int = _int(
        60000, "Largest consumer.session.timeout.ms that a group may have."
    )
    group_consumer_heartbeat_interval_ms: int = _int(
        5000, "How often members of a consumer group are to send heartbeats."
    )
    group_consumer_min_heartbeat_interval_ms: int = _int(
        5000, "Smallest consumer.heartbeat.interval.ms that a group may have."
    )
    group_consumer_max_heartbeat_interval_ms: int = _int(
        15000, "Largest consumer.heartbeat.interval.ms that a group may have."
    )
    group_consumer_min_assignment_interval_ms: int = _int(
        0, "Smallest consumer.assignment.interval.ms that a group may have.", low=0
    )
    group_consumer_max_assignment_interval_ms: int = _int(
        15000, "Largest consumer.assignment.interval.ms that a group may have.", low=0
    )
    group_consumer_max_size: int = _int(INT_MAX, "Largest number of members of one consumer group.")
    group_consumer_assignors: str = property_field(
        "uniform,range",
        _assignors,
        "The assignors of consumer groups. The first one is used if no member asks for one.",
    )
    group_consumer_migration_policy: str = property_field(
        "bidirectional",
        one_of("bidirectional", "upgrade", "downgrade", "disabled"),
        "Which groups with members change their protocol: to consumer when such a member joins (upgrade), to "
        "classic when only such members remain (downgrade).",
    )
    group_consumer_regex_refresh_interval_ms: int = _int(
        600000,
        "After how long the topics are searched again for those that the members' regular expressions match.",
        low=10000,
    )
    group_consumer_assignment_interval_ms: int = _int(
        0,
        "How long after an assignment a consumer group may compute the next one. With 0, members learn of "
        "every change at once. Kafka's 1000 saves rebalances if many members start together.",
        low=0,
        kafka_default="1000",
    )


def consumer_group_problems(config: ConsumerGroupsProperties) -> Iterator[str]:
    """Faults in how properties are to one another."""
    for name in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"):
        lowest, value, highest = (
            getattr(config, f"group_consumer_{prefix}{name}".replace(".", "_"))
            for prefix in ("min_", "", "max_")
        )
        if not lowest <= value <= highest:
            yield (
                f"group.consumer.{name}={value}: expected at least group.consumer.min.{name}, which is "
                f"{lowest}, and at most group.consumer.max.{name}, which is {highest}"
            )
    session_ms, interval_ms = (
        config.group_consumer_session_timeout_ms,
        config.group_consumer_heartbeat_interval_ms,
    )
    if session_ms <= interval_ms:
        yield (
            f"group.consumer.session.timeout.ms={session_ms}: expected more than "
            f"group.consumer.heartbeat.interval.ms, which is {interval_ms}"
        )
