"""kshim in front of three nodes of Apache Kafka: one is killed while clients stay."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest
from kafka import TopicPartition

from integration.apache_kafka.nodes import Nodes
from integration.support.awaiting import wait_until
from integration.support.clients import Admin, new_consumer, new_producer, offset_and_metadata, until_served
from integration.support.server import Server
from kshim.testing.wire import Wire
from schemas.error_code import ErrorCode
from schemas.messages.describe_cluster import DescribeClusterRequest
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.metadata import MetadataRequest

GONE_S = 60


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, class_path: str) -> Iterator[Nodes]:
    three = ("--set", "offsets.topic.replication.factor=3", "--set", "default.replication.factor=3")
    nodes = Nodes(tmp_path_factory.mktemp("upstream"), 3, *three).start()
    yield nodes
    nodes.kill()


@pytest.fixture(scope="module")
def kshim(nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data_dir = tmp_path_factory.mktemp("kshim") / "data"
    server = Server(data_dir, ["--upstream", nodes.bootstrap]).start()
    yield server
    server.kill()


def ports(kshim: Server) -> dict[int, int]:
    """The port of each broker, by node id."""
    kept = json.loads((kshim.data_dir / "upstream.json").read_text())["brokers"]
    return {int(node_id): kshim.port + index for node_id, index in kept.items()}


def is_refused(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def test_each_broker_has_a_port_and_all_answer_the_same(kshim: Server) -> None:
    assert set(ports(kshim)) == {1, 2, 3}
    for port in ports(kshim).values():
        with Wire(kshim.host, port) as wire:
            for version in (1, 9, 12):
                told = wire.ask(version, MetadataRequest(topics=()))
                assert {broker.node_id: broker.port for broker in told.brokers} == ports(kshim)
            cluster = wire.ask(1, DescribeClusterRequest())
            assert {broker.broker_id: broker.port for broker in cluster.brokers} == ports(kshim)


@pytest.mark.parametrize("key_type", [0, 1])
def test_coordinators_are_found_at_ports_of_kshim(kshim: Server, key_type: int) -> None:
    keys = tuple(f"key-{number}" for number in range(20))
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys)

    def found() -> bool:
        with Wire(kshim.host, kshim.port) as wire:
            answered = wire.ask(4, request).coordinators
        if any(each.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE for each in answered):
            return False
        assert [each.key for each in answered] == list(keys)
        assert {(each.node_id, each.port) for each in answered} == set(ports(kshim).items())
        return True

    wait_until(found, 60, kshim.report)


def test_clients_stay_while_a_broker_goes_and_comes(nodes: Nodes, kshim: Server, topic: str) -> None:
    admin = Admin(kshim.bootstrap)
    admin.create_topic(topic, 6, replication_factor=3)
    admin.close()
    producer = new_producer(kshim.bootstrap)
    consumer = new_consumer(kshim.bootstrap, group_id=f"g-{topic}")
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    for number in range(6):
        producer.send(topic, b"%d" % number, partition=number).get(timeout=30)
    until_served(lambda: consumer.commit({partition: offset_and_metadata(1)}), timeout_s=60)

    nodes.servers[2].kill()
    wait_until(lambda: is_refused(ports(kshim)[2]), GONE_S, kshim.report)
    for number in range(6):

        def again(number: int = number) -> None:
            producer.send(topic, b"again", partition=number).get(timeout=30)

        until_served(again, timeout_s=90)
    until_served(lambda: consumer.commit({partition: offset_and_metadata(2)}), timeout_s=60)

    nodes.servers[2].restart()
    wait_until(lambda: not is_refused(ports(kshim)[2]), GONE_S, kshim.report)
    reader = new_consumer(kshim.bootstrap, topic, consumer_timeout_ms=20_000)
    found = [record.value for record, _ in zip(reader, range(12), strict=False)]
    assert sorted(found) == sorted([b"%d" % number for number in range(6)] + [b"again"] * 6)
    assert consumer.committed(partition) == 2
    for client in (producer, consumer, reader):
        client.close()


def test_ports_are_the_same_after_a_restart(kshim: Server) -> None:
    before = ports(kshim), kshim.bootstrap
    kshim.kill()
    kshim.restart()
    assert (ports(kshim), kshim.bootstrap) == before
