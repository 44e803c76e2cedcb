"""Metadata of one topic, of all topics, of topics by a pattern, and of the cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from integration.clients.confluent.python.clients import ANSWER_S, name_of, needs, poll_until, receive, send
from integration.support.awaiting import wait_until
from integration.support.server import Server

SOON = {"topic.metadata.refresh.interval.ms": 200, "metadata.max.age.ms": 1000}
"""How often a consumer looks for new topics."""


@pytest.fixture
def consumer(new_consumer: Callable[..., Consumer]) -> Consumer:
    return new_consumer()


def test_all_topics_are_listed(
    broker: Server, admin: AdminClient, consumer: Consumer, producer: Producer, new_topic: Callable[..., str]
) -> None:
    topics = {new_topic(3, suffix="-three"): 3, new_topic(1, suffix="-one"): 1}
    for listed in (
        admin.list_topics(timeout=ANSWER_S),
        consumer.list_topics(timeout=ANSWER_S),
        producer.list_topics(timeout=ANSWER_S),
    ):
        assert listed.cluster_id
        assert listed.controller_id == 1
        assert [(b.id, b.host, b.port) for b in listed.brokers.values()] == [(1, broker.host, broker.port)]
        for name, count in topics.items():
            found = listed.topics[name]
            assert (found.topic, found.error) == (name, None)
            assert {
                (p.id, p.leader, tuple(p.replicas), tuple(p.isrs), p.error) for p in found.partitions.values()
            } == {(index, 1, (1,), (1,), None) for index in range(count)}
        assert [topic.error for topic in listed.topics.values() if topic.error] == []


def test_one_topic_is_listed_alone(
    admin: AdminClient, consumer: Consumer, producer: Producer, new_topic: Callable[..., str]
) -> None:
    name = new_topic(2)
    for listed in (
        admin.list_topics(name, timeout=ANSWER_S),
        consumer.list_topics(name, timeout=ANSWER_S),
        producer.list_topics(name, ANSWER_S),
    ):
        assert {topic.topic: len(topic.partitions) for topic in listed.topics.values()} == {name: 2}


def test_a_consumer_makes_no_topic_by_asking(
    admin: AdminClient, consumer: Consumer, topic: str, new_topic: Callable[..., str]
) -> None:
    for _ in range(2):  # the second time shows that the first has not created it
        found = consumer.list_topics(topic, timeout=ANSWER_S).topics[topic]
        assert (name_of(found.error), found.partitions) == ("UNKNOWN_TOPIC_OR_PART", {})
    assert topic not in admin.list_topics(timeout=ANSWER_S).topics


@pytest.mark.parametrize("kind", [AdminClient, Producer])
def test_others_make_a_topic_by_asking(
    kind: type[AdminClient | Producer], broker: Server, admin: AdminClient, topic: str
) -> None:
    client: Any = kind({"bootstrap.servers": broker.bootstrap})
    first = client.list_topics(topic, timeout=ANSWER_S).topics[topic]
    assert first.error is None or name_of(first.error) == "UNKNOWN_TOPIC_OR_PART"  # the second: Kafka's
    wait_until(
        lambda: len(client.list_topics(topic, timeout=ANSWER_S).topics[topic].partitions) == 1,
        ANSWER_S,
        "the topic was made",
    )
    assert topic in admin.list_topics(timeout=ANSWER_S).topics


def test_a_name_that_no_topic_can_have(consumer: Consumer, producer: Producer) -> None:
    for listed in (consumer.list_topics("a b", timeout=ANSWER_S), producer.list_topics("a b", ANSWER_S)):
        assert name_of(listed.topics["a b"].error) == "TOPIC_EXCEPTION"


@needs("cluster_id")
def test_the_cluster_has_one_id(admin: AdminClient, consumer: Consumer, producer: Producer) -> None:
    cluster_id = admin.list_topics(timeout=ANSWER_S).cluster_id
    assert cluster_id
    assert admin.cluster_id(timeout=ANSWER_S) == cluster_id
    assert consumer.cluster_id(timeout=ANSWER_S) == cluster_id
    assert producer.cluster_id(timeout=ANSWER_S) == cluster_id


def test_a_pattern_finds_topics_that_come_and_loses_those_that_go(
    admin: AdminClient,
    producer: Producer,
    new_consumer: Callable[..., Consumer],
    new_topic: Callable[..., str],
    group_id: str,
) -> None:
    first, other = new_topic(2, suffix="-foo-1"), new_topic(1, suffix="-bar")
    consumer = new_consumer(group_id, **SOON)
    consumer.subscribe([f"^{first.removesuffix('1')}.*"])

    def assigned() -> set[tuple[str, int]]:
        return {(partition.topic, partition.partition) for partition in consumer.assignment()}

    two = {(first, 0), (first, 1)}
    poll_until(lambda: assigned() == two, consumer, what="the topic that was there")
    send(producer, first, b"1", partition=1)
    send(producer, other, b"not for us")
    assert [message.value() for message in receive(consumer, 1)] == [b"1"]
    consumer.commit(asynchronous=False)

    second = new_topic(1, suffix="-foo-2")
    poll_until(lambda: assigned() == {*two, (second, 0)}, consumer, what="the topic that came later")
    send(producer, second, b"2")
    assert [message.value() for message in receive(consumer, 1)] == [b"2"]

    admin.delete_topics([second])[second].result(ANSWER_S)
    poll_until(lambda: assigned() == two, consumer, what="the topic that is gone")


def test_two_patterns_and_a_name(
    producer: Producer, new_consumer: Callable[..., Consumer], new_topic: Callable[..., str], group_id: str
) -> None:
    names = {new_topic(suffix=suffix) for suffix in ("-a1", "-a2", "-b1", "-c1")}
    stem = min(names).removesuffix("-a1")
    consumer = new_consumer(group_id, **SOON)
    consumer.subscribe([f"^{stem}-a[0-9]$", f"^{stem}-b.*", f"{stem}-c1"])
    poll_until(
        lambda: {partition.topic for partition in consumer.assignment()} == names, consumer, what="all four"
    )
    for name in names:
        send(producer, name, name)
    assert {message.topic() for message in receive(consumer, 4)} == names


def test_statistics_name_the_broker(broker: Server) -> None:
    """AdminClient's poll() calls the statistics callback."""
    told: list[str] = []
    admin = AdminClient(
        {"bootstrap.servers": broker.bootstrap, "statistics.interval.ms": 50, "stats_cb": told.append}
    )
    admin.list_topics(timeout=ANSWER_S)

    def named() -> bool:
        admin.poll(0.1)
        return any(f"{broker.bootstrap}/1" in json.loads(text)["brokers"] for text in told)

    wait_until(named, ANSWER_S, lambda: told[-1])
