"""The clients: how each one's driver is started, and what it can and cannot."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

from integration.clients.matrix.building import Command, cargo, go, java, node
from integration.support.toolchain import need

DRIVERS = "integration.clients.matrix.drivers"
FENCED = "test_a_static_member_is_fenced_by_another_of_its_name"
ALL_ASSIGNORS = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})


@dataclass(frozen=True)
class Client:
    """One client library, in the version that is installed."""

    command: Command
    """Without the bootstrap address."""
    assignors: frozenset[str] = field(default=frozenset({"range", "roundrobin"}))
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Why not, by the name of each scenario that asks for what the client does not promise."""
    empty_is_null: bool = False
    """Whether a consumer gives an empty key as null."""
    joins_again: bool = False
    """Whether a member joins its group again when it is sent to another broker, without being asked to."""


def _of_kafka_python() -> frozenset[str]:
    """The sticky one of 2.0 fails in any Python from 3.10 on."""
    ours = ALL_ASSIGNORS - {"cooperative-sticky"}
    return ours - {"sticky"} if version("kafka-python").startswith("2.0.") else ours


def _python(module: str) -> Command:
    return lambda: (sys.executable, "-m", f"{DRIVERS}.{module}")


def _kcat() -> Sequence[str]:
    need("kcat", "setpriv")
    return _python("kcat")()


CLIENTS = {
    "aiokafka": Client(
        _python("aiokafka_client"),
        ALL_ASSIGNORS - {"cooperative-sticky"},
        lacks={FENCED: "two of a name take each other's place again and again"},
    ),
    "confluent-kafka": Client(_python("confluent"), ALL_ASSIGNORS - {"sticky"}),
    "franz-go": Client(go("franz_go"), ALL_ASSIGNORS),
    "kafka-clients-2.1": Client(java("2.1.1", "before_2_5"), ALL_ASSIGNORS - {"cooperative-sticky"}),
    "kafka-clients-2.8": Client(java("2.8.2"), ALL_ASSIGNORS),
    "kafka-clients-3.4": Client(java("3.4.1"), ALL_ASSIGNORS),
    "kafka-clients-3.9": Client(java("3.9.2"), ALL_ASSIGNORS),
    "kafka-clients-4.2": Client(java("4.2.0"), ALL_ASSIGNORS),
    "kafka-clients-4.4": Client(java("4.4.0"), ALL_ASSIGNORS),
    "kafka-go": Client(go("kafka_go"), empty_is_null=True, joins_again=True),
    "kafka-python": Client(
        _python("kafka_python"),
        _of_kafka_python(),
        lacks={
            FENCED: "a fenced member is not told",
            "test_keys_values_headers_and_timestamps": "a record needs a key or a value",
            "test_a_listener_commits_before_partitions_are_given_up": "a commit in a listener does not end",
        },
    ),
    "kafkajs": Client(node("kafkajs"), frozenset({"RoundRobinAssigner"}), joins_again=True),
    "kcat": Client(
        _kcat,
        ALL_ASSIGNORS - {"sticky"},
        lacks={"test_a_thousand_partitions": "a process sends to one partition"},
    ),
    "platformatic": Client(
        node("platformatic"),
        frozenset({"roundrobin"}),
        lacks={
            "test_leaders_move": "tagged fields, which name the new leader, are not read",
            "test_the_coordinator_moves": "a member does not look for its coordinator again",
            "test_a_topic_that_grows": "a member does not look for new partitions",
            "test_records_are_consumed_once_while_members_come_and_go": "a fetch in flight "
            "gives also records of partitions that another member has now",
            FENCED: "a fenced member is not told",
            "test_an_offset_out_of_range_is_reset": "an offset out of range ends the stream",
        },
    ),
    "rdkafka": Client(cargo("rust"), ALL_ASSIGNORS - {"sticky"}, joins_again=True),
    "sarama": Client(go("sarama"), ALL_ASSIGNORS),
}

OLD_SUBSCRIPTIONS = frozenset({"aiokafka", "kafka-clients-2.1", "kafka-python"})


@dataclass(frozen=True)
class Mismatch:
    """Clients whose members do not settle in one group, with any broker."""

    client: str
    others: frozenset[str]
    assignors: frozenset[str]
    why: str


STRICT = frozenset({"confluent-kafka", "kafka-clients-4.2", "kafka-clients-4.4", "rdkafka"})
CUT_SHORT = "its subscriptions are cut short"
MISMATCHES = (
    Mismatch("kafka-go", STRICT, ALL_ASSIGNORS, CUT_SHORT),
    Mismatch("platformatic", STRICT, ALL_ASSIGNORS, CUT_SHORT),
    Mismatch("sarama", OLD_SUBSCRIPTIONS, frozenset({"sticky"}), "a sticky group of both does not settle"),
)


def common_assignors(one: str, other: str) -> tuple[list[str], str]:
    """The assignors with which members of both clients can share a group, and why not more."""
    common = CLIENTS[one].assignors & CLIENTS[other].assignors
    why = "" if common else "no common assignor"
    for mismatch in MISMATCHES:
        if any(a == mismatch.client and b in mismatch.others for a, b in ((one, other), (other, one))):
            common, why = common - mismatch.assignors, mismatch.why
    return sorted(common), why
