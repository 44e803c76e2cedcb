"""Members of groups that are not served fail with words that say what to change; nobody waits in silence."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError

from integration.apache_kafka.jars import VERSION
from integration.java.tool import run_to_end
from integration.mistakes.conftest import TIMEOUT_S, Told
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server
from kshim.callers.mistake import Mistake

GROUP = {"group": "readers"}


@pytest.fixture
def own_server(new_server: Callable[..., Server]) -> Server:
    """A server that serves classic groups alone."""
    return new_server("--set", "group.coordinator.rebalance.protocols=classic").start()


def test_librdkafka_with_the_consumer_protocol(own_server: Server, told: Told) -> None:
    """It would wait in silence if ConsumerGroupHeartbeat were not announced."""
    consumer = Consumer(
        {"bootstrap.servers": own_server.bootstrap, "group.id": "readers", "group.protocol": "consumer"}
    )
    with contextlib.closing(consumer):
        consumer.subscribe(["t"])
        message = wait_until(lambda: consumer.poll(0.1), TIMEOUT_S, "an error")
        error = message.error()
        assert error.code() == KafkaError._FATAL
        assert "ConsumerGroupHeartbeat fatal error: Broker: API version not supported" in error.str()
    assert "confluent-kafka-python " in told(Mistake.CONSUMER_PROTOCOL, GROUP)


def test_a_java_consumer_with_the_consumer_protocol(
    own_server: Server, class_path: str, tmp_path: Path, told: Told
) -> None:
    properties = tmp_path / "consumer.properties"
    properties.write_text("group.protocol=consumer\n")
    read = ("--topic", "t", "--num-records", "1", "--group", "readers", "--command-config", str(properties))
    connect = ("--bootstrap-server", own_server.bootstrap)
    status, said = run_to_end(class_path, "ConsumerPerformance", *connect, *read)
    assert status == 1
    assert "Set group.protocol=classic on the consumer configs" in said
    assert f"apache-kafka-java {VERSION}" in told(Mistake.CONSUMER_PROTOCOL, GROUP)


def test_a_java_consumer_of_a_share_group(own_server: Server, class_path: str, told: Told) -> None:
    read = ("--topic", "t", "--num-records", "1", "--group", "readers")
    connect = ("--bootstrap-server", own_server.bootstrap)
    status, said = run_to_end(class_path, "ShareConsumerPerformance", *connect, *read)
    assert status == 1
    assert "The cluster does not support the share group protocol" in said
    told(Mistake.SHARE_GROUP, GROUP)


@pytest.mark.parametrize("protocol", ["classic", ""])
def test_a_classic_consumer_is_worth_no_line(own_server: Server, protocol: str) -> None:
    with contextlib.closing(Admin(own_server.bootstrap)) as admin:
        admin.create_topic("t")
    chosen = {"group.protocol": protocol} if protocol else {}
    consumer = Consumer({"bootstrap.servers": own_server.bootstrap, "group.id": "readers", **chosen})
    with contextlib.closing(consumer):
        consumer.subscribe(["t"])
        wait_until(lambda: consumer.poll(0.1) or consumer.assignment(), TIMEOUT_S, "an assignment")
    assert [line for line in own_server.log if " INFO " not in line] == []
