"""A broker with a cordoned directory takes no new replicas; the texts are Apache Kafka 4.4's."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshim.answering import Broker
from kshim.cluster import NewTopic, Refusal
from kshim.cluster.leaders import reassign
from schemas.error_code import ErrorCode
from tests.api.configs import BROKER, DELETE, SET, alter
from tests.api.harness import create, new_broker, result

CORDONED = "cordoned.log.dirs"
DONE = [(ErrorCode.NONE, None)]
NOT_KNOWN = "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or log.dir. "


def three_brokers(**config: str) -> Broker:
    return new_broker(brokers=3, node_id=1, offsets_topic_num_partitions=1, **config)


def cordon(broker: Broker, value: str) -> None:
    assert alter(broker, (BROKER, "1", [(CORDONED, SET, value)])) == DONE


def made(broker: Broker, new: NewTopic) -> object:
    """The replicas of the topic's partitions, or why it cannot be created."""
    (outcome,) = result(broker.cluster.create_topics([new])).values()
    if isinstance(outcome, Refusal):
        return outcome
    return [partition.replicas for partition in outcome.partitions]


def test_new_replicas_are_placed_on_other_brokers() -> None:
    broker = three_brokers(log_dirs=":memory:")
    cordon(broker, ":memory:")
    assert broker.cluster.cordoned == {1}
    assert made(broker, NewTopic("two", 4, 2)) in ([(2, 3), (3, 2)] * 2, [(3, 2), (2, 3)] * 2)
    assert made(broker, NewTopic("three", 1, 3)) == Refusal(
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached "
        "because only 2 broker(s) are registered or some brokers have all their log directories cordoned.",
    )


def test_replicas_are_neither_assigned_nor_moved_there() -> None:
    broker = three_brokers(log_dirs=":memory:")
    topic = create(broker, "t", 1)
    cordon(broker, "*")
    refusal = Refusal(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes broker 1, but all its log directories are cordoned.",
    )
    assert made(broker, NewTopic("assigned", assignments=[(0, [2, 1])])) == refusal
    assert result(broker.cluster.add_partitions("t", 2, [[1]])) == refusal
    assert result(reassign(broker.cluster, [(("t", 0), [1])])) == [(("t", 0), refusal)]
    assert broker.cluster.topics["t"] == topic
    assert alter(broker, (BROKER, "1", [(CORDONED, DELETE, None)])) == DONE
    assert made(broker, NewTopic("assigned", assignments=[(0, [2, 1])])) == [(2, 1)]


def test_without_another_broker_nothing_is_created() -> None:
    broker = new_broker()
    create(broker, "t", 1)
    cordon(broker, "*")
    fault = "All brokers are currently fenced, or have all their log directories cordoned."
    assert made(broker, NewTopic("new", 1, 1)) == Refusal(
        ErrorCode.INVALID_REPLICATION_FACTOR, f"Unable to replicate the partition 1 time(s): {fault}"
    )
    assert result(broker.cluster.add_partitions("t", 2)) == Refusal(
        ErrorCode.INVALID_REPLICATION_FACTOR, fault
    )


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("/nowhere", f"{NOT_KNOWN}Missing entries : /nowhere"),
        ("/b, {here} ,/a", f"{NOT_KNOWN}Missing entries : /b, /a"),
        (
            "{here},*",
            "requirement failed: When cordoned.log.dirs is set to *, it must not contain other values",
        ),
        ("*,*", "Configuration 'cordoned.log.dirs' values must not be duplicated."),
        ("{here},", "Configuration 'cordoned.log.dirs' values must not be empty."),
    ],
)
def test_refused_values(value: str, fault: str, tmp_path: Path) -> None:
    broker = new_broker(log_dirs=str(tmp_path))
    change = BROKER, "1", [(CORDONED, SET, value.format(here=tmp_path))]
    assert alter(broker, change) == [(ErrorCode.INVALID_REQUEST, fault)]


def test_it_is_not_set_for_all_brokers() -> None:
    fault = (
        "Cannot update these configs at default cluster level, broker id must be specified: "
        "[cordoned.log.dirs]"
    )
    assert alter(new_broker(), (BROKER, "", [(CORDONED, SET, "*")])) == [(ErrorCode.INVALID_REQUEST, fault)]
