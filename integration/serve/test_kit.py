"""Clients see what `kshim.testing` does with a cluster, on kshim and on Apache Kafka alike."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from integration.serve.polling import polling
from integration.support.awaiting import wait_until
from integration.support.clients import new_producer, read_all
from integration.support.server import Server
from kshim.testing import Cluster, Consumed, LeftBehind, NewRecord, Refused, TopicPartition

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SHORT_S = 1


@pytest.fixture
def cluster(server: Server) -> Cluster:
    return Cluster(server.bootstrap)


# ---- records


@pytest.mark.parametrize("codec", CODECS)
def test_a_client_reads_what_was_produced(cluster: Cluster, codec: Any) -> None:
    topic = cluster.topic(partitions=2, retention_ms=-1)
    given = NewRecord(b"\xff", "k", {"a": "1", "b": None}, timestamp_ms=1_700_000_000_123, partition=1)
    before_ms = time.time() * 1000
    assert cluster.produce(
        topic, ["ünï", given, NewRecord(None, b"gone", partition=1)], compression=codec
    ) == [
        (0, 0),
        (1, 0),
        (1, 1),
    ]
    first, second, third = sorted(
        read_all(cluster.bootstrap, topic, 3), key=lambda r: (r.partition, r.offset)
    )
    assert (first.value, first.key, first.headers) == ("ünï".encode(), None, [])
    assert before_ms - 1000 < first.timestamp < time.time() * 1000 + 1000
    assert (second.value, second.key, second.timestamp) == (b"\xff", b"k", 1_700_000_000_123)
    assert second.headers == [("a", b"1"), ("b", None)]
    assert (third.key, third.value) == (b"gone", None)


@pytest.mark.parametrize("codec", CODECS)
def test_what_a_client_produced_is_read(cluster: Cluster, codec: str) -> None:
    topic = cluster.topic(retention_ms=-1)
    producer = new_producer(cluster.bootstrap, compression_type=None if codec == "none" else codec)
    for number in range(3):
        producer.send(topic, b"%d" % number, key=b"k", headers=[("h", b"x")], timestamp_ms=number + 1)
    producer.flush()
    producer.close()
    assert cluster.consume(topic) == [
        Consumed(topic, 0, number, number + 1, b"k", b"%d" % number, (("h", b"x"),)) for number in range(3)
    ]
    assert [record.value for record in cluster.consume(topic, 1, offset=2)] == [b"2"]


def test_keys_go_where_a_client_sends_them(cluster: Cluster) -> None:
    topic = cluster.topic(partitions=7)
    keys = [b"key-%d" % number for number in range(40)]
    producer = new_producer(cluster.bootstrap)
    theirs = [producer.send(topic, b"v", key=key).get(timeout=10).partition for key in keys]
    producer.close()
    assert [at.partition for at in cluster.produce(topic, [(key, "v") for key in keys])] == theirs
    assert cluster.end_offsets(topic) == {(topic, p): 2 * theirs.count(p) for p in range(7)}


def test_consume_waits_for_records_that_are_still_to_come(cluster: Cluster) -> None:
    topic = cluster.topic(partitions=2)
    late = threading.Timer(0.3, cluster.produce, (topic, ["a", "b", "c"]))
    late.start()
    assert [record.value for record in cluster.consume(topic, 3)] == [b"a", b"c", b"b"]
    late.join()


def test_too_few_records_are_counted(cluster: Cluster) -> None:
    topic = cluster.topic(partitions=2)
    cluster.produce(topic, ["a", "b", "c"])
    expected = r"waited 1 s for 4 record\(s\), but read 3: 2 in partition 0, 1 in partition 1"
    with pytest.raises(TimeoutError, match=expected):
        cluster.consume(topic, 4, timeout_s=SHORT_S)


def test_there_is_no_such_topic_or_partition(cluster: Cluster) -> None:
    with pytest.raises(TimeoutError, match="not within 1 s: there is no topic unknown"):
        cluster.consume("unknown", timeout_s=SHORT_S)
    topic = cluster.topic()
    with pytest.raises(TimeoutError, match=f"topic {topic} has no partition 3, only 0 to 0"):
        cluster.produce(topic, [NewRecord("v", partition=3)], timeout_s=SHORT_S)


def test_aborted_transactions_are_left_out_on_request(cluster: Cluster) -> None:
    confluent = pytest.importorskip("confluent_kafka")
    topic = cluster.topic()
    producer = confluent.Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": topic})
    producer.init_transactions(10)
    for value, end in (("lost", "abort"), ("kept", "commit"), ("lost too", "abort")):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(10)
        getattr(producer, f"{end}_transaction")(10)
    cluster.produce(topic, ["plain"])
    assert [record.value for record in cluster.consume(topic, 2, committed_only=True)] == [b"kept", b"plain"]
    assert len(cluster.consume(topic)) == 4


# ---- topics


def test_a_topic_has_the_configs_that_were_asked_for(cluster: Cluster) -> None:
    topic = cluster.topic("orders", partitions=3, cleanup_policy="compact")
    assert topic.startswith("orders-")
    assert topic in cluster.topics()
    with pytest.raises(Refused, match="INVALID_RECORD"):
        cluster.produce(topic, ["has no key"])
    with pytest.raises(Refused, match="TOPIC_ALREADY_EXISTS"):
        cluster.create_topic(topic)
    cluster.delete_topics(topic, "unknown")
    assert topic not in cluster.topics()


# ---- groups


def test_a_test_waits_for_two_members_and_their_commits(cluster: Cluster) -> None:
    topic, group = cluster.topic(partitions=3), cluster.group()
    with ExitStack() as members:
        members.enter_context(polling(cluster.bootstrap, topic, group))
        cluster.wait_stable(group)
        members.enter_context(polling(cluster.bootstrap, topic, group))
        both = cluster.wait_for_assignment(group, members=2)
        assert sorted(len(member.partitions) for member in both.members) == [1, 2]
        assert both.assigned == [(topic, 0), (topic, 1), (topic, 2)]
        cluster.produce(topic, map(str, range(30)))
        cluster.wait_caught_up(group, topic)
        assert cluster.offsets(group) == {TopicPartition(topic, p): 10 for p in range(3)}
    assert cluster.wait_empty(group).state == "Empty"


def test_a_member_that_does_not_come_is_missed(cluster: Cluster) -> None:
    topic, group = cluster.topic(partitions=2), cluster.group()
    with polling(cluster.bootstrap, topic, group):
        cluster.wait_for_assignment(group)
        with pytest.raises(TimeoutError) as caught:
            cluster.wait_for_assignment(group, members=2, timeout_s=SHORT_S)
    said = str(caught.value)
    assert said.startswith(f"group {group}: waited for 2 member(s) with all partitions; not within 1 s: ")
    assert f"group {group} is Stable with 1 member(s)" in said
    assert f"{topic}-0, {topic}-1" in said


def test_an_assignment_without_a_partition_is_none(new_server: Callable[..., Server]) -> None:
    cluster = Cluster(new_server("--set", "auto.create.topics.enable=false").start().bootstrap)
    topic, group = cluster.name("missing"), cluster.group()
    with polling(cluster.bootstrap, topic, group, metadata_max_age_ms=500):
        wait_until(lambda: cluster.describe_group(group).state == "Stable", 20, "the member")
        with pytest.raises(TimeoutError, match=f"there is no topic {topic}"):
            cluster.wait_for_assignment(group, timeout_s=SHORT_S)
        cluster.create_topic(topic)
        assert cluster.wait_for_assignment(group).assigned == [(topic, 0)]


def test_commits_that_do_not_come_are_missed(cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, ["a", "b"])
    with pytest.raises(TimeoutError, match=rf"2 record\(s\) behind: committed {topic}-0 None of 2"):
        cluster.wait_caught_up(group, topic, timeout_s=SHORT_S)


# ---- reset


def test_reset_leaves_nothing_and_clients_go_on(own_server: Server) -> None:
    cluster = Cluster(own_server.bootstrap)
    producer = new_producer(cluster.bootstrap)
    producer.send("orders", b"old").get(timeout=10)
    with polling(cluster.bootstrap, "orders", "readers"):
        cluster.wait_caught_up("readers", "orders")
    assert (cluster.topics(), cluster.groups()) == (["orders"], ["readers"])
    cluster.reset()
    assert (cluster.topics(), cluster.groups(), cluster.offsets("readers")) == ([], [], {})
    cluster.create_topic("orders", 1)
    producer.send("orders", b"new").get(timeout=10)
    producer.close()
    assert [record.value for record in cluster.consume("orders")] == [b"new"]


def test_reset_names_the_consumers_that_a_test_left_running(own_server: Server) -> None:
    cluster = Cluster(own_server.bootstrap)
    cluster.create_topic("orders")
    with polling(cluster.bootstrap, "orders", "left"):
        member = cluster.wait_stable("left").members[0]
        with pytest.warns(LeftBehind, match=f"{member.member_id} of group left"):
            cluster.reset()
        assert cluster.offsets("left") == {}


def test_several_threads_at_once(cluster: Cluster) -> None:
    topic = cluster.topic(partitions=4)
    threads = [threading.Thread(target=cluster.produce, args=(topic, ["v"] * 25)) for _ in range(4)]
    _all(threads, threading.Thread.start)
    _all(threads, threading.Thread.join)
    assert len(cluster.consume(topic, 100)) == 100


def _all(threads: list[threading.Thread], do: Callable[[threading.Thread], None]) -> None:
    for thread in threads:
        do(thread)
