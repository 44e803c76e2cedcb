"""kshim in front of one node of Apache Kafka: records, groups, restarts of both, mistakes of clients."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from itertools import islice
from pathlib import Path

import pytest
from kafka import TopicPartition

from integration.support.awaiting import wait_until
from integration.support.clients import Admin, new_consumer, new_producer, offset_and_metadata, until_served
from integration.support.ports import Slot
from integration.support.server import Server, run_to_end
from kshim.testing.wire import Wire, framed
from schemas.api_key import ApiKey
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.metadata import MetadataRequest

LARGE_BYTES = 900_000
MiB = 1024 * 1024


@pytest.fixture
def made(kafka: Server, topic: str) -> str:
    """A topic with three partitions, made at the upstream."""
    admin = Admin(kafka.bootstrap)
    admin.create_topic(topic, 3)
    admin.close()
    return topic


def test_records_are_in_the_upstream_and_a_group_outlives_kshim(
    kafka: Server, kshim: Server, made: str
) -> None:
    producer = new_producer(kshim.bootstrap)
    for number in range(90):
        producer.send(made, b"%d" % number, partition=number % 3)
    producer.flush()
    direct = new_consumer(kafka.bootstrap, made, consumer_timeout_ms=5000)
    assert sorted(int(record.value) for record, _ in zip(direct, range(90), strict=False)) == list(range(90))
    direct.close()

    def read(count: int) -> list[int]:
        consumer = new_consumer(kshim.bootstrap, made, group_id=f"g-{made}", consumer_timeout_ms=20_000)
        found = [int(record.value) for record in islice(consumer, count)]
        consumer.commit()
        consumer.close()
        return found

    read(90)
    port = kshim.port
    kshim.kill()
    kshim.restart()
    assert kshim.port == port
    for number in range(90, 99):
        until_served(lambda number=number: producer.send(made, b"%d" % number).get(timeout=10))
    assert sorted(read(9)) == list(range(90, 99))
    producer.close()


@pytest.mark.few
def test_a_topic_that_was_made_again_is_read_from_its_beginning(
    kafka: Server, kshim: Server, topic: str
) -> None:
    """Though the group has committed offsets for the topic that had its name before."""
    admin = Admin(kafka.bootstrap)
    for first in (0, 100):
        admin.create_topic(topic, 1)
        producer = new_producer(kafka.bootstrap)
        for number in range(first, first + 20):
            producer.send(topic, b"%d" % number, partition=0)
        producer.close()
        consumer = new_consumer(kshim.bootstrap, topic, group_id=f"g-{topic}", consumer_timeout_ms=20_000)
        assert [int(record.value) for record in islice(consumer, 20)] == [*range(first, first + 20)]
        consumer.commit()
        consumer.close()
        admin.delete_topic(topic)
        wait_until(lambda: topic not in admin.list_topics(), 20, "the topic is gone")
    admin.close()


@pytest.mark.few
def test_large_records_pass_in_both_directions(kshim: Server, made: str) -> None:
    values = [bytes([number]) * LARGE_BYTES for number in range(30)]
    producer = new_producer(kshim.bootstrap, max_request_size=LARGE_BYTES + 1000)
    for value in values:
        producer.send(made, value, partition=0)
    producer.flush()
    producer.close()
    consumer = new_consumer(
        kshim.bootstrap,
        max_partition_fetch_bytes=50 * MiB,
        fetch_max_bytes=50 * MiB,
        consumer_timeout_ms=20_000,
    )
    consumer.assign([TopicPartition(made, 0)])
    assert [record.value for record in islice(consumer, len(values))] == values
    consumer.close()


def test_a_producer_that_wants_no_answer_gets_none(kafka: Server, kshim: Server, made: str) -> None:
    producer = new_producer(kshim.bootstrap, acks=0, linger_ms=0)
    for number in range(20):
        producer.send(made, b"%d" % number, partition=0)
    producer.flush()
    producer.close()
    consumer = new_consumer(kafka.bootstrap, made, consumer_timeout_ms=10_000)
    assert sorted(int(record.value) for record in islice(consumer, 20)) == list(range(20))
    consumer.close()


@pytest.mark.few
def test_replies_come_in_the_order_of_the_requests(kshim: Server) -> None:
    """A slow reply of the upstream holds back a fast one of kshim, and the other way round."""
    requests = [
        (12, MetadataRequest(topics=None)),
        (4, ListGroupsRequest()),
        (3, FindCoordinatorRequest(key="t", key_type=1)),
        (3, FindCoordinatorRequest(key="g")),
        (3, ApiVersionsRequest(client_software_name="wire", client_software_version="1")),
    ] * 20
    keys = [ApiKey.METADATA, ApiKey.LIST_GROUPS] + [ApiKey.FIND_COORDINATOR] * 2 + [ApiKey.API_VERSIONS]
    with Wire(kshim.host, kshim.port) as wire:
        wire.sendall(b"".join(framed(version, request) for version, request in requests))
        for (version, _), key in zip(requests, keys * 20, strict=True):
            wire.response(version, key)


def test_a_client_that_does_not_read_takes_little_memory(kshim: Server, made: str) -> None:
    producer = new_producer(kshim.bootstrap)
    for _ in range(64):
        producer.send(made, os.urandom(LARGE_BYTES), partition=1)
    producer.flush()
    producer.close()
    partition = FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=50 * MiB)
    fetch = FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=50 * MiB,
        topics=(FetchTopic(topic=made, partitions=(partition,)),),
    )
    with Wire(kshim.host, kshim.port) as wire:
        wire.ask(12, fetch)
    before = kshim.rss_bytes()
    wires = [Wire(kshim.host, kshim.port, receive_buffer_bytes=4096) for _ in range(10)]
    for wire in wires:
        wire.request(12, fetch)
    time.sleep(2)  # what would be held is held by then
    with Wire(kshim.host, kshim.port) as other:
        other.ask(12, MetadataRequest(topics=()))
    assert kshim.rss_bytes() - before < 10 * 3 * MiB
    for wire in wires:
        assert len(wire.frame()) > 40 * MiB
        wire.close()


def test_a_frame_that_is_too_large_closes_the_connection(kshim: Server) -> None:
    with Wire(kshim.host, kshim.port) as wire:
        wire.sendall((200 * MiB).to_bytes(4) + b"\0\0\0\x09")
        with pytest.raises(ConnectionError):
            wire.frame()
    wait_until(lambda: "above socket.request.max.bytes" in "\n".join(kshim.log), 10, kshim.report)


def test_what_the_upstream_refuses_closes_the_connection(kshim: Server) -> None:
    with Wire(kshim.host, kshim.port) as wire:
        wire.sendall((10).to_bytes(4) + b"\0\2\0\1\0\0\0\1\xff\xff")  # ListOffsets v1 without a body
        with pytest.raises(ConnectionError):
            wire.frame()


def test_a_client_that_closes_its_half_is_gone(kshim: Server) -> None:
    """Apache Kafka does not answer the requests that it has read by then, either."""
    with Wire(kshim.host, kshim.port) as wire:
        wire.ask(12, MetadataRequest(topics=()))
        wire.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionError):
            wire.frame()


def test_nobody_finds_the_brokers_themselves(kafka: Server, kshim: Server, made: str) -> None:
    """In v0 no topics stand for all, and then those kshim are among the brokers that have run lately."""
    with Wire(kshim.host, kshim.port) as wire:
        for version in range(13):
            response = wire.ask(version, MetadataRequest(topics=()))
            found = [(broker.host, broker.port) for broker in response.brokers]
            assert (kafka.host, kafka.port) not in found
            assert found[:1] == [(kshim.host, kshim.port)]
            assert version == 0 or len(found) == 1


@pytest.mark.few
def test_what_is_announced(kafka: Server, kshim: Server) -> None:
    request = ApiVersionsRequest(client_software_name="wire", client_software_version="1")
    answers = []
    for server in (kafka, kshim):
        with Wire(server.host, server.port) as wire:
            answers.append(wire.ask(4, request))
    theirs, ours = ({each.api_key: each for each in answer.api_keys} for answer in answers)
    assert {ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE} <= set(ours)
    assert set(ours) <= set(theirs)
    assert ours[ApiKey.PRODUCE] == theirs[ApiKey.PRODUCE]
    features = [{each.name for each in answer.finalized_features} for answer in answers]
    assert features[0] == features[1]
    passing = {each for each in theirs if "SHARE_" in (name := ApiKey(each).name) or "STREAMS_" in name}
    state = {each for each in passing if ApiKey(each).name.endswith(("_STATE", "_SUMMARY"))}  # brokers' own
    assert passing - state <= set(ours)
    assert all(ours[each] == theirs[each] for each in passing - state)


@pytest.mark.few
def test_kshim_without_its_upstream_says_so_once(tmp_path: Path) -> None:
    slot = Slot()
    began_s = time.monotonic()
    done = run_to_end(
        *("serve", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data")),
        *("--upstream", f"127.0.0.1:{slot.port}", "--set", "upstream.start.timeout.ms=1500"),
        cwd=tmp_path,
    )
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if line.startswith("kshim: ")]
    assert lines == [f"kshim: upstream broker 127.0.0.1:{slot.port} cannot be reached: Connection refused"]
    assert time.monotonic() - began_s > 1


def test_a_port_that_is_taken_is_named(kafka: Server, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run_to_end(
            *("serve", "--listen", address, "--data-dir", ":memory:", "--upstream", kafka.bootstrap),
            cwd=tmp_path,
        )
    assert done.returncode == 2
    assert f"kshim: cannot listen at {address}: Address already in use" in done.stderr.splitlines()


def test_an_upstream_that_is_no_kafka_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        script = (
            "import socket,sys; s=socket.socket(fileno=int(sys.argv[1]))\n"
            "while True: c,_=s.accept(); c.recv(99); c.sendall(b'HTTP/1.1 400 Bad Request'); c.close()"
        )
        server.set_inheritable(True)
        command = ["python", "-c", script, str(server.fileno())]
        with subprocess.Popen(command, pass_fds=(server.fileno(),)) as http:
            done = run_to_end(
                *("serve", "--listen", "127.0.0.1:0", "--data-dir", ":memory:", "--upstream", address),
                *("--set", "upstream.start.timeout.ms=500"),
                cwd=tmp_path,
            )
            http.kill()
    assert done.returncode == 2
    assert f"kshim: upstream broker {address} sent what is no response to a request: it begins" in done.stderr


def test_a_data_directory_is_for_one_cluster(kafka: Server, kshim: Server, tmp_path: Path) -> None:
    kshim.stop()
    path = kshim.data_dir / "upstream.json"
    kept = json.loads(path.read_text())
    path.write_text(json.dumps({**kept, "cluster_id": "another"}))
    done = run_to_end(
        *(
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
            str(kshim.data_dir),
            "--upstream",
            kafka.bootstrap,
        ),
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert (
        f"this data directory is for the cluster another, and the upstream is {kept['cluster_id']}"
        in done.stderr
    )


@pytest.mark.few
def test_clients_stay_while_the_upstream_goes_and_comes(kafka: Server, kshim: Server, made: str) -> None:
    producer = new_producer(kshim.bootstrap)
    producer.send(made, b"before").get(timeout=20)
    consumer = new_consumer(kshim.bootstrap, group_id=f"g-{made}")
    partition = TopicPartition(made, 0)
    consumer.assign([partition])
    consumer.commit({partition: offset_and_metadata(0)})
    kafka.kill()
    wait_until(lambda: "upstream broker" in "\n".join(kshim.log[-20:]), 20, kshim.report)
    assert kshim.running
    kafka.restart()
    until_served(lambda: producer.send(made, b"after").get(timeout=30), timeout_s=60)
    until_served(lambda: consumer.commit({partition: offset_and_metadata(1)}), timeout_s=60)
    assert consumer.committed(partition) == 1
    consumer.close()
    producer.close()


def test_people_see_lag_and_let_requests_fail(kshim: Server, made: str) -> None:
    """Also of requests that are forwarded, and of topics that no client has named since the start."""

    def tell(*arguments: str) -> str:
        done = run_to_end(*arguments, "--data-dir", str(kshim.data_dir), cwd=kshim.data_dir)
        assert done.returncode == 0, done.stderr
        return done.stdout

    partition = TopicPartition(made, 0)
    consumer = new_consumer(kshim.bootstrap, group_id=f"g-{made}")
    consumer.assign([partition])
    consumer.commit({partition: offset_and_metadata(1)})
    consumer.close()
    tell("fault", "add", "--api", "Produce", "--close", "--times", "1")
    producer = new_producer(kshim.bootstrap)
    for number in range(5):
        producer.send(made, b"%d" % number, partition=0).get(timeout=30)
    producer.close()
    assert json.loads(tell("fault", "list", "--json"))[0]["struck"] == 1
    kshim.kill()
    kshim.restart()
    (group,) = (each for each in json.loads(tell("groups", "--json"))["groups"] if made in each["group_id"])
    assert group["lag"] in (4, 5)  # a close after the broker has taken a batch may have it sent twice
