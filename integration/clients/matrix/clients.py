"""The clients: how each one's driver is started, and what it can and cannot."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version

from integration.clients.matrix.building import Command, cargo, go, java, node
from integration.clients.matrix.driver import CLASSIC, CONSUMER
from integration.support.toolchain import need

DRIVERS = "integration.clients.matrix.drivers"
FENCED = "test_a_static_member_is_fenced_by_another_of_its_name"
ALL_ASSIGNORS = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})
SERVER_ASSIGNORS = frozenset({"range", "uniform"})
OF_CLASSIC_GROUPS = {
    FENCED: "with the consumer protocol the second one is refused",
    "test_a_static_member_comes_back_without_a_rebalance": "with the consumer protocol it must be closed",
}
SINCE_4_0 = ("since_2_5", "since_4_0")


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
    protocol: str = CLASSIC
    """Its members' group.protocol."""
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
    "kafka-clients-2.1": Client(
        java("2.1.1", "before_2_5", "before_4_0"), ALL_ASSIGNORS - {"cooperative-sticky"}
    ),
    "kafka-clients-2.8": Client(java("2.8.2"), ALL_ASSIGNORS),
    "kafka-clients-3.4": Client(java("3.4.1"), ALL_ASSIGNORS),
    "kafka-clients-3.9": Client(java("3.9.2"), ALL_ASSIGNORS),
    "kafka-clients-4.2": Client(java("4.2.0", *SINCE_4_0), ALL_ASSIGNORS),
    "kafka-clients-4.4": Client(java("4.4.0", *SINCE_4_0), ALL_ASSIGNORS),
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
        frozenset({"roundrobin", "cooperative-sticky"}),
        lacks={
            "test_a_topic_that_grows": "a member does not look for new partitions",
            FENCED: "a fenced member is not told",
        },
    ),
    "rdkafka": Client(cargo("rust"), ALL_ASSIGNORS - {"sticky"}, joins_again=True),
    "sarama": Client(
        go("sarama"),
        ALL_ASSIGNORS,
        lacks={
            "test_a_new_cooperative_member_is_given_nothing_first": "a cooperative rebalance calls nobody",
        },
    ),
}

CLIENTS |= {
    f"{name}-{CONSUMER}": replace(
        CLIENTS[name], protocol=CONSUMER, assignors=SERVER_ASSIGNORS, lacks=OF_CLASSIC_GROUPS
    )
    for name in ("confluent-kafka", "franz-go", "kafka-clients-4.4")
}
"""The clients of the consumer protocol once more, with it."""
CLIENTS["franz-go-consumer"] = replace(
    CLIENTS["franz-go-consumer"],
    lacks={
        **OF_CLASSIC_GROUPS,
        "test_a_static_member_that_was_closed_has_its_partitions_again": "it leaves without its instance id, "
        "which is refused",
    },
)

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
    Mismatch("sarama", OLD_SUBSCRIPTIONS, frozenset({"sticky"}), "a sticky group of both does not settle"),
)


def common_assignors(one: str, other: str) -> tuple[list[tuple[str, str]], str]:
    """The assignors of both clients with which their members can share a group, and why not more.

    In a group of both protocols the server assigns, whatever assignor the classic members have.
    """
    ours, theirs = CLIENTS[one], CLIENTS[other]
    if ours.protocol != theirs.protocol:
        return [(a, b) for a in sorted(ours.assignors) for b in sorted(theirs.assignors)], ""
    common = ours.assignors & theirs.assignors
    why = "" if common else "no common assignor"
    for mismatch in MISMATCHES:
        if any(a == mismatch.client and b in mismatch.others for a, b in ((one, other), (other, one))):
            common, why = common - mismatch.assignors, mismatch.why
    return [(each, each) for each in sorted(common)], why
