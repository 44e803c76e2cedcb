"""Everything acknowledged outlives `kill -9`: records, offsets, topics, groups."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from kafka import TopicPartition

from integration.support.awaiting import wait_until
from integration.support.clients import (
    HAS_IDEMPOTENCE,
    POLL_MS,
    Admin,
    commit,
    count_records,
    generation_id,
    new_consumer,
    new_producer,
    read_all,
    until_served,
)
from integration.support.server import Server
from integration.support.story import Feed

KILLS = 5
PARTITIONS = 3


def create(server: Server, topic: str, partitions: int) -> None:
    admin = Admin(server.bootstrap)
    admin.create_topic(topic, partitions)
    wait_until(lambda: len(admin.partitions(topic)) == partitions, 10, "the topic's leaders")
    admin.close()


def committed(server: Server, group_id: str) -> dict[tuple[str, int], int]:
    """The group's offsets, as soon as the restarted server gives them."""
    admin = Admin(server.bootstrap)
    try:
        return until_served(lambda: admin.group_offsets(group_id))
    finally:
        admin.close()


@pytest.mark.parametrize("idempotent", [False, True] if HAS_IDEMPOTENCE else [False])
def test_acknowledged_records_outlive_kills(own_server: Server, topic: str, idempotent: bool) -> None:
    create(own_server, topic, PARTITIONS)
    options = {"enable_idempotence": idempotent} if HAS_IDEMPOTENCE else {}
    feed = Feed(own_server.bootstrap, topic, PARTITIONS, **options)
    try:
        for _ in range(KILLS):
            feed.wait_more(50)
            own_server.kill()
            own_server.restart()
        feed.wait_more(50)
        acknowledged = feed.stop()
    finally:
        feed.end()
    assert feed.errors == []
    assert len(acknowledged) == feed.sent

    # A producer that is not idempotent writes some records twice.
    records = read_all(own_server.bootstrap, topic, count_records(own_server.bootstrap, topic))
    found = {(r.partition, r.offset): r.value.decode() for r in records}
    assert acknowledged.items() <= found.items()
    for partition in range(PARTITIONS):
        offsets = [r.offset for r in records if r.partition == partition]
        assert offsets == list(range(len(offsets)))  # no gap, nothing torn
    if idempotent:
        assert len(records) == feed.sent  # each resent record is there once


def test_committed_offsets_outlive_kills(own_server: Server, topic: str) -> None:
    """Commit, kill, look; with many groups, so that many shards of the coordinator are reloaded."""
    create(own_server, topic, 1)
    partition = TopicPartition(topic, 0)
    groups = [f"{topic}-{number}" for number in range(12)]
    consumers = {group: new_consumer(own_server.bootstrap, group_id=group) for group in groups}
    for round_number in range(1, 4):
        for group, consumer in consumers.items():
            commit(consumer, {partition: round_number * 100 + int(group[-1])})
        own_server.kill()
        own_server.restart()
        for group in groups:
            assert committed(own_server, group) == {(topic, 0): round_number * 100 + int(group[-1])}
        admin = Admin(own_server.bootstrap)
        assert set(groups) <= set(admin.list_groups())
        admin.close()
    for consumer in consumers.values():
        consumer.close()


def test_a_kill_under_concurrent_commits(own_server: Server, topic: str) -> None:
    """After the kill the group has the last acknowledged commit, or a later one."""
    create(own_server, topic, 1)
    partition = TopicPartition(topic, 0)
    group_id = f"group-of-{topic}"
    acknowledged = [0]
    stopping = threading.Event()
    consumer = new_consumer(own_server.bootstrap, group_id=group_id)

    def keep_committing() -> None:
        while not stopping.is_set():
            commit(consumer, {partition: acknowledged[-1] + 1})
            acknowledged.append(acknowledged[-1] + 1)

    committer = threading.Thread(target=keep_committing, daemon=True)
    committer.start()
    for _ in range(3):
        floor = len(acknowledged) + 20
        wait_until(lambda floor=floor: len(acknowledged) >= floor, 20, f"{floor} commits")
        own_server.kill()
        before = acknowledged[-1]
        own_server.restart()
        assert committed(own_server, group_id)[topic, 0] >= before
    stopping.set()
    committer.join(20)
    assert not committer.is_alive()
    consumer.close()


def test_a_member_keeps_its_generation(own_server: Server, topic: str) -> None:
    create(own_server, topic, 2)
    consumer = new_consumer(
        own_server.bootstrap, topic, group_id=topic, session_timeout_ms=10_000, heartbeat_interval_ms=200
    )
    wait_until(lambda: (consumer.poll(timeout_ms=POLL_MS), consumer.assignment())[1], 20, "an assignment")
    admin = Admin(own_server.bootstrap)
    before, generation = admin.describe_group(topic), generation_id(consumer)
    admin.close()
    for number in range(3):
        own_server.kill()
        own_server.restart()
        commit(consumer, {TopicPartition(topic, 0): number})
    admin = Admin(own_server.bootstrap)
    assert until_served(lambda: admin.describe_group(topic)) == before
    admin.close()
    assert committed(own_server, topic)[topic, 0] == 2
    assert generation_id(consumer) == generation
    consumer.close()


def test_topics_outlive_a_kill(own_server: Server, topic: str) -> None:
    admin = Admin(own_server.bootstrap)
    for name, partitions in ((f"{topic}-kept", 2), (f"{topic}-grown", 1), (f"{topic}-gone", 1)):
        admin.create_topic(name, partitions)
    admin.add_partitions(f"{topic}-grown", 4)
    admin.delete_topic(f"{topic}-gone")
    admin.close()
    own_server.kill()
    own_server.restart()
    admin = Admin(own_server.bootstrap)
    wait_until(lambda: len(admin.partitions(f"{topic}-grown")) == 4, 10, "four partitions")
    assert len(admin.partitions(f"{topic}-kept")) == 2
    assert f"{topic}-gone" not in admin.list_topics()
    admin.close()


def test_a_clean_stop_keeps_everything(new_server: Callable[..., Server], topic: str) -> None:
    server = new_server().start()
    producer = new_producer(server.bootstrap)
    futures = [producer.send(topic, str(n).encode()) for n in range(100)]
    assert [f.get(timeout=20).offset for f in futures] == list(range(100))
    producer.close()
    assert server.stop() in (0, 143)  # 143: a JVM's own
    server.restart()
    assert [int(r.value) for r in read_all(server.bootstrap, topic, 100)] == list(range(100))
