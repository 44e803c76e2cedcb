"""One setting of a group that a plan predicts: its protocol, its timeouts, its client and its broker."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple


class Protocol(StrEnum):
    """How members share the partitions."""

    EAGER = "eager"
    """Classic: all members give up all partitions in each rebalance."""
    COOPERATIVE = "cooperative"
    """Classic: members keep what stays theirs; what moves takes a second rebalance (KIP-429)."""
    CONSUMER = "consumer"
    """The consumer protocol: the broker assigns, without a stop of all members (KIP-848)."""


class BrokerKind(StrEnum):
    """Whose coordinator is modelled."""

    KAFKA = "kafka"
    KSHIM = "kshim"
    """It answers heartbeats as soon as there is something to say."""


class ClientKind(StrEnum):
    """Whose members are modelled."""

    JAVA = "kafka-clients"
    PYTHON = "kafka-python"
    LIBRDKAFKA = "librdkafka"


ASSIGNORS: Final[Mapping[Protocol, tuple[str, ...]]] = {
    Protocol.EAGER: ("range", "roundrobin"),
    Protocol.COOPERATIVE: ("cooperative-sticky",),
    Protocol.CONSUMER: ("uniform", "range"),
}
"""The assignors by protocol; the first one is used if no other is named."""
SERVES: Final[Mapping[ClientKind, frozenset[Protocol]]] = {
    ClientKind.JAVA: frozenset(Protocol),
    ClientKind.PYTHON: frozenset({Protocol.EAGER}),
    ClientKind.LIBRDKAFKA: frozenset(Protocol),
}
"""The protocols that a client implements."""
CLASSIC_HEARTBEAT_MS = 3_000
"""heartbeat.interval.ms of all clients."""
CONSUMER_HEARTBEAT_MS = 5_000
"""group.consumer.heartbeat.interval.ms of Apache Kafka."""
SHORTEST_INTERVAL_MS = 100
"""The shortest interval between heartbeats that can be planned with."""
INITIAL_DELAY_MS: Final[Mapping[BrokerKind, int]] = {BrokerKind.KAFKA: 3_000, BrokerKind.KSHIM: 0}
"""group.initial.rebalance.delay.ms by broker, if it is not set."""
ASSIGNMENT_INTERVAL_MS: Final[Mapping[BrokerKind, int]] = {BrokerKind.KAFKA: 1_000, BrokerKind.KSHIM: 0}
"""group.consumer.assignment.interval.ms by broker."""


class Setting(NamedTuple):
    """What one row of the plan is about. Times are in ms; the defaults are those of Apache Kafka 4.4."""

    name: str
    protocol: Protocol = Protocol.EAGER
    is_static: bool = False
    """True if each member has a group.instance.id that outlives its restarts (KIP-345)."""
    assignor: str = ""
    """Empty: the first one of the protocol."""
    client: ClientKind = ClientKind.JAVA
    broker: BrokerKind = BrokerKind.KAFKA
    session_ms: int = 45_000
    heartbeat_ms: int | None = None
    """None: the default of the client or, with the consumer protocol, of the broker."""
    rebalance_ms: int = 300_000
    """max.poll.interval.ms, which is the rebalance timeout."""
    initial_delay_ms: int | None = None
    """group.initial.rebalance.delay.ms; None: the default of the broker."""
    processing_ms: int = 0
    """How long the program works on what one poll returns. It joins and gives up only in poll()."""
    latency_ms: int = 1
    """How long a request, or an answer, takes through the network."""

    @property
    def chosen_assignor(self) -> str:
        """The assignor that is used."""
        return self.assignor or ASSIGNORS[self.protocol][0]

    @property
    def interval_ms(self) -> int:
        """The interval between heartbeats that is set, or the default."""
        default_ms = CONSUMER_HEARTBEAT_MS if self.protocol is Protocol.CONSUMER else CLASSIC_HEARTBEAT_MS
        return default_ms if self.heartbeat_ms is None else self.heartbeat_ms

    @property
    def delay_ms(self) -> int:
        """group.initial.rebalance.delay.ms."""
        return INITIAL_DELAY_MS[self.broker] if self.initial_delay_ms is None else self.initial_delay_ms

    def fault(self) -> str | None:
        """What is wrong with these values together; None if nothing is."""
        if self.chosen_assignor not in ASSIGNORS[self.protocol]:
            right = " or ".join(ASSIGNORS[self.protocol])
            return f"assignor={self.assignor} is none of {self.protocol} members: use {right}"
        if self.protocol not in SERVES[self.client]:
            able = " or ".join(each for each in ClientKind if self.protocol in SERVES[each])
            return f"client={self.client} has no {self.protocol} members: use {able}"
        if self.interval_ms < SHORTEST_INTERVAL_MS:
            return f"heartbeat={self.interval_ms}ms is too short: use {SHORTEST_INTERVAL_MS}ms or more"
        if self.interval_ms * 2 > self.session_ms:
            return (
                f"a session of {self.session_ms} ms is too short for heartbeats every {self.interval_ms} ms: "
                f"use session={self.interval_ms * 3}ms or more, or a shorter heartbeat"
            )
        if self.processing_ms >= self.rebalance_ms:
            return (
                f"processing takes {self.processing_ms} ms, and max-poll={self.rebalance_ms}ms would end the "
                "member: use a longer max-poll"
            )
        return None
