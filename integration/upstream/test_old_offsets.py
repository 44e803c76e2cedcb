"""The offsets of a topic that was deleted and made again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from integration import apache_kafka
from integration.support.awaiting import wait_until
from integration.support.clients import Admin, new_consumer, new_producer
from integration.support.server import Server
from integration.upstream.committer import Committer

RECORDS = 20
LOOKS_S = 35.0
"""kshim looks at topics each half minute."""


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory, class_path: str) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("upstream") / "data", command=apache_kafka.COMMAND).start()
    yield server
    server.kill()


@pytest.fixture
def kshim(kafka: Server, tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "kshim", ["--upstream", kafka.bootstrap]).start()
    yield server
    if server.running:
        server.kill()


@pytest.fixture
def admin(kafka: Server, topic: str) -> Iterator[Admin]:
    """Asks the upstream itself, where the topic is made."""
    admin = Admin(kafka.bootstrap)
    admin.create_topic(topic, 1)
    yield admin
    admin.close()


def make_again(admin: Admin, topic: str) -> None:
    admin.client.delete_topics([topic])
    wait_until(lambda: topic not in admin.client.list_topics(), 20, "the topic is gone")
    admin.create_topic(topic, 1)


def read(server: Server, topic: str, group_id: str) -> list[int]:
    """The records that a consumer of the group gets, which commits its position at the end."""
    consumer = new_consumer(server.bootstrap, topic, group_id=group_id, consumer_timeout_ms=4_000)
    found = [int(record.value) for record in islice(consumer, RECORDS)]
    consumer.commit()
    consumer.close()
    return found


def fill(server: Server, topic: str, first: int) -> list[int]:
    numbers = list(range(first, first + RECORDS))
    producer = new_producer(server.bootstrap)
    for number in numbers:
        producer.send(topic, b"%d" % number, partition=0)
    producer.close()
    return numbers


@pytest.mark.few
def test_all_records_of_a_topic_that_was_made_again_are_read(
    kafka: Server, kshim: Server, admin: Admin, topic: str
) -> None:
    numbers = fill(kafka, topic, 0)
    assert read(kshim, topic, "readers") == numbers
    make_again(admin, topic)
    numbers = fill(kafka, topic, 1000)
    assert read(kshim, topic, "readers") == numbers


@pytest.mark.parametrize("is_asked_before", [True, False])
def test_a_commit_for_the_new_topic_stays(
    kshim: Server, admin: Admin, topic: str, *, is_asked_before: bool
) -> None:
    committer = Committer([kshim], "group", topic)
    wait_until(lambda: committer.commit(100), 20, "a commit")
    make_again(admin, topic)
    if is_asked_before:
        committer.acknowledged = -1
        assert committer.read() == -1
    assert committer.commit(5)
    time.sleep(LOOKS_S)
    assert committer.read() == 5
    kshim.kill()
    kshim.restart()
    assert wait_until(committer.read, 20, "the offset") == 5
