"""librdkafka's consumers with group.protocol=consumer (KIP-848), unmodified."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server

TIMEOUT_S = 30
NewConsumer = Callable[..., Any]


@pytest.fixture
def topic(own_server: Server) -> str:
    with contextlib.closing(Admin(own_server.bootstrap)) as admin:
        admin.create_topic("orders", 6)
    return "orders"


@pytest.fixture
def consumer(own_server: Server) -> Iterator[NewConsumer]:
    """consumer(**settings): a member of the group `readers`."""
    made: list[Any] = []

    def new(**settings: str) -> Any:
        here = {
            "bootstrap.servers": own_server.bootstrap,
            "group.id": "readers",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
        }
        made.append(Consumer(here | {name.replace("_", "."): value for name, value in settings.items()}))
        return made[-1]

    yield new
    for each in made:
        each.close()


def wait_until_assigned(consumers: list[Any], counts: list[int]) -> None:
    def is_assigned() -> bool:
        for each in consumers:
            each.poll(0.02)
        return [len(each.assignment()) for each in consumers] == counts

    wait_until(is_assigned, TIMEOUT_S, "an assignment")


def test_members_share_the_partitions(own_server: Server, topic: str, consumer: NewConsumer) -> None:
    one, two = consumer(), consumer()
    one.subscribe([topic])
    wait_until_assigned([one], [6])
    two.subscribe([topic])
    wait_until_assigned([one, two], [3, 3])
    admin = AdminClient({"bootstrap.servers": own_server.bootstrap})
    described = admin.describe_consumer_groups(["readers"])["readers"].result()
    assert (described.state, described.type) == (ConsumerGroupState.STABLE, ConsumerGroupType.CONSUMER)
    assert sorted(len(each.assignment.topic_partitions) for each in described.members) == [3, 3]
    two.close()
    wait_until_assigned([one], [6])


def test_commits_are_kept(own_server: Server, topic: str, consumer: NewConsumer) -> None:
    producer = Producer({"bootstrap.servers": own_server.bootstrap})
    producer.produce(topic, b"first", partition=0)
    assert producer.flush(TIMEOUT_S) == 0
    one = consumer()
    one.subscribe([topic])
    message = wait_until(lambda: one.poll(0.1), TIMEOUT_S, "a record")
    assert message.value() == b"first"
    one.commit(asynchronous=False)
    one.close()
    producer.produce(topic, b"second", partition=0)
    assert producer.flush(TIMEOUT_S) == 0
    two = consumer()
    two.subscribe([topic])
    assert wait_until(lambda: two.poll(0.1), TIMEOUT_S, "a record").value() == b"second"


def test_an_expression(topic: str, consumer: NewConsumer) -> None:
    one = consumer()
    one.subscribe(["^ord.*"])
    wait_until_assigned([one], [6])


def test_a_static_member_comes_back(topic: str, consumer: NewConsumer) -> None:
    one = consumer(group_instance_id="i")
    one.subscribe([topic])
    wait_until_assigned([one], [6])
    one.close()
    two = consumer(group_instance_id="i")
    two.subscribe([topic])
    wait_until_assigned([two], [6])


def test_members_go_on_after_a_restart(own_server: Server, topic: str, consumer: NewConsumer) -> None:
    one, two = consumer(), consumer()
    for each in (one, two):
        each.subscribe([topic])
    wait_until_assigned([one, two], [3, 3])
    own_server.kill()
    own_server.start()
    for each in (one, two):
        # librdkafka cannot say that it leaves while it has no connection: wait until it has.
        owned = [TopicPartition(p.topic, p.partition, 0) for p in each.assignment()]
        each.commit(offsets=owned, asynchronous=False)
    wait_until_assigned([one, two], [3, 3])
    two.close()
    wait_until_assigned([one], [6])


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_consumers_of_both_protocols_share_a_group(
    own_server: Server, topic: str, consumer: NewConsumer, strategy: str
) -> None:
    """The group changes its protocol with its members, while they consume."""
    admin = AdminClient({"bootstrap.servers": own_server.bootstrap})

    def protocol() -> ConsumerGroupType:
        return admin.describe_consumer_groups(["readers"])["readers"].result().type

    old = consumer(group_protocol="classic", partition_assignment_strategy=strategy)
    old.subscribe([topic])
    wait_until_assigned([old], [6])
    new = consumer()
    new.subscribe([topic])
    wait_until_assigned([old, new], [3, 3])
    assert protocol() == ConsumerGroupType.CONSUMER
    another = consumer(group_protocol="classic", partition_assignment_strategy=strategy)
    another.subscribe([topic])
    wait_until_assigned([old, new, another], [2, 2, 2])
    new.close()
    wait_until_assigned([old, another], [3, 3])
    assert protocol() == ConsumerGroupType.CLASSIC
