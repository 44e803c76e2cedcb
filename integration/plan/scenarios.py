"""The deployments that are played with real clients and predicted, and the servers' settings.

Intervals and sessions are long, so that they, and not the machine, decide how long partitions have no owner.
Every member is restarted, and then one is killed. Each happens well between two heartbeats: the deployment
begins at the same time after the last rebalance in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from kshim.plan.deployment import Act, Deployment, Kind
from kshim.plan.run import Predicted, predicted
from kshim.plan.setting import BrokerKind, ClientKind, Protocol, Setting

MEMBERS, PARTITIONS = 4, 12
HEARTBEAT_MS, SESSION_MS = 10_000, 25_000
CONSUMER_HEARTBEAT_MS = 5_000
"""The interval of members of the consumer protocol: a change takes two at most, less than EVERY_MS."""
FIRST_MS, EVERY_MS, DOWN_MS = 7_000, 30_000, 8_000
"""The first member is closed half an interval before a heartbeat, and each starts three seconds after one."""
CALM_MS = 8_000
"""The deployment begins when nothing has changed for so long, in ms."""
CRASH_MS = FIRST_MS + MEMBERS * EVERY_MS - 2_000
DURATION_MS = CRASH_MS + SESSION_MS + 2 * HEARTBEAT_MS
SEEDS = 40

DEPLOYMENT: Final = Deployment(
    MEMBERS,
    (
        *(
            Act(FIRST_MS + slot * EVERY_MS + after_ms, kind, slot)
            for slot in range(MEMBERS)
            for after_ms, kind in ((0, Kind.CLOSE), (DOWN_MS, Kind.START))
        ),
        Act(CRASH_MS, Kind.CRASH, 1),
    ),
)
PROPERTIES: Final = {
    "group.min.session.timeout.ms": 6_000,
    "group.consumer.min.session.timeout.ms": 6_000,
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.min.heartbeat.interval.ms": 1_000,
}


class Place(StrEnum):
    """A server whose groups are measured."""

    APACHE = "Apache Kafka 4.4"
    LIKE_KAFKA = "kshim like Kafka"
    KSHIM = "kshim"

    @property
    def broker(self) -> BrokerKind:
        """The broker that the plan plays for this place."""
        return BrokerKind.KSHIM if self is Place.KSHIM else BrokerKind.KAFKA


OF_KAFKA: Final = {
    **PROPERTIES,
    "group.consumer.heartbeat.interval.ms": CONSUMER_HEARTBEAT_MS,
    "group.initial.rebalance.delay.ms": 3_000,
    "group.consumer.assignment.interval.ms": 1_000,
}
OF_PLACE: Final = {
    Place.APACHE: {**OF_KAFKA, "broker.session.timeout.ms": 30_000},
    Place.LIKE_KAFKA: {**OF_KAFKA, "group.heartbeat.park.enable": "false"},
    Place.KSHIM: PROPERTIES,
}
"""The servers' properties."""


class Scenario(NamedTuple):
    """One group."""

    client: ClientKind
    protocol: Protocol
    place: Place
    is_static: bool = False
    groups: int = 1
    """How many groups are measured. Where two requests race, or it matters whether a heartbeat of each member
    is at the server, one group may be far from the mean.
    """

    @property
    def name(self) -> str:
        """A name for the group and its topic."""
        static = "-static" if self.is_static else ""
        return f"{self.place.name.lower()}-{self.client}-{self.protocol}{static}"

    @property
    def title(self) -> str:
        """The name, for people."""
        return f"{self.place}, {self.client}, {'static ' if self.is_static else ''}{self.protocol}"

    @property
    def setting(self) -> Setting:
        """The setting with which the group is played and predicted."""
        interval_ms = CONSUMER_HEARTBEAT_MS if self.protocol is Protocol.CONSUMER else HEARTBEAT_MS
        return Setting(
            self.name,
            self.protocol,
            self.is_static,
            client=self.client,
            broker=self.place.broker,
            session_ms=SESSION_MS,
            heartbeat_ms=None if self.place is Place.KSHIM else interval_ms,
        )

    def predict(self) -> Predicted:
        """Predict this scenario with the plan: the mean of SEEDS runs."""
        return predicted(self.setting, [DEPLOYMENT] * SEEDS, DURATION_MS, PARTITIONS, calm_ms=CALM_MS)


PYTHON, LIBRDKAFKA = ClientKind.PYTHON, ClientKind.LIBRDKAFKA
EAGER, COOPERATIVE, CONSUMER = Protocol.EAGER, Protocol.COOPERATIVE, Protocol.CONSUMER
SCENARIOS: Final[Sequence[Scenario]] = (
    Scenario(PYTHON, EAGER, Place.APACHE),
    Scenario(PYTHON, EAGER, Place.APACHE, is_static=True),
    Scenario(LIBRDKAFKA, EAGER, Place.APACHE),
    Scenario(LIBRDKAFKA, COOPERATIVE, Place.APACHE, groups=2),
    Scenario(LIBRDKAFKA, CONSUMER, Place.APACHE),
    Scenario(PYTHON, EAGER, Place.LIKE_KAFKA),
    Scenario(PYTHON, EAGER, Place.LIKE_KAFKA, is_static=True),
    Scenario(LIBRDKAFKA, EAGER, Place.LIKE_KAFKA),
    Scenario(LIBRDKAFKA, COOPERATIVE, Place.LIKE_KAFKA, groups=2),
    Scenario(LIBRDKAFKA, CONSUMER, Place.LIKE_KAFKA),
    Scenario(LIBRDKAFKA, EAGER, Place.KSHIM, groups=5),
    Scenario(LIBRDKAFKA, COOPERATIVE, Place.KSHIM, groups=2),
    Scenario(LIBRDKAFKA, CONSUMER, Place.KSHIM),
)
