"""The upstream's ACLs and quotas are each client's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from integration.apache_kafka.nodes import Nodes
from integration.clients.security.cells import MECHANISMS, USER
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.upstream.may import only_sees, writes_and_reads
from integration.upstream.passed_logins import (
    NODES,
    NewDriver,
    Passing,
    allow,
    log_in,
    of_librdkafka,
)
from integration.upstream.secured import BOB
from kshim.cluster.acl import AclOperation, AclResource
from kshim.testing.wire import Wire
from schemas.error_code import ErrorCode
from schemas.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

ANSWER_S = 60
WAYS = {"LOGIN": "CLEAR", "LOGINTLS": "SECRET"}
"""kshim's listener that is tried in front of each listener of the upstream."""
JAVA = "kafka-clients-4.4"

TRIED = [
    (client, listener, mechanism)
    for client in ("kafka-python", "confluent-kafka", JAVA)
    for listener in WAYS
    for mechanism in MECHANISMS
    if client != JAVA or mechanism in ("SCRAM-SHA-256", "OAUTHBEARER")
]


@pytest.mark.parametrize(("client", "listener", "mechanism"), TRIED)
def test_the_upstreams_acls_decide(
    client: str,
    listener: str,
    mechanism: str,
    through: Callable[[str], Passing],
    new_driver: NewDriver,
    orders: str,
) -> None:
    """USER writes to the leaders at both nodes and reads in a group; BOB may do neither."""
    kshim = through(listener)
    writes_and_reads(new_driver(client, kshim, WAYS[listener], mechanism), orders, kshim.server.report)
    only_sees(new_driver(client, kshim, WAYS[listener], mechanism, user=BOB), orders)


def test_groups_are_seen_by_those_who_may(kshim: Passing, orders: str) -> None:
    group = f"g-{orders}"
    consumer = Consumer(of_librdkafka(kshim) | {"group.id": group})
    (committed,) = consumer.commit(offsets=[TopicPartition(orders, 0, 7)], asynchronous=False)
    assert committed.error is None
    consumer.close()
    fetch = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=None),))

    def seen(user: str) -> tuple[set[str], int, int, list[int]]:
        listed: set[str] = set()
        for node in range(NODES):
            with kshim.wire(node=node) as wire:
                log_in(wire, user)
                listed |= {each.group_id for each in wire.ask(4, ListGroupsRequest()).groups}
                (described,) = wire.ask(5, DescribeGroupsRequest(groups=(group,))).groups
                (fetched,) = wire.ask(9, fetch).groups
        offsets = [each.committed_offset for topic in fetched.topics for each in topic.partitions]
        return {each for each in listed if each == group}, described.error_code, fetched.error_code, offsets

    denied = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert seen(USER) == ({group}, 0, 0, [7])
    assert seen(BOB) == (set(), denied, denied, [])


def test_a_right_that_is_given_counts_soon(nodes: Nodes, kshim: Passing) -> None:
    request = HeartbeatRequest(group_id="later", generation_id=1, member_id="m")
    with kshim.wire() as wire:
        log_in(wire)
        assert wire.ask(4, request).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        allow(nodes.servers[1], (USER, AclResource.GROUP, "later", AclOperation.READ))
        wait_until(lambda: wire.ask(4, request).error_code == ErrorCode.UNKNOWN_MEMBER_ID, 20, "the right")


def test_an_expression_matches_what_a_member_may_describe(nodes: Nodes, kshim: Passing, orders: str) -> None:
    """KIP-848: names of other topics are not told. New topics come by themselves."""
    admin = Admin(nodes.servers[1].bootstrap)
    admin.create_topic(f"secret-{orders}", 1)
    options = {"group.id": f"g-{orders}", "group.protocol": "consumer", "auto.offset.reset": "earliest"}
    consumer = Consumer(of_librdkafka(kshim) | options)
    consumer.subscribe([f"^.*{orders}.*"])

    def topics() -> set[str]:
        consumer.poll(0.1)
        return {each.topic for each in consumer.assignment()}

    wait_until(lambda: topics() == {orders}, ANSWER_S, kshim.server.report)
    admin.create_topic(f"{orders}-more", 1)
    admin.create_topic(f"secret-{orders}-more", 1)
    admin.close()
    wait_until(lambda: topics() == {orders, f"{orders}-more"}, ANSWER_S, kshim.server.report)
    consumer.close()


def test_offsets_in_transactions(kshim: Passing, orders: str) -> None:
    """USER's transaction commits an offset; BOB, who may use the transactional id, may not use the group."""
    group = f"g-{orders}"
    consumer = Consumer(of_librdkafka(kshim) | {"group.id": group})
    offsets = [TopicPartition(orders, 0, 5)]

    def transact(user: str) -> None:
        producer = Producer(of_librdkafka(kshim, user=user) | {"transactional.id": f"{orders}-{user}"})
        producer.init_transactions(ANSWER_S)
        producer.begin_transaction()
        if user == USER:
            producer.produce(orders, b"x", partition=1)
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), ANSWER_S)
        producer.commit_transaction(ANSWER_S)

    transact(USER)
    (committed,) = consumer.committed([TopicPartition(orders, 0)], ANSWER_S)
    assert committed.offset == 5
    with pytest.raises(KafkaException) as refused:
        transact(BOB)
    assert refused.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    consumer.close()


def test_quotas_of_the_upstream_are_a_users(nodes: Nodes, kshim: Passing, orders: str) -> None:
    entity = (EntityData(entity_type="user", entity_name=USER),)
    first = nodes.servers[1]

    def alter(**op: Any) -> None:
        ops = (OpData(key="producer_byte_rate", **op),)
        with Wire(first.host, first.port) as wire:
            request = AlterClientQuotasRequest(entries=(RequestEntryData(entity=entity, ops=ops),))
            assert not wire.ask(1, request).entries[0].error_code

    throttled: list[float] = []
    told = {"throttle_cb": lambda event: throttled.append(event.throttle_time)}
    producer = Producer(of_librdkafka(kshim) | told)
    alter(value=1000.0)
    try:

        def is_throttled() -> bool:
            producer.produce(orders, b"x" * 5000, partition=0)
            producer.flush(5)
            return bool(throttled)

        wait_until(is_throttled, ANSWER_S, "a quota of the user")
    finally:
        alter(value=0.0, remove=True)
