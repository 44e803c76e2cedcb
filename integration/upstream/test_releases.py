"""A small set of tests that runs in front of each release of Apache Kafka; $KSHIM_TEST_KAFKA chooses one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from integration import apache_kafka
from integration.apache_kafka.jars import VERSION, fetch_class_path
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server, run_to_end
from integration.support.story import KAFKA_PYTHON, LIBRDKAFKA, telling
from integration.support.toolchain import or_skip
from integration.upstream.committer import Committer

PARTITIONS, RECORDS, WITHIN_S = 4, 12, 90
SESSION_MS = 20_000
"""Of members; longer than it takes until another kshim leads their group."""
TOO_OLD = "2.7.2"
NEWEST_PARTS = {"2.8": 7, "3.9": 5, "4.2": 0, "4.4": 0}
"""How many parts of Kafka the first node's log line names, by release."""


RELEASE = tuple(map(int, VERSION.split(".")[:2]))
ASKS_BY_ID = (3, 1)
"""The first release that members of the consumer protocol can do with."""


@pytest.fixture
def pair(kafka: Server, tmp_path: Path) -> Iterator[list[Server]]:
    """Two kshim that share the groups."""
    servers = [Server(tmp_path / f"kshim{number}", ["--upstream", kafka.bootstrap]) for number in (1, 2)]
    for each in servers:
        each.start()
    wait_until(lambda: all("2 kshim share them" in log(each) for each in servers), WITHIN_S, "two kshim")
    yield servers
    for each in servers:
        if each.running:
            each.kill()


def log(server: Server) -> str:
    return "\n".join(server.log)


@pytest.mark.parametrize(
    ("program", "protocol"),
    [
        pytest.param(KAFKA_PYTHON, "classic", id="kafka-python"),
        pytest.param(LIBRDKAFKA, "classic", id="librdkafka"),
        pytest.param(
            *(LIBRDKAFKA, "consumer"),
            id="librdkafka-consumer",
            marks=pytest.mark.skipif(RELEASE < ASKS_BY_ID, reason="the protocol is not served"),
        ),
    ],
)
def test_members_go_on_when_one_kshim_is_killed(
    kafka: Server, pair: list[Server], topic: str, tmp_path: Path, program: tuple[str, ...], protocol: str
) -> None:
    """They join, rebalance and commit. No commit is lost or goes back, and the upstream gets the copies."""
    bootstrap = ",".join(each.bootstrap for each in pair)
    with telling(
        bootstrap, topic, PARTITIONS, "range", tmp_path, protocol=protocol, session_timeout_ms=SESSION_MS
    ) as story:
        first, second = story.join("first", program), story.join("second", program)
        story.wait_shared(first, second, timeout_s=WITHIN_S)
        story.wait_consumed(WITHIN_S)
        generations = story.generations()
        leader = Committer(pair, story.group_id, topic).leader()
        assert leader is not None
        leader.kill()
        story.reconnect()
        story.wait_consumed(WITHIN_S)
        assert story.generations() == generations, "nobody had to rebalance"
        second.leave()
        story.wait_shared(first, timeout_s=WITHIN_S)
        story.wait_consumed(WITHIN_S)
        admin = Admin(kafka.bootstrap)
        wait_until(
            lambda: set(admin.group_offsets(story.group_id)) == {(topic, each) for each in range(PARTITIONS)},
            WITHIN_S,
            "a copy of each offset at the upstream",
        )
        admin.close()


@pytest.mark.skipif(RELEASE >= ASKS_BY_ID, reason="the protocol is served")
def test_a_member_of_the_consumer_protocol_is_refused_in_words(kshim: Server, topic: str) -> None:
    """librdkafka would end its process in front of such an upstream."""
    consumer = Consumer(
        {"bootstrap.servers": kshim.bootstrap, "group.id": topic, "group.protocol": "consumer"}
    )
    consumer.subscribe([topic])
    message = wait_until(lambda: consumer.poll(0.5), WITHIN_S, "an error")
    assert "API version not supported" in str(message.error()), message.error()
    assert "group.protocol=consumer (KIP-848) is not served: set group.protocol=classic" in log(kshim)
    consumer.close()


def test_offsets_and_records_of_a_transaction_count_together(kshim: Server, topic: str) -> None:
    """Records are copied to another topic; one transaction is aborted, and done again."""
    copies = f"{topic}-copies"
    admin = Admin(kshim.bootstrap)
    for name in (topic, copies):
        admin.create_topic(name, 1)
    admin.close()
    options = {"bootstrap.servers": kshim.bootstrap}
    plain = Producer(options)
    for number in range(RECORDS):
        plain.produce(topic, str(number))
    assert plain.flush(WITHIN_S) == 0
    reading = options | {"auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer(reading | {"group.id": topic})
    consumer.subscribe([topic])
    producer = Producer(options | {"transactional.id": topic})
    producer.init_transactions(WITHIN_S)
    for number in range(RECORDS):
        message = wait_until(lambda: consumer.poll(1), WITHIN_S, f"record {number}")
        assert not message.error()
        for is_kept in [False, True] if number == RECORDS // 2 else [True]:
            producer.begin_transaction()
            producer.produce(copies, message.value())
            where = [TopicPartition(topic, 0, message.offset() + 1)]
            producer.send_offsets_to_transaction(where, consumer.consumer_group_metadata(), WITHIN_S)
            if is_kept:
                producer.commit_transaction(WITHIN_S)
            else:
                producer.abort_transaction(WITHIN_S)
                (found,) = consumer.committed([TopicPartition(topic, 0)], WITHIN_S)
                assert found.offset == number
    (found,) = consumer.committed([TopicPartition(topic, 0)], WITHIN_S)
    assert found.offset == RECORDS
    consumer.close()
    reader = Consumer(reading | {"group.id": copies, "isolation.level": "read_committed"})
    reader.subscribe([copies])
    read: list[str] = []
    wait_until(lambda: _read(reader, read) == RECORDS, WITHIN_S, lambda: f"{RECORDS} copies, have {read}")
    assert read == [str(number) for number in range(RECORDS)]
    reader.close()


def _read(reader: Consumer, read: list[str]) -> int:
    read += [(each.value() or b"").decode() for each in reader.consume(RECORDS, 0.2) if not each.error()]
    return len(read)


def test_the_log_says_what_the_upstream_lacks(kshim: Server) -> None:
    lines = [line for line in kshim.log if " lacks " in line]
    lacking = NEWEST_PARTS[".".join(map(str, RELEASE))]
    assert sum(line.count("(Kafka ") for line in lines) == lacking, log(kshim)
    assert len(lines) == bool(lacking)


def test_an_upstream_that_is_too_old_is_refused(tmp_path: Path) -> None:
    with or_skip(f"Apache Kafka {TOO_OLD}"):
        fetch_class_path(TOO_OLD)
    kafka = Server(tmp_path / "kafka", ["--version", TOO_OLD], command=apache_kafka.COMMAND).start()
    try:
        done = run_to_end("serve", "--upstream", kafka.bootstrap, "--listen", "127.0.0.1:0", cwd=tmp_path)
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert "is older than Kafka 2.8: it has no topic ids" in line
    finally:
        kafka.kill()
