"""A producer of transactions goes on when the kshim that has named its coordinator is killed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from integration.apache_kafka.tools import Tools
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server
from kshim.testing.wire import Wire
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from schemas.messages.metadata import MetadataRequest

GOES_ON_S = 20
"""The client's pauses, and a takeover on a busy machine; before, it took as long as the kshim was away."""
FIND, METADATA = 3, 9
TRANSACTION = 1
RECORDS, RECORDS_A_S = 600, 20


@pytest.fixture
def pair(kafka: Server, tmp_path: Path) -> Iterator[list[Server]]:
    servers = [Server(tmp_path / f"kshim{number}", ["--upstream", kafka.bootstrap]) for number in (1, 2)]
    for server in servers:
        server.start()
    wait_until(lambda: len(named(servers[0])) > 2 and len(named(servers[1])) > 2, 20, "they know each other")
    yield servers
    for server in servers:
        if server.running:
            server.kill()


def named(server: Server) -> dict[int, int]:
    """The ports of all brokers that Metadata lists, by node id."""
    with Wire(server.host, server.port) as wire:
        answer = wire.ask(METADATA, MetadataRequest(topics=()))
    return {each.node_id: each.port for each in answer.brokers}


def coordinator(server: Server) -> tuple[int, int]:
    """The node id and the port of a transaction's coordinator."""
    with Wire(server.host, server.port) as wire:
        found = wire.ask(FIND, FindCoordinatorRequest(key="t", key_type=TRANSACTION))
    return found.node_id, found.port


def test_each_kshim_names_a_coordinator_of_its_own(pair: list[Server]) -> None:
    wait_until(lambda: all(coordinator(each)[0] > 0 for each in pair), 30, "the upstream has coordinators")
    found = {coordinator(each) for each in pair}
    assert {port for _, port in found} == {each.port for each in pair}
    assert len({node_id for node_id, _ in found}) == 2
    for server in pair:
        assert found <= set(named(server).items()), "everybody finds both by their node ids"
    before = coordinator(pair[0])
    pair[0].kill()
    pair[0].restart()
    assert coordinator(pair[0]) == before


class Librdkafka:
    """A producer of confluent-kafka."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"id-of-{topic}"})
        self._producer.init_transactions(GOES_ON_S)

    def write(self) -> None:
        """A transaction with one record, repeated as librdkafka's users have to."""
        ends_s = time.monotonic() + 3 * GOES_ON_S
        while True:
            try:
                self._producer.begin_transaction()
                self._producer.produce(self._topic, b"x")
                self._producer.commit_transaction(3 * GOES_ON_S)
            except KafkaException as error:
                found: Any = error.args[0]
                if time.monotonic() > ends_s or not (found.txn_requires_abort() or found.retriable()):
                    raise
                self._producer.abort_transaction(3 * GOES_ON_S)
            else:
                return

    def close(self) -> None:
        self._producer.flush(1)


def test_a_transaction_goes_on_at_the_other_kshim(
    kafka: Server,
    pair: list[Server],
    topic: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whichever of them has named the coordinator: each is killed once, and stays away."""
    admin = Admin(kafka.bootstrap)
    admin.create_topic(topic, 1)
    admin.close()
    producer = Librdkafka(",".join(each.bootstrap for each in pair), topic)
    for gone in pair:
        producer.write()
        gone.kill()
        begun_s = time.monotonic()
        producer.write()
        gap_s = time.monotonic() - begun_s
        with capsys.disabled():
            print(f"\nlibrdkafka: a transaction took {gap_s:.2f} s")
        assert gap_s < GOES_ON_S
        gone.restart()
        wait_until(lambda gone=gone: len(named(gone)) > 2, 20, "they know each other")
    producer.close()


def test_transactions_of_java_go_on_at_the_other_kshim(
    kafka: Server, pair: list[Server], topic: str, class_path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Apache's ProducerPerformance, with a transaction after the other, while each kshim is killed once."""
    admin = Admin(kafka.bootstrap)
    admin.create_topic(topic, 1)
    tools = Tools(class_path)
    bootstrap = ",".join(each.bootstrap for each in pair)
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(
            tools.run,
            "org.apache.kafka.tools.ProducerPerformance",
            *("--bootstrap-server", bootstrap, "--topic", topic, "--record-size", "10"),
            *("--num-records", str(RECORDS), "--throughput", str(RECORDS_A_S)),
            *("--transactional-id", topic, "--transaction-duration-ms", "300"),
        )
        try:
            for number, gone in enumerate(pair, 1):
                at_least = number * RECORDS // 4
                wait_until(
                    lambda at_least=at_least: running.done() or _written(kafka, topic) > at_least,
                    60,
                    "records",
                )
                assert not running.done(), running.result().text
                gone.kill()
                further = _written(kafka, topic) + RECORDS_A_S
                wait_until(
                    lambda further=further: _written(kafka, topic) > further, GOES_ON_S, "records go on"
                )
                gone.restart()
                wait_until(lambda gone=gone: len(named(gone)) > 2, 20, "they know each other")
            printed = running.result(timeout=90)
        finally:
            tools.close()
    assert printed.status == 0, printed.text
    last = printed.text.splitlines()[-1]
    with capsys.disabled():
        print(f"\njava: {last}")
    assert f"{RECORDS} records sent" in last
    admin.close()


def _written(kafka: Server, topic: str) -> int:
    """The end of the topic's partition."""
    asked = ListOffsetsTopic(name=topic, partitions=(ListOffsetsPartition(partition_index=0, timestamp=-1),))
    with Wire(kafka.host, kafka.port) as wire:
        (found,) = wire.ask(7, ListOffsetsRequest(topics=(asked,))).topics
    end: int = found.partitions[0].offset
    return end
